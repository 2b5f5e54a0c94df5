//! Checks queries and bodies against the rules generated from the API document.

use percent_encoding::percent_decode_str;
use sandboxer::dialects::Dialect;
use serde_json::{Map, Value};

use crate::{
    generated::{
        bodies::{Body, Field, Kind},
        router::{BodyRule, QueryKind, QueryRule},
    },
    reply::ApiError,
};

/// The most bytes that the names and values of a variable map may have together.
const ENV_BYTES: usize = 64 << 10;

/// Splits a query string; a name that comes twice counts once, the first time.
pub(crate) fn parse_query(query: &str) -> Result<Vec<(String, String)>, ApiError> {
    let decode = |text: &str| {
        percent_decode_str(&text.replace('+', " "))
            .decode_utf8()
            .map(|decoded| decoded.into_owned())
            .map_err(|_| ApiError::invalid("invalid_request", "query", "is not UTF-8 when decoded"))
    };
    let mut pairs: Vec<(String, String)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decode(name)?;
        match pairs.iter_mut().find(|(known, _)| *known == name) {
            None => pairs.push((name, decode(value)?)),
            // The one list that may also come as several parameters.
            Some((_, list)) if name == "conversation" => {
                list.push(',');
                list.push_str(&decode(value)?);
            }
            Some(_) => {}
        }
    }
    Ok(pairs)
}

/// Checks the query parameters that the operation knows; others are ignored.
pub(crate) fn check_query(rules: &[QueryRule], query: &[(String, String)]) -> Result<(), ApiError> {
    for rule in rules {
        let refuse = |allowed: &str| Err(ApiError::invalid(rule.code, rule.name, allowed));
        let Some((_, value)) = query.iter().find(|(name, _)| name == rule.name) else {
            if rule.required {
                return refuse("is missing");
            }
            continue;
        };
        match rule.kind {
            QueryKind::Text { min, max, pattern } => {
                check_length(value, min, max)
                    .map_err(|allowed| ApiError::invalid(rule.code, rule.name, allowed))?;
                if let Some(pattern) = pattern
                    && !matches(pattern, value)
                {
                    return refuse(&format!("must match {pattern}"));
                }
            }
            QueryKind::Integer { min, max } => {
                let inside = value.parse::<i64>().is_ok_and(|number| is_inside(number, min, max));
                if !inside {
                    return refuse(&range(min, max));
                }
            }
            QueryKind::Boolean if value != "true" && value != "false" => {
                return refuse("must be true or false");
            }
            QueryKind::Boolean => {}
            QueryKind::Values(values) if !values.contains(&value.as_str()) => return refuse(&one_of(values)),
            QueryKind::Values(_) => {}
        }
    }
    Ok(())
}

/// Reads and checks a body; an operation without one ignores what was sent.
pub(crate) fn check_body(rule: &BodyRule, bytes: &[u8]) -> Result<Value, ApiError> {
    let (body, required) = match rule {
        BodyRule::None => return Ok(Value::Object(Map::new())),
        BodyRule::Optional(body) => (body, false),
        BodyRule::Required(body) => (body, true),
    };
    if bytes.is_empty() {
        return match required {
            true => Err(ApiError::new(400, "invalid_json", "the body is missing; it must be a JSON object")),
            false => Ok(Value::Object(Map::new())),
        };
    }
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| ApiError::new(400, "invalid_json", format!("the body is not JSON: {error}")))?;
    check_object(body, &value, "")?;
    Ok(value)
}

fn check_object(body: &Body, value: &Value, path: &str) -> Result<(), ApiError> {
    let Some(given) = value.as_object() else {
        let field = if path.is_empty() { "body" } else { path };
        return Err(ApiError::invalid("invalid_request", field, "must be a JSON object"));
    };
    if body.strict
        && let Some(unknown) = given.keys().find(|key| !body.fields.iter().any(|field| field.name == **key))
    {
        let known: Vec<_> = body.fields.iter().map(|field| field.name).collect();
        let allowed = format!("is not known; there are {}", known.join(", "));
        return Err(ApiError::invalid("invalid_request", &join(path, unknown), allowed));
    }
    for field in body.fields {
        let name = join(path, field.name);
        match given.get(field.name) {
            None if field.required => return Err(ApiError::invalid(field.code, &name, "is missing")),
            Some(Value::Null) if !field.nullable => {
                return Err(ApiError::invalid(field.code, &name, "must not be null"));
            }
            None | Some(Value::Null) => {}
            Some(value) => check_value(field, &field.kind, value, &name)?,
        }
    }
    Ok(())
}

