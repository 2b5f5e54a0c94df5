//! Limits of what is sent; a value out of them is refused before anything goes out. Messages say what is allowed, never
//! what was given.

use regex_lite::Regex;

use super::{EnvMap, InvalidField};
use crate::generated::dialects::Dialect;
use std::collections::BTreeMap;

type Checked = Result<(), InvalidField>;

/// The longest name of a variable.
const NAME_LIMIT: usize = 128;

/// The most bytes that names and values of one request's variables may take.
const ENV_BYTES: usize = 64 * 1024;

fn refuse(field: &str, problem: String) -> Checked {
    Err(InvalidField::new(field, problem))
}

/// A whole number in a range.
pub(crate) fn integer(field: &str, value: i64, low: Option<i64>, high: Option<i64>) -> Checked {
    if low.is_some_and(|low| value < low) || high.is_some_and(|high| value > high) {
        return refuse(field, format!("must be a whole number, {}", range(low, high)));
    }
    Ok(())
}

/// A text with so many characters.
pub(crate) fn length(field: &str, value: &str, low: usize, high: Option<usize>) -> Checked {
    if low > 0 && value.is_empty() {
        return refuse(field, "must not be empty".into());
    }
    let within = match high {
        // A text has at most as many characters as bytes.
        Some(high) if value.len() <= high && low <= 1 => true,
        Some(high) => (low..=high).contains(&value.chars().count()),
        None => low <= 1 || value.chars().count() >= low,
    };
    if !within {
        return refuse(field, format!("must have {} characters", range(Some(low), high)));
    }
    Ok(())
}

/// A text of so many bytes.
pub(crate) fn bytes(field: &str, value: &str, high: usize) -> Checked {
    if value.len() > high {
        return refuse(field, format!("must have at most {high} bytes"));
    }
    Ok(())
}

/// A text that matches a regular expression of the API document.
pub(crate) fn pattern(field: &str, value: &str, pattern: &str) -> Checked {
    if Regex::new(pattern).is_ok_and(|regex| !regex.is_match(value)) {
        return refuse(field, format!("must match {pattern}"));
    }
    Ok(())
}

/// A text without NUL.
pub(crate) fn no_nul(field: &str, value: &str) -> Checked {
    if value.contains('\0') {
        return refuse(field, "must not contain a NUL character".into());
    }
    Ok(())
}

/// A list or map of so many entries.
pub(crate) fn entries(field: &str, count: usize, low: Option<usize>, high: Option<usize>) -> Checked {
    if low.is_some_and(|low| count < low) || high.is_some_and(|high| count > high) {
        return refuse(field, format!("must have {} entries", range(low, high)));
    }
    Ok(())
}

/// Each item of a list, called `field[0]` and so on.
pub(crate) fn items<T>(field: &str, list: &[T], check: impl Fn(&str, &T) -> Checked) -> Checked {
    list.iter().enumerate().try_for_each(|(index, item)| check(&format!("{field}[{index}]"), item))
}

/// Each value of a map, called `field.key`.
pub(crate) fn values<T>(
    field: &str,
    map: &BTreeMap<String, T>,
    check: impl Fn(&str, &T) -> Checked,
) -> Checked {
    map.iter().try_for_each(|(key, value)| {
        let shown: String = key.chars().take(NAME_LIMIT).flat_map(char::escape_debug).collect();
        check(&format!("{field}.{shown}"), value)
    })
}

/// A field that only one dialect has.
pub(crate) fn dialect(field: &str, given: bool, spoken: Dialect, has: Dialect) -> Checked {
    if given && spoken != has {
        return refuse(field, format!("must not be set: {spoken} does not have it, only {has} does"));
    }
    Ok(())
}

/// Environment variables: how many, their names, and their size.
pub(crate) fn env(field: &str, variables: &EnvMap, high: Option<usize>, dialect: Dialect) -> Checked {
    entries(field, variables.len(), None, high)?;
    let mut size = 0;
    for (name, value) in variables.iter() {
        env_name(field, name, dialect)?;
        if value.contains('\0') {
            return refuse(&format!("{field}.{name}"), "must not contain a NUL character".into());
        }
        size += name.len() + value.len();
    }
    if size > ENV_BYTES {
        return refuse(field, format!("must have at most {ENV_BYTES} bytes of names and values"));
    }
    Ok(())
}

