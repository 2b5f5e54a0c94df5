//! Reading answers: strictly first, and leniently when that fails, so that one odd field does not lose the whole answer.
//!
//! A field of another type than the document says is left at its default, an odd element of a list is left out; each is
//! logged by its path, never with its value. What an answer cannot do without is marked essential in the document; without
//! it the answer is refused.

use std::{collections::BTreeMap, fmt, mem};

use bytes::Bytes;
use memchr::memmem;
use progenitor_client::{Error, ResponseValue};
use reqwest::{Response, ResponseBuilderExt as _};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use serde_path_to_error::Segment;

/// How many different odd fields an answer may have.
const ODD_FIELDS: usize = 64;

/// Why a success could not be read; an extension of the response that the engine hands back, beside its status and headers.
#[derive(Clone, Debug)]
pub(crate) struct Undecoded {
    /// The whole body.
    pub(crate) body: Bytes,
    /// What is wrong with it.
    pub(crate) problem: Problem,
}

/// What is wrong with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It is not JSON, or not all of it.
    NotJson,
    /// It has bytes that are not UTF-8.
    NotUtf8,
    /// It says `ok: false` under a status of success.
    Refused,
    /// What stands at this path is essential and missing or of another type; `.` is the whole body.
    Essential(String),
    /// More fields are odd than anyone should read around.
    TooOdd,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson => f.write_str("the body is not JSON"),
            Self::NotUtf8 => f.write_str("the body is not UTF-8"),
            Self::Refused => f.write_str("the body says `ok: false`"),
            Self::Essential(path) if path == "." => f.write_str("the body is of another type"),
            Self::Essential(path) => write!(f, "`{path}` is essential and missing or of another type"),
            Self::TooOdd => write!(f, "more than {ODD_FIELDS} fields are of another type"),
        }
    }
}

/// Reads a success. One that cannot be read comes back as [`Error::UnexpectedResponse`] with [`Undecoded`] among its
/// extensions.
pub(crate) async fn decode<T: DeserializeOwned, E>(
    mut response: Response,
    operation: &'static str,
) -> Result<ResponseValue<T>, Error<E>> {
    let (status, version, url) = (response.status(), response.version(), response.url().clone());
    let headers = response.headers().clone();
    let extensions = mem::take(response.extensions_mut());
    let body = response.bytes().await.map_err(Error::ResponseBodyError)?;
    let problem = match read(&body, operation) {
        Ok(value) if !says_no(&body) => return Ok(ResponseValue::new(value, status, headers)),
        Ok(_) => Problem::Refused,
        Err(_) if says_no(&body) => Problem::Refused,
        Err(problem) => problem,
    };
    let rebuilt = http::Response::builder().status(status).version(version).url(url).body(body.clone());
    let Ok(mut rebuilt) = rebuilt else {
        return Err(Error::Custom(problem.to_string()));
    };
    *rebuilt.headers_mut() = headers;
    rebuilt.extensions_mut().extend(extensions);
    rebuilt.extensions_mut().insert(Undecoded { body, problem });
    Err(Error::UnexpectedResponse(rebuilt.into()))
}

/// Reads one JSON document, strictly first; `operation` is for the log.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8], operation: &str) -> Result<T, Problem> {
    if let Ok(value) = serde_json::from_slice(body) {
        return Ok(value);
    }
    let unreadable = |_| if std::str::from_utf8(body).is_err() { Problem::NotUtf8 } else { Problem::NotJson };
    lenient(serde_json::from_slice(body).map_err(unreadable)?, operation)
}

/// Reads a part that was parsed before, as the variants of a choice are. What it says of an essential field is in the form
/// that the reading of the whole understands.
pub(crate) fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    lenient(value, "").map_err(|problem| match problem {
        Problem::Essential(path) if path != "." => format!("{MISSING}{path}`"),
        other => other.to_string(),
    })
}

fn says_no(body: &[u8]) -> bool {
    // Nearly all answers say yes; finding that out must not cost a second reading of a long one.
    let may_say_no = memmem::find_iter(body, br#""ok""#).any(|at| {
        let value = body[at + 4..].trim_ascii_start().strip_prefix(b":");
        value.is_some_and(|value| value.trim_ascii_start().starts_with(b"false"))
    });
    if !may_say_no {
        return false;
    }
    #[derive(Deserialize)]
    struct Answer {
        #[serde(default)]
        ok: Value,
    }
    serde_json::from_slice::<Answer>(body).is_ok_and(|answer| answer.ok == Value::Bool(false))
}

/// How the error of a field that is not there begins; its name follows, up to the next backquote.
const MISSING: &str = "missing field `";