fn check_value(field: &Field, kind: &Kind, value: &Value, name: &str) -> Result<(), ApiError> {
    let refuse = |allowed: &str| Err(ApiError::invalid(field.code, name, allowed));
    match kind {
        Kind::Text { min, max, max_bytes, pattern, no_nul } => {
            let Some(text) = value.as_str() else { return refuse("must be text") };
            if let Err(allowed) = check_length(text, *min, *max) {
                return refuse(&allowed);
            }
            if max_bytes.is_some_and(|most| text.len() as u64 > most) {
                return refuse(&format!("must not be longer than {} bytes", max_bytes.unwrap_or_default()));
            }
            if *no_nul && text.contains('\0') {
                return refuse("must not contain NUL");
            }
            if let Some(pattern) = pattern
                && !matches(pattern, text)
            {
                return refuse(&format!("must match {pattern}"));
            }
        }
        Kind::Integer { min, max } => {
            if !value.as_i64().is_some_and(|number| is_inside(number, *min, *max)) {
                return refuse(&range(*min, *max));
            }
        }
        Kind::Also { text, kind } => {
            return match value.as_str() == Some(text) {
                true => Ok(()),
                false => check_value(field, kind, value, name),
            };
        }
        Kind::Number if !value.is_number() => return refuse("must be a number"),
        Kind::Boolean if !value.is_boolean() => return refuse("must be true or false"),
        Kind::Values(values) => {
            if !value.as_str().is_some_and(|text| values.contains(&text)) {
                return refuse(&one_of(values));
            }
        }
        Kind::Env { max } => return check_env(field.code, name, value, *max),
        Kind::Map(kind) => {
            let Some(entries) = value.as_object() else { return refuse("must be an object") };
            for (key, value) in entries {
                check_value(field, kind, value, &join(name, key))?;
            }
        }
        Kind::List { items, min, max } => {
            let Some(list) = value.as_array() else { return refuse("must be a list") };
            if !is_inside(i64::try_from(list.len()).unwrap_or(i64::MAX), signed(*min), signed(*max)) {
                return refuse(&format!("has {} items, which is not allowed", list.len()));
            }
            for (index, value) in list.iter().enumerate() {
                check_value(field, items, value, &format!("{name}[{index}]"))?;
            }
        }
        // What has no code of its own has that of what it is a part of.
        Kind::Object(body) => {
            return check_object(body, value, name).map_err(|error| match error.code() {
                "invalid_request" => error.recoded(field.code),
                _ => error,
            });
        }
        Kind::Number | Kind::Boolean | Kind::Any => {}
    }
    Ok(())
}

/// Checks environment variables. A bad value is never repeated in the message: it may be a secret.
pub(crate) fn check_env(
    code: &'static str,
    name: &str,
    value: &Value,
    max: Option<u64>,
) -> Result<(), ApiError> {
    let refuse = |field: &str, allowed: &str| Err(ApiError::invalid(code, field, allowed));
    let Some(variables) = value.as_object() else { return refuse(name, "must be an object of texts") };
    if max.is_some_and(|max| variables.len() as u64 > max) {
        return refuse(name, &format!("must not have more than {} variables", max.unwrap_or_default()));
    }
    let mut bytes = 0;
    for (variable, value) in variables {
        let field = join(name, variable);
        if !is_variable_name(variable) {
            return refuse(
                &field,
                "must be named by 1 to 128 letters, digits and underscores, no digit first",
            );
        }
        if is_reserved(variable) {
            return refuse(&field, "is a reserved name");
        }
        let Some(text) = value.as_str() else { return refuse(&field, "must be text") };
        if text.contains('\0') {
            return refuse(&field, "must not contain NUL");
        }
        bytes += variable.len() + text.len();
    }
    if bytes > ENV_BYTES {
        return refuse(name, &format!("must not be larger than {ENV_BYTES} bytes in all"));
    }
    Ok(())
}

/// Whether a variable may be called that.
pub(crate) fn is_variable_name(name: &str) -> bool {
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts && name.len() <= 128 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether a variable may be called that, and the service does not keep the name for itself.
pub(crate) fn is_free_name(name: &str) -> bool {
    is_variable_name(name) && !is_reserved(name)
}

/// Whether the service keeps the name of a variable for itself.
fn is_reserved(name: &str) -> bool {
    Dialect::Sandboxer.info().reserved_variables.contains(&name)
}

fn check_length(text: &str, min: Option<u64>, max: Option<u64>) -> Result<(), String> {
    let length = text.chars().count() as u64;
    match (min, max) {
        (Some(min), _) if length < min && min == 1 => Err("must not be empty".into()),
        (Some(min), _) if length < min => Err(format!("must have at least {min} characters")),
        (_, Some(max)) if length > max => Err(format!("must not have more than {max} characters")),
        _ => Ok(()),
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    regex_lite::Regex::new(pattern).is_ok_and(|regex| regex.is_match(text))
}

fn is_inside(number: i64, min: Option<i64>, max: Option<i64>) -> bool {
    min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max)
}

fn signed(number: Option<u64>) -> Option<i64> {
    number.and_then(|number| i64::try_from(number).ok())
}

fn range(min: Option<i64>, max: Option<i64>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("must be a whole number from {min} to {max}"),
        (Some(min), None) => format!("must be a whole number of at least {min}"),
        (None, Some(max)) => format!("must be a whole number of at most {max}"),
        (None, None) => "must be a whole number".into(),
    }
}

