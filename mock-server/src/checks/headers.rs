//! The headers of an answer: what the document declares, and nothing of the service's own beside.

use http::HeaderMap;
use serde_json::Value;

use super::document::Rules;

/// Headers of any answer.
const COMMON: [&str; 1] = ["x-request-id"];

/// What is wrong with the headers.
pub(crate) fn problems(rules: &Rules, headers: &HeaderMap) -> Vec<String> {
    let mut problems = Vec::new();
    let declared = || rules.headers.as_object().into_iter().flatten();
    for (name, value) in headers {
        let name = name.as_str();
        let is_own = name.starts_with("x-") || name == "retry-after";
        let entry = declared().find(|(declared, _)| declared.eq_ignore_ascii_case(name));
        match entry {
            None if is_own && !COMMON.contains(&name) => {
                problems.push(format!("the header {name} is not documented"));
            }
            Some((_, entry)) if !fits(&entry["schema"], value.to_str().ok()) => {
                problems.push(format!("the header {name} does not fit its schema: {value:?}"));
            }
            _ => {}
        }
    }
    for (name, entry) in declared() {
        if entry["required"] == true && !headers.contains_key(name) {
            problems.push(format!("the header {name} is missing"));
        }
    }
    if !headers.contains_key("x-request-id") {
        problems.push("the header x-request-id is missing".to_owned());
    }
    problems
}

fn fits(schema: &Value, text: Option<&str>) -> bool {
    let Some(text) = text else { return false };
    match schema["type"].as_str() {
        Some("integer") => text.parse::<i64>().is_ok(),
        Some("boolean") => text.parse::<bool>().is_ok(),
        _ => true,
    }
}
