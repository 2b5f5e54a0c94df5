//! The least that the API document lets an operation answer with.

use std::path::Path;

use serde_json::{Map, Value, json};

/// The API document.
pub(crate) struct Document(Value);

/// An answer to one request.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) media: &'static str,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self { status, media: "application/json", body: body.to_string().into() }
    }

    pub(crate) fn lines(media: &'static str, body: &str) -> Self {
        Self { status: 200, media, body: body.into() }
    }
}

impl Document {
    /// Reads the document of this repository, with the paths and schemas that the other dialect adds.
    pub(crate) fn read() -> Self {
        let specs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs");
        let yaml = |name: &str| -> Value {
            serde_yaml_ng::from_str(&std::fs::read_to_string(specs.join(name)).unwrap()).unwrap()
        };
        let (mut document, overlay) = (yaml("sandboxer.openapi.yaml"), yaml("boat.overlay.yaml"));
        for edit in overlay["edits"].as_array().unwrap() {
            let more = (edit["add"]["at"].as_str(), edit["add"]["value"].as_object());
            if let (Some(at), Some(value)) = more
                && let Some(target) = document.pointer_mut(at).and_then(Value::as_object_mut)
            {
                target.extend(value.clone());
            }
        }
        Self(document)
    }

    /// The first success of an operation, with what it must have and what `more` adds; `None` when there is none.
    pub(crate) fn answer(&self, method: &str, path: &str, more: impl Fn(&str) -> Value) -> Option<Answer> {
        let operation = self.operation(method, path)?;
        let (status, response) =
            operation["responses"].as_object()?.iter().find(|(status, _)| status.starts_with('2'))?;
        let status = status.parse().ok()?;
        let id = operation["operationId"].as_str()?;
        let content = response["content"].as_object()?;
        let Some(media) = content.get("application/json") else {
            return Some(Answer { status, media: "application/octet-stream", body: b"bytes".to_vec() });
        };
        let mut body = self.least(&media["schema"]);
        merge(&mut body, more(id));
        Some(Answer::json(status, &body))
    }

    fn operation(&self, method: &str, path: &str) -> Option<&Value> {
        let given: Vec<&str> = path.split('/').collect();
        let fits = |template: &str| {
            let wanted: Vec<&str> = template.split('/').collect();
            let same = |(wanted, given): (&&str, &&str)| wanted.starts_with('{') || wanted == given;
            (wanted.len() == given.len() && wanted.iter().zip(&given).all(same))
                .then(|| wanted.iter().filter(|segment| segment.starts_with('{')).count())
        };
        let paths = self.0["paths"].as_object()?.iter();
        let mut all: Vec<(usize, &Value)> =
            paths.filter_map(|(template, item)| Some((fits(template)?, item.get(method)?))).collect();
        all.sort_by_key(|(parameters, _)| *parameters);
        all.first().map(|(_, operation)| *operation)
    }

    /// The smallest value that a schema allows.
    fn least(&self, schema: &Value) -> Value {
        if let Some(name) = schema["$ref"].as_str() {
            return self.least(self.0.pointer(name.trim_start_matches('#')).unwrap());
        }
        if let Some(first) = ["oneOf", "anyOf"].iter().find_map(|key| schema[*key].get(0)) {
            return self.least(first);
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let mut whole = Value::Null;
            parts.iter().for_each(|part| merge(&mut whole, self.least(part)));
            return whole;
        }
        if let Some(first) = schema["enum"].get(0) {
            return first.clone();
        }
        match schema["type"].as_str() {
            Some("object") => {
                let needed = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
                let fields = needed.map(|name| (name.to_owned(), self.least(&schema["properties"][name])));
                Value::Object(fields.collect::<Map<_, _>>())
            }
            Some("array") => json!([]),
            Some("integer") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
            Some("number") => json!(1.0),
            Some("boolean") => json!(false),
            _ if schema["format"] == "date-time" => json!("2026-01-01T00:00:00.000Z"),
            _ => json!("x"),
        }
    }
}

/// Puts the fields of one object into another, objects within objects too.
pub(crate) fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            from.into_iter().for_each(|(name, value)| merge(into.entry(name).or_insert(Value::Null), value));
        }
        (Value::Object(_), Value::Null) => {}
        (into, from) => *into = from,
    }
}