fn one_of(values: &[&str]) -> String {
    format!("must be one of {}", values.join(", "))
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::bodies::{
        COMMAND_REQUEST, CREATE_SANDBOX_REQUEST, DATA_RETENTION_UPDATE_REQUEST, UPDATE_SANDBOX_REQUEST,
    };
    use serde_json::json;

    fn refusal(body: &'static Body, value: &Value) -> (String, String) {
        let error = check_body(&BodyRule::Required(body), value.to_string().as_bytes()).unwrap_err();
        (error.code().to_owned(), error.message().to_owned())
    }

    #[test]
    fn a_strict_body_takes_only_what_it_names() {
        let (code, message) = refusal(&DATA_RETENTION_UPDATE_REQUEST, &json!({"enabled": true, "other": 1}));
        assert_eq!(code, "invalid_request");
        assert!(message.contains("other is not known"), "{message}");
        check_body(&BodyRule::Required(&COMMAND_REQUEST), br#"{"command":"x","other":1}"#).unwrap();
    }

    #[test]
    fn a_query_parameter_matches_its_pattern() {
        let pattern = Some("^(?:1h|24h)$");
        let kind = QueryKind::Text { min: None, max: None, pattern };
        let rules =
            [QueryRule { name: "window", kind, required: false, default: None, code: "invalid_request" }];
        check_query(&rules, &[("window".into(), "24h".into())]).unwrap();
        let refused = check_query(&rules, &[("window".into(), "25h".into())]).unwrap_err();
        assert!(refused.message().contains("window must match"), "{}", refused.message());
    }

    #[test]
    fn every_rule_names_its_field_and_its_code() {
        let cases: [(&'static Body, Value, &str, &str); 10] = [
            (&COMMAND_REQUEST, json!({}), "invalid_request", "command"),
            (&COMMAND_REQUEST, json!({"command": ""}), "invalid_request", "command"),
            (&COMMAND_REQUEST, json!({"command": "a\u{0}b"}), "invalid_request", "command"),
            (
                &COMMAND_REQUEST,
                json!({"command": "x", "timeoutSeconds": 0}),
                "invalid_timeout",
                "timeoutSeconds",
            ),
            (
                &COMMAND_REQUEST,
                json!({"command": "x", "timeoutSeconds": 601}),
                "invalid_timeout",
                "from 1 to 600",
            ),
            (
                &COMMAND_REQUEST,
                json!({"command": "x", "timeoutSeconds": 1.5}),
                "invalid_timeout",
                "timeoutSeconds",
            ),
            (&COMMAND_REQUEST, json!({"command": "x", "env": {"A=B": "1"}}), "invalid_env", "env.A=B"),
            (
                &COMMAND_REQUEST,
                json!({"command": "x", "env": {"SANDBOXER_ID": "1"}}),
                "invalid_env",
                "reserved",
            ),
            (
                &CREATE_SANDBOX_REQUEST,
                json!({"type": "huge"}),
                "invalid_request",
                "small, default, large, xlarge",
            ),
            (&UPDATE_SANDBOX_REQUEST, json!({"subdomain": "-bad-"}), "invalid_request", "subdomain"),
        ];
        for (body, value, code, part) in cases {
            let (got, message) = refusal(body, &value);
            assert_eq!(got, code, "{value}");
            assert!(message.contains(part), "{value}: {message}");
        }
        let secret = refusal(&COMMAND_REQUEST, &json!({"command": "x", "env": {"A": "hush\u{0}"}}));
        assert!(!secret.1.contains("hush"), "{}", secret.1);
    }

    #[test]
    fn bodies_that_are_no_json_or_no_object_are_refused() {
        let rule = BodyRule::Optional(&CREATE_SANDBOX_REQUEST);
        assert_eq!(check_body(&rule, b"").unwrap(), json!({}));
        assert_eq!(check_body(&rule, b"{").unwrap_err().code(), "invalid_json");
        assert_eq!(check_body(&rule, b"[]").unwrap_err().code(), "invalid_request");
        assert_eq!(
            check_body(&BodyRule::Required(&COMMAND_REQUEST), b"").unwrap_err().code(),
            "invalid_json"
        );
        assert!(check_body(&rule, br#"{"ttlSeconds":null,"unknown":1}"#).is_ok());
    }

    #[test]
    fn queries_are_decoded() {
        let query = parse_query("path=a%20b+c&state=ready%2Cidle&path=second&flag").unwrap();
        let text = |s: &str| s.to_owned();
        assert_eq!(
            query,
            [(text("path"), text("a b c")), (text("state"), text("ready,idle")), (text("flag"), text(""))]
        );
        assert_eq!(parse_query("a=%ff").unwrap_err().code(), "invalid_request");
    }
}
