//! Named edits that cut the document to what the engine's generator can take.
//!
//! The engine only carries requests and answers: limits are checked by the public models before anything is sent, and by
//! nobody in what is read. Each edit has a name and says how many places it changed; another number than the expected one
//! is an error, so that a change of the document cannot slip past an edit unseen.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::{
    Error, Result,
    load::{Answer, Document, Operation},
};

/// Keys of a schema that say what a value may be; the engine would refuse to read what they exclude.
const LIMITS: [&str; 9] = [
    "default",
    "enum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minLength",
    "minimum",
    "pattern",
];

/// How many places each edit must change, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedCounts(BTreeMap<&'static str, usize>);

impl Default for ExpectedCounts {
    fn default() -> Self {
        Self(BTreeMap::from([
            ("drop-websockets", 2),
            ("keep-2xx-responses", 104),
            ("accept-any-2xx", 102),
            ("drop-client-headers", 105),
            ("split-streaming-faces", 2),
            ("answer-byte-streams", 5),
            ("drop-limits", 385),
            ("drop-unused-schemas", 10),
        ]))
    }
}

impl ExpectedCounts {
    /// Expects `count` places of the edit called `name`.
    #[must_use]
    pub fn with(mut self, name: &'static str, count: usize) -> Self {
        self.0.insert(name, count);
        self
    }

    /// The names of all edits.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }
}

/// Changes the document and says in how many places.
type Edit = fn(&Document, &mut Value) -> usize;

/// The document as the engine's generator sees it.
#[derive(Clone, Debug)]
pub struct EngineView {
    /// The cut document.
    pub spec: Value,
    /// Each edit's name with the number of places it changed, in the order they were made.
    pub applied: Vec<(&'static str, usize)>,
}

/// Cuts the document for the engine.
///
/// # Errors
/// When an edit changes another number of places than expected.
pub fn engine_view(document: &Document, expected: &ExpectedCounts) -> Result<EngineView> {
    let mut spec = document.json.clone();
    let mut applied = Vec::new();
    let edits: [(&'static str, Edit); 8] = [
        ("drop-websockets", drop_websockets),
        ("keep-2xx-responses", keep_2xx),
        ("accept-any-2xx", accept_any_2xx),
        ("drop-client-headers", drop_client_headers),
        ("split-streaming-faces", split_faces),
        ("answer-byte-streams", byte_streams),
        ("drop-limits", |_, spec| drop_limits(spec)),
        ("drop-unused-schemas", drop_unused_schemas),
    ];
    for (name, edit) in edits {
        let count = edit(document, &mut spec);
        let want = expected.0.get(name).copied().unwrap_or(0);
        if count != want {
            return Err(Error::new(format!(
                "edit `{name}` changed {count} places, {want} were expected; see codegen/src/edits.rs"
            )));
        }
        applied.push((name, count));
    }
    Ok(EngineView { spec, applied })
}

fn each_operation<'a>(spec: &'a mut Value, mut visit: impl FnMut(&mut Map<String, Value>) + 'a) {
    let items = spec.get_mut("paths").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut);
    for operation in items.filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
        if let Some(operation) = operation.as_object_mut().filter(|o| o.contains_key("operationId")) {
            visit(operation);
        }
    }
}

fn responses(operation: &mut Map<String, Value>) -> Option<&mut Map<String, Value>> {
    operation.get_mut("responses").and_then(Value::as_object_mut)
}

/// A WebSocket is no request with an answer.
fn drop_websockets(document: &Document, spec: &mut Value) -> usize {
    let mut count = 0;
    for operation in document.operations.iter().filter(|operation| !operation.is_called()) {
        let item = spec["paths"].get_mut(&operation.path).and_then(Value::as_object_mut);
        count +=
            usize::from(item.is_some_and(|item| item.remove(&operation.method.to_lowercase()).is_some()));
    }
    count
}

/// A failure of any shape must reach the hooks' own error type with its status, headers and text.
fn keep_2xx(_: &Document, spec: &mut Value) -> usize {
    let mut count = 0;
    each_operation(spec, |operation| {
        let Some(responses) = responses(operation) else { return };
        let before = responses.len();
        responses.retain(|status, _| status.starts_with('2'));
        count += before - responses.len();
    });
    count
}

/// An answer under another 2xx than the described one is still an answer.
fn accept_any_2xx(_: &Document, spec: &mut Value) -> usize {
    let mut count = 0;
    each_operation(spec, |operation| {
        let Some(responses) = responses(operation) else { return };
        let taken = std::mem::take(responses);
        if let Some((_, first)) = taken.into_iter().next() {
            responses.insert("2XX".into(), first);
            count += 1;
        }
    });
    count
}

fn drop_client_headers(_: &Document, spec: &mut Value) -> usize {
    let components = spec.pointer("/components/parameters").cloned().unwrap_or_default();
    let filled = |parameter: &Value| {
        let target = parameter["$ref"]
            .as_str()
            .and_then(|r| r.strip_prefix("#/components/parameters/"))
            .map_or(parameter, |name| &components[name]);
        target.get("x-filled-by").is_some()
    };
    let mut count = 0;
    each_operation(spec, |operation| {
        if let Some(parameters) = operation.get_mut("parameters").and_then(Value::as_array_mut) {
            let before = parameters.len();
            parameters.retain(|parameter| !filled(parameter));
            count += before - parameters.len();
        }
    });
    if let Some(parameters) = spec.pointer_mut("/components/parameters").and_then(Value::as_object_mut) {
        parameters.retain(|_, parameter| parameter.get("x-filled-by").is_none());
    }
    count
}