/// The name of one environment variable.
fn env_name(field: &str, name: &str, dialect: Dialect) -> Checked {
    let mut characters = name.chars();
    let first = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !first || !characters.all(|c| c.is_ascii_alphanumeric() || c == '_') || name.len() > NAME_LIMIT {
        let shown: String = name.chars().take(NAME_LIMIT).flat_map(char::escape_debug).collect();
        return refuse(
            &format!("{field}.{shown}"),
            format!(
                "must be named by a letter or underscore and up to {} letters, digits and underscores",
                NAME_LIMIT - 1
            ),
        );
    }
    if dialect.info().reserved_variables.contains(&name) {
        return refuse(&format!("{field}.{name}"), "must not be set: the name belongs to the service".into());
    }
    Ok(())
}

fn range<N: std::fmt::Display>(low: Option<N>, high: Option<N>) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!("from {low} to {high}"),
        (Some(low), None) => format!("at least {low}"),
        (None, Some(high)) => format!("at most {high}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::models::{
        ActiveOrgUpdateRequest, CommandRequest, CreateFile, CreateSandboxRequest, CreateScopedApiKeyRequest,
        ReadFileParams, SecretFileRequest, SecretsUpdateRequest, TelemetrySetRequest, UpdateSandboxRequest,
    };
    use crate::wire::Secret;

    fn refusal(result: Checked) -> (String, String) {
        let refused = result.unwrap_err();
        (refused.field, refused.problem)
    }

    #[test]
    fn command_limits() {
        for seconds in [1, 30, 600] {
            CommandRequest::new("true").timeout_seconds(seconds).validate().unwrap();
        }
        for seconds in [i64::MIN, -1, 0, 601, i64::MAX] {
            assert_eq!(
                refusal(CommandRequest::new("true").timeout_seconds(seconds).validate()),
                ("timeoutSeconds".into(), "must be a whole number, from 1 to 600".into())
            );
        }
    }

    #[test]
    fn texts() {
        assert_eq!(
            refusal(CommandRequest::new("").validate()),
            ("command".into(), "must not be empty".into())
        );
        assert_eq!(refusal(CommandRequest::new("a\0b").validate()).0, "command");
        CommandRequest::new("x".repeat(1 << 20)).validate().unwrap();
        CommandRequest::new("é".repeat(1 << 20)).validate().unwrap();
        assert_eq!(refusal(CommandRequest::new("x".repeat((1 << 20) + 1)).validate()).0, "command");
        assert_eq!(refusal(ReadFileParams::new("").validate()).0, "path");
        CreateSandboxRequest::new().setup_script("x".repeat(65536)).validate().unwrap();
        let script = CreateSandboxRequest::new().setup_script("é".repeat(32769));
        assert_eq!(
            refusal(script.validate()),
            ("setupScript".into(), "must have at most 65536 bytes".into())
        );
    }

    #[test]
    fn patterns() {
        UpdateSandboxRequest::new().subdomain("my-app").validate().unwrap();
        for bad in ["My-app", "-app", "app-", "ap", "a_b"] {
            assert_eq!(
                refusal(UpdateSandboxRequest::new().subdomain(bad).validate()).0,
                "subdomain",
                "{bad}"
            );
        }
    }

    #[test]
    fn three_states_are_checked_when_there_is_a_value() {
        UpdateSandboxRequest::new().ttl_seconds(None).validate().unwrap();
        assert_eq!(refusal(UpdateSandboxRequest::new().ttl_seconds(0).validate()).0, "ttlSeconds");
    }

    #[test]
    fn what_is_inside_lists_maps_and_structs() {
        let keys = |ids: Vec<String>| CreateScopedApiKeyRequest::new().sandbox_ids(ids);
        keys(vec!["bx_1".into()]).validate().unwrap();
        assert_eq!(
            refusal(keys(vec![]).validate()),
            ("sandboxIds".into(), "must have at least 1 entries".into())
        );
        let (field, problem) = refusal(keys(vec!["bx_1".into(), String::new()]).validate());
        assert_eq!((field.as_str(), problem.as_str()), ("sandboxIds[1]", "must not be empty"));
        let file = SecretFileRequest::new("", "hush");
        let files = SecretsUpdateRequest::new().secret_files([file]);
        assert_eq!(refusal(files.validate()).0, "secretFiles[0].path");
        let headers = BTreeMap::from([("X-Key".to_owned(), Secret::from("x".repeat(8193)))]);
        let refused = refusal(TelemetrySetRequest::new("https://a.example").headers(headers).validate());
        assert_eq!(refused.0, "headers.X-Key");
    }

    #[test]
    fn a_field_of_another_dialect_is_refused() {
        let named = || CreateSandboxRequest::new().name("demo");
        named().validate_for(Dialect::Boat).unwrap();
        assert_eq!(
            refusal(named().validate()),
            ("name".into(), "must not be set: sandboxer does not have it, only boat does".into())
        );
        let for_ever = || CreateScopedApiKeyRequest::new().ttl("never");
        for_ever().validate_for(Dialect::Boat).unwrap();
        assert_eq!(refusal(for_ever().validate()).0, "ttl");
        let file = CreateFile::new("", "x");
        let refused = CreateSandboxRequest::new().files([file]).validate_for(Dialect::Boat);
        assert_eq!(refusal(refused).0, "files[0].path");
    }

    #[test]
    fn null_is_sent_where_it_is_one_of_two_choices() {
        let sent = |request: ActiveOrgUpdateRequest| {
            request.validate().unwrap();
            serde_json::to_string(&request).unwrap()
        };
        assert_eq!(sent(ActiveOrgUpdateRequest::new(None)), r#"{"org":null}"#);
        assert_eq!(sent(ActiveOrgUpdateRequest::new("acme")), r#"{"org":"acme"}"#);
        assert_eq!(refusal(ActiveOrgUpdateRequest::new("").validate()).0, "org");
    }

    #[test]
    fn environments() {
        let check = |variables: EnvMap| CommandRequest::new("true").env(variables).validate();
        check(EnvMap::from([("A", "s3cr3t"), ("_b9", "")])).unwrap();
        assert_eq!(refusal(check(EnvMap::from([("A=B", "s3cr3t")]))).0, "env.A=B");
        for name in ["", "9A", "A B", "Ä", &"x".repeat(129)] {
            let refused = refusal(check(EnvMap::from([(name, "s3cr3t")])));
            assert!(refused.0.starts_with("env.") && !refused.1.contains("s3cr3t"), "{refused:?}");
        }
        check(EnvMap::from([("x".repeat(128), "")])).unwrap();
        assert_eq!(refusal(check(EnvMap::from([("SANDBOXER_TOKEN", "x")]))).0, "env.SANDBOXER_TOKEN");
        let nul = refusal(check(EnvMap::from([("A", "s3cr3t\0")])));
        assert_eq!(nul, ("env.A".into(), "must not contain a NUL character".into()));
        let check_for = |name, dialect| {
            CommandRequest::new("true").env(EnvMap::from([(name, "x")])).validate_for(dialect)
        };
        assert_eq!(refusal(check_for("BOAT_ID", Dialect::Boat)).0, "env.BOAT_ID");
        check_for("BOAT_ID", Dialect::Sandboxer).unwrap();
        check_for("SANDBOXER_TOKEN", Dialect::Boat).unwrap();
        let many: EnvMap = (0..101).map(|n| (format!("V{n}"), "")).collect();
        assert_eq!(refusal(check(many)), ("env".into(), "must have at most 100 entries".into()));
        check(EnvMap::from([("A", "x".repeat(65535))])).unwrap();
        assert_eq!(refusal(check(EnvMap::from([("A", "x".repeat(65536))]))).0, "env");
    }
}