fn lenient<T: DeserializeOwned>(mut value: Value, operation: &str) -> Result<T, Problem> {
    // Why each thing left out so far was: the place of the field that was at fault.
    let mut faults: BTreeMap<String, String> = BTreeMap::new();
    for _ in 0..=ODD_FIELDS {
        let error = match serde_path_to_error::deserialize(&value) {
            Ok(read) => return Ok(read),
            Err(error) => error,
        };
        let path: Vec<&Segment> =
            error.path().iter().take_while(|s| !matches!(s, Segment::Unknown)).collect();
        let (place, reason) = (error.path().to_string(), error.inner().to_string());
        let fault = match missing(&reason) {
            Some(name) if place == "." => name.to_owned(),
            Some(name) => format!("{place}.{name}"),
            None => place.clone(),
        };
        let fault = faults.get(&fault).cloned().unwrap_or(fault);
        let places = prune(&mut value, &path, reason.starts_with("invalid type"));
        if places == 0 {
            return Err(Problem::Essential(fault));
        }
        faults.insert(place, fault);
        tracing::warn!(operation, field = %error.path(), places, "an answer's field is of another type; it is left out");
    }
    Err(Problem::TooOdd)
}

/// The field that an error says is not there.
fn missing(error: &str) -> Option<&str> {
    error.strip_prefix(MISSING)?.split('`').next()
}

/// Removes what `path` leads to, and what the same path leads to in other elements of the lists on its way when it is of the
/// same kind: the service changed a field's type, so it is as odd there. Of lists and objects that is known only when their
/// type is what is wrong with them (`by_type`). Says how many places were removed.
fn prune(value: &mut Value, path: &[&Segment], by_type: bool) -> usize {
    let Some(kind) = follow(value, path).map(kind) else { return 0 };
    if by_type || !matches!(kind, Kind::List | Kind::Object) {
        prune_alike(value, path, kind)
    } else {
        usize::from(prune_one(value, path))
    }
}

fn follow<'a>(value: &'a Value, path: &[&Segment]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, segment| match segment {
        Segment::Seq { index } => value.get(*index),
        Segment::Map { key } => value.get(key.as_str()),
        Segment::Enum { .. } | Segment::Unknown => None,
    })
}

/// Values that are odd for the same reason.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Null,
    Bool,
    Text,
    Whole,
    WholeBeyondSigned,
    Fraction,
    List,
    Object,
}

fn kind(value: &Value) -> Kind {
    match value {
        Value::Null => Kind::Null,
        Value::Bool(_) => Kind::Bool,
        Value::String(_) => Kind::Text,
        Value::Number(number) if number.is_i64() => Kind::Whole,
        Value::Number(number) if number.is_u64() => Kind::WholeBeyondSigned,
        Value::Number(_) => Kind::Fraction,
        Value::Array(_) => Kind::List,
        Value::Object(_) => Kind::Object,
    }
}