/// The generator knows one success body an operation, and one operation a path and method: a face gets a path of its own
/// that differs in a parameter's name only, and a body that carries the fields it forces.
fn split_faces(document: &Document, spec: &mut Value) -> usize {
    let mut count = 0;
    for face in document.operations.iter().filter(|o| o.face_of.is_some()) {
        let method = face.method.to_lowercase();
        let Some(item) = spec["paths"].get(&face.path).cloned() else { continue };
        let Some(mut operation) = item.get(&method).cloned() else { continue };
        let renamed = face_path(face);
        operation["operationId"] = json!(face.id);
        operation["summary"] = json!(face.summary);
        operation["responses"] = json!({"2XX": {
            "description": "Frames.",
            "content": {"application/octet-stream": {"schema": {"type": "string"}}},
        }});
        if face.body.is_some() {
            let name = face_body_name(face);
            operation["requestBody"]["content"]["application/json"]["schema"] =
                json!({"$ref": format!("#/components/schemas/{name}")});
            spec["components"]["schemas"][name] = json!({"type": "object"});
        }
        let parameters = face.given(crate::schema::Place::Path).map(|parameter| {
            json!({
                "name": format!("{}Stream", parameter.name),
                "in": "path",
                "required": true,
                "schema": {"type": parameter.schema.kind, "format": parameter.schema.format},
            })
        });
        let parameters: Vec<Value> = parameters.map(without_nulls).collect();
        spec["paths"][renamed] = json!({"parameters": parameters, method: operation});
        count += 1;
    }
    each_operation(spec, |operation| {
        let Some(responses) = responses(operation) else { return };
        for response in responses.values_mut() {
            if let Some(content) = response.get_mut("content").and_then(Value::as_object_mut)
                && content.contains_key("application/json")
            {
                content.retain(|media, _| media == "application/json");
            }
        }
    });
    count
}

fn without_nulls(mut parameter: Value) -> Value {
    if let Some(schema) = parameter.get_mut("schema").and_then(Value::as_object_mut) {
        schema.retain(|_, value| !value.is_null());
    }
    parameter
}

/// The path of a streaming face in the engine's view.
fn face_path(face: &Operation) -> String {
    face.path.replace('}', "Stream}")
}

/// The name of a streaming face's body.
pub(crate) fn face_body_name(face: &Operation) -> String {
    format!("{}Body", face.variant())
}

/// Frames and files are handed on as bytes, whatever their media type.
fn byte_streams(document: &Document, spec: &mut Value) -> usize {
    let mut count = 0;
    each_operation(spec, |operation| {
        let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
        let streams = document.operations.iter().any(|o| o.id == id && !matches!(o.answer, Answer::Json(_)));
        let Some(responses) = responses(operation).filter(|_| streams) else { return };
        for response in responses.values_mut() {
            response["content"] =
                json!({"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}});
            count += 1;
        }
    });
    count
}

fn drop_limits(spec: &mut Value) -> usize {
    fn walk(schema: &mut Value, names: bool) -> usize {
        match schema {
            Value::Object(map) if names => map.values_mut().map(|value| walk(value, false)).sum(),
            Value::Object(map) => {
                let before = map.len();
                map.retain(|key, _| !LIMITS.contains(&key.as_str()));
                let dropped = before - map.len();
                dropped + map.iter_mut().map(|(key, value)| walk(value, key == "properties")).sum::<usize>()
            }
            Value::Array(list) => list.iter_mut().map(|value| walk(value, false)).sum(),
            _ => 0,
        }
    }
    let mut count = 0;
    for part in ["/components/schemas", "/components/parameters"] {
        count += spec.pointer_mut(part).map_or(0, |part| walk(part, true));
    }
    if let Some(items) = spec.get_mut("paths").and_then(Value::as_object_mut) {
        for item in items.values_mut().filter_map(Value::as_object_mut) {
            for (key, part) in item.iter_mut() {
                let parameters = if key == "parameters" { Some(part) } else { part.get_mut("parameters") };
                count += parameters.map_or(0, |parameters| walk(parameters, false));
            }
        }
    }
    count
}

fn drop_unused_schemas(document: &Document, spec: &mut Value) -> usize {
    let mut used: Vec<String> =
        document.operations.iter().filter_map(|o| o.body.clone()).map(|b| b.schema).collect();
    used.extend(document.operations.iter().filter_map(|o| match &o.answer {
        Answer::Json(name) => Some(name.clone()),
        _ => None,
    }));
    let parameters = document.operations.iter().flat_map(|o| &o.parameters);
    used.extend(parameters.filter_map(|p| p.schema.referred()).map(str::to_owned));
    let used = document.reachable(used).unwrap_or_default();
    if let Some(components) = spec.get_mut("components").and_then(Value::as_object_mut) {
        components.remove("responses");
    }
    let Some(schemas) = spec.pointer_mut("/components/schemas").and_then(Value::as_object_mut) else {
        return 0;
    };
    let before = schemas.len();
    schemas.retain(|name, _| used.contains(name) || !document.schemas.contains_key(name));
    before - schemas.len()
}
