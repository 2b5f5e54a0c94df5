//! What the overlays add to the document: this server has it too, in the document's own spelling of codes.

use serde_json::Value;

/// Puts in what an overlay adds, and the values that it knows more.
pub(crate) fn join(document: &mut Value, overlay: &Value) {
    let edits = || overlay["edits"].as_array().into_iter().flatten();
    let service = edits().map(|edit| &edit["set"]).find(|set| set["at"] == "/x-service");
    let aliases = service.map_or(Value::Null, |set| set["value"]["codeAliases"].clone());
    for edit in edits() {
        for pointer in pointers(&edit["add"]["at"]) {
            put(document, pointer, &respelled(&edit["add"]["value"], &aliases));
        }
        for pointer in pointers(&edit["set"]["at"]).filter(|pointer| pointer.ends_with("/enum")) {
            put(document, pointer, &edit["set"]["value"]);
        }
    }
}

fn pointers(at: &Value) -> impl Iterator<Item = &str> {
    at.as_str().into_iter().chain(at.as_array().into_iter().flatten().filter_map(Value::as_str))
}

/// Adds what is not there; a place that has no pointer of plain JSON says nothing of answers.
fn put(document: &mut Value, pointer: &str, value: &Value) {
    match (document.pointer_mut(pointer), value) {
        (Some(Value::Object(known)), Value::Object(more)) => {
            for (name, value) in more {
                known.entry(name).or_insert_with(|| value.clone());
            }
        }
        (Some(Value::Array(known)), Value::Array(more)) => {
            known.extend(more.iter().cloned());
        }
        _ => {}
    }
}

fn respelled(value: &Value, aliases: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), respelled(value, aliases))).collect()
        }
        Value::Array(items) => items.iter().map(|value| respelled(value, aliases)).collect(),
        Value::String(text) => aliases.get(text).unwrap_or(value).clone(),
        other => other.clone(),
    }
}
