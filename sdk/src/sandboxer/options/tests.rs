//! What options become on the wire.

use std::time::Duration;

use super::{Create, Fork, Resume, check_name};

#[test]
fn options_become_the_request() {
    let create =
        Create::new().kind("small").ttl(Duration::from_millis(1500)).env("A", "1").from("base").no_env();
    let sent = serde_json::to_value(&create.request).unwrap();
    let expected = serde_json::json!({"type": "small", "ttlSeconds": 2, "env": {"A": "1"}, "from": "base", "noEnv": true});
    assert_eq!(sent, expected);
    let sent = serde_json::to_value(&Fork::new().no_ttl().request).unwrap();
    assert_eq!(sent, serde_json::json!({"ttlSeconds": null}));
    let sent = serde_json::to_value(&Resume::new().request).unwrap();
    assert_eq!(sent, serde_json::json!({}));
    let sent = serde_json::to_value(&Create::new().personal().request).unwrap();
    assert_eq!(sent, serde_json::json!({"org": null}));
}

#[test]
fn values_of_variables_are_not_printed() {
    let shown = format!("{:?}", Create::new().env("TOKEN", "hush"));
    assert!(shown.contains("TOKEN") && !shown.contains("hush"), "{shown}");
}

#[test]
fn an_empty_name_is_refused_before_anything_is_made() {
    assert!(check_name(Some("")).is_err());
    assert!(check_name(Some("demo")).is_ok() && check_name(None).is_ok());
}

#[test]
fn waiting_for_setup_and_not_waiting_at_all_exclude_each_other() {
    let both = Create::new().wait(false).wait_for_setup().waiting;
    assert!(both.wait && both.setup, "what is said last counts");
    let none = Create::new().wait_for_setup().wait(false).waiting;
    assert!(!none.wait && !none.setup);
    assert!(Create::new().wait_for_setup().wait(true).waiting.setup);
}

#[test]
fn files_travel_as_text_where_they_are_text() {
    let create = Create::new().file("a.txt", "é").file("b", [0xFF]);
    let sent = serde_json::to_value(&create.request).unwrap();
    let expected = serde_json::json!([{"path": "a.txt", "content": "é"},
        {"path": "b", "content": "/w==", "encoding": "base64"}]);
    assert_eq!(sent["files"], expected);
    assert!(create.sets_up() && !Create::new().sets_up());
}