fn prune_one(value: &mut Value, path: &[&Segment]) -> bool {
    let Some((last, parents)) = path.split_last() else { return false };
    let parent = parents.iter().try_fold(value, |value, segment| match segment {
        Segment::Seq { index } => value.get_mut(*index),
        Segment::Map { key } => value.get_mut(key.as_str()),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    match (parent, last) {
        (Some(Value::Array(list)), Segment::Seq { index }) if *index < list.len() => {
            list.remove(*index);
            true
        }
        (Some(Value::Object(map)), Segment::Map { key }) => map.remove(key).is_some(),
        _ => false,
    }
}

fn prune_alike(value: &mut Value, path: &[&Segment], odd: Kind) -> usize {
    match (path, value) {
        ([Segment::Seq { .. }], Value::Array(list)) => {
            let before = list.len();
            list.retain(|item| kind(item) != odd);
            before - list.len()
        }
        ([Segment::Map { key }], Value::Object(map)) => {
            let is_odd = map.get(key).map(kind) == Some(odd);
            usize::from(is_odd && map.remove(key).is_some())
        }
        ([Segment::Seq { .. }, rest @ ..], Value::Array(list)) => {
            list.iter_mut().map(|item| prune_alike(item, rest, odd)).sum()
        }
        ([Segment::Map { key }, rest @ ..], Value::Object(map)) => {
            map.get_mut(key).map_or(0, |item| prune_alike(item, rest, odd))
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::models::{
        CommandAnswer, CommandLogsResponse, ContentEncoding, LimitsResponse, SandboxInfoResponse,
        SandboxListResponse, SandboxState,
    };
    use serde_json::json;

    fn list(value: &Value) -> Result<SandboxListResponse, Problem> {
        read(value.to_string().as_bytes(), "sandboxes")
    }

    #[test]
    fn null_in_a_required_place_is_the_default() {
        let body = json!({"ok": true, "type": "sandbox.list", "sandboxes": [], "pageInfo": {"nextCursor": null, "hasMore": null, "limit": null}});
        let page = list(&body).unwrap();
        assert!(!page.page_info.has_more);
        assert_eq!(page.page_info.limit, 0);
        let page = list(&json!({"sandboxes": [], "pageInfo": null})).unwrap();
        assert_eq!(page.page_info.next_cursor, None);
    }

    #[test]
    fn a_bad_leaf_is_lost_alone() {
        let body = json!({"ok": true, "sandboxes": [{"id": "a", "state": "ready", "vcpu": "two", "name": "n", "stop": {"id": "s", "status": "pending", "error": 5}}]});
        let page = list(&body).unwrap();
        let sandbox = &page.sandboxes[0];
        assert_eq!((sandbox.vcpu, sandbox.name.as_deref()), (None, Some("n")));
        let stop = sandbox.stop.as_ref().unwrap();
        assert_eq!((stop.id.as_str(), stop.error.as_deref()), ("s", None));
    }

    #[test]
    fn a_list_loses_only_its_bad_element() {
        let body = json!({"ok": true, "sandboxes": [{"id": "a", "state": "ready"}, {"id": 7, "state": "ready"}, 9, {"state": "ready"}, {"id": "b", "state": "idle"}]});
        let page = list(&body).unwrap();
        let ids: Vec<_> = page.sandboxes.iter().map(|sandbox| sandbox.id.as_str()).collect();
        assert_eq!(ids, ["a", "b"]);
    }

    #[test]
    fn a_field_that_changed_its_type_everywhere_costs_one_pass() {
        let sandboxes: Vec<_> =
            (0..200).map(|n| json!({"id": n.to_string(), "state": "ready", "vcpu": "many"})).collect();
        let page = list(&json!({"sandboxes": sandboxes})).unwrap();
        assert_eq!(page.sandboxes.len(), 200);
        let mixed = json!({"sandboxes": [{"id": "a", "state": "ready", "vcpu": "x"}, {"id": "b", "state": "ready", "vcpu": 4}]});
        assert_eq!(list(&mixed).unwrap().sandboxes[1].vcpu, Some(4));
    }

    #[test]
    fn a_field_of_another_type_is_lost_in_a_list_of_any_length() {
        for odd in [json!({"name": "n"}), json!(["n"])] {
            let sandbox = json!({"id": "a", "state": "ready", "environment": odd, "vcpu": 4});
            let page = list(&json!({"sandboxes": vec![sandbox; 200]})).unwrap();
            assert_eq!(page.sandboxes.len(), 200);
            assert!(page.sandboxes.iter().all(|one| one.environment.is_none() && one.vcpu == Some(4)));
        }
        // What is wrong inside one says nothing of the others.
        let stops = [json!({"id": "s"}), json!({"id": "t", "status": "pending"})];
        let sandboxes: Vec<_> = stops.map(|stop| json!({"id": "a", "state": "ready", "stop": stop})).into();
        let page = list(&json!({"sandboxes": sandboxes})).unwrap();
        assert_eq!(page.sandboxes.iter().map(|one| one.stop.is_some()).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn unknown_values_and_fields_are_kept_and_written_back() {
        let body = json!({"ok": true, "type": "sandbox.info", "sandbox": {"id": "a", "state": "frozen", "team": {"id": "t", "name": "n", "colour": "red"}, "new": [1, {"x": null}]}, "more": true});
        let answer: SandboxInfoResponse = read(body.to_string().as_bytes(), "get").unwrap();
        assert_eq!(answer.sandbox.state, SandboxState::Unknown("frozen".into()));
        assert_eq!(serde_json::to_value(&answer).unwrap(), body);
    }

    #[test]
    fn an_essential_field_cannot_be_missing() {
        let get = |body: Value| read::<SandboxInfoResponse>(body.to_string().as_bytes(), "get");
        for (body, place) in [
            (json!({"ok": true}), "sandbox"),
            (json!({"sandbox": null}), "sandbox"),
            (json!({"sandbox": {"id": "a"}}), "sandbox.state"),
            (json!({"sandbox": {"id": 5, "state": "ready"}}), "sandbox.id"),
            (json!([]), "."),
        ] {
            assert_eq!(get(body.clone()), Err(Problem::Essential(place.into())), "{body}");
        }
        assert_eq!(read::<SandboxInfoResponse>(b"{\"a\":\"\xFF\"}", "get"), Err(Problem::NotUtf8));
        assert_eq!(read::<SandboxInfoResponse>(b"<html>", "get"), Err(Problem::NotJson));
        assert_eq!(read::<SandboxInfoResponse>(br#"{"sandbox":{"id""#, "get"), Err(Problem::NotJson));
        assert!(get(json!({"sandbox": {"id": "a", "state": "ready", "createdAt": 5, "team": "x"}})).is_ok());
    }

    #[test]
    fn too_many_odd_fields_are_refused() {
        let mut sandbox = json!({"id": "a", "state": "ready"});
        let mut logs = json!({"offset": 0, "nextOffset": 1, "data": "x", "encoding": "base64", "size": "1", "done": 1, "stream": 2});
        let read_logs: CommandLogsResponse = read(logs.to_string().as_bytes(), "command_logs").unwrap();
        assert_eq!((read_logs.size, read_logs.encoding), (0, ContentEncoding::Base64));
        logs["offset"] = json!("0");
        let refused = read::<CommandLogsResponse>(logs.to_string().as_bytes(), "command_logs");
        assert_eq!(refused, Err(Problem::Essential("offset".into())));
        let many: Vec<_> = (0..66).map(|_| json!({"id": "a"})).collect();
        assert_eq!(list(&json!({"sandboxes": many})), Err(Problem::TooOdd));
        sandbox["vcpu"] = json!(u64::MAX);
        assert_eq!(list(&json!({"sandboxes": [sandbox]})).unwrap().sandboxes[0].vcpu, None);
    }

    #[test]
    fn a_choice_is_read_by_its_discriminator() {
        let answer = |body: Value| read::<CommandAnswer>(body.to_string().as_bytes(), "command");
        let finished = json!({"ok": true, "type": "command.finished", "success": true, "exitCode": 0, "stdout": "a", "stderr": "", "timedOut": false, "oomKilled": "no", "x": 1});
        match answer(finished).unwrap() {
            CommandAnswer::Finished(finished) => {
                assert_eq!((finished.stdout.as_str(), finished.exit_code), ("a", Some(0)));
                assert_eq!(finished.oom_killed, None);
                assert_eq!(finished.unknown_fields["x"], 1);
            }
            other => panic!("{other:?}"),
        }
        let started = json!({"ok": true, "type": "command.started", "success": true, "processId": 7, "pid": 8, "command": "x", "startedAt": "now"});
        assert!(
            matches!(answer(started).unwrap(), CommandAnswer::Started(started) if started.process_id == 7)
        );
        let odd = json!({"type": "command.queued", "position": 3});
        let other = answer(odd.clone()).unwrap();
        assert_eq!(other, CommandAnswer::Other(odd.clone()));
        assert_eq!(serde_json::to_value(&other).unwrap(), odd);
        for (bad, place) in [
            (json!({"stdout": ""}), "type"),
            (json!({"type": 5}), "type"),
            (json!({"type": "command.finished"}), "stdout"),
            (json!({"type": "command.finished", "stdout": "", "stderr": 5}), "stderr"),
            (json!("x"), "type"),
        ] {
            assert_eq!(answer(bad.clone()), Err(Problem::Essential(place.into())), "{bad}");
        }
    }

    fn response(body: &'static str) -> Response {
        let response = http::Response::builder().status(202).header("x-request-id", "r1").body(body);
        response.unwrap().into()
    }

    async fn undecoded(body: &'static str) -> Response {
        match decode::<LimitsResponse, ()>(response(body), "limits").await {
            Err(Error::UnexpectedResponse(response)) => response,
            Ok(read) => panic!("{read:?}"),
            Err(_) => panic!("another error"),
        }
    }

    #[tokio::test]
    async fn a_body_that_cannot_be_read_keeps_status_headers_and_text() {
        let response = undecoded("<html>busy</html>").await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["x-request-id"]),
            (202, &"r1".parse().unwrap())
        );
        let undecoded = response.extensions().get::<Undecoded>().unwrap();
        assert_eq!(
            (undecoded.problem.clone(), &undecoded.body[..]),
            (Problem::NotJson, &b"<html>busy</html>"[..])
        );
    }

    #[tokio::test]
    async fn a_success_that_says_no_is_none() {
        for body in [r#"{"ok":false,"code":"x"}"#, r#"{"type":"limits.info","ok": false,"canStart":5}"#] {
            let response = undecoded(body).await;
            assert_eq!(response.extensions().get::<Undecoded>().unwrap().problem, Problem::Refused, "{body}");
        }
        let read = decode::<LimitsResponse, ()>(response(r#"{"canStart":true}"#), "limits").await;
        assert!(read.is_ok_and(|limits| limits.can_start));
    }
}
