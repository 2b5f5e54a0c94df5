//! The API document as it stands in the repository, read without the code generator: what the suites hold the client against.

use std::path::Path;

use sandboxer::Dialect;
use serde_json::{Map, Value};

use crate::peer::Turn;

/// One dialect's document.
pub struct Spec {
    document: Value,
}

/// An operation, or a streaming face of one, that has a method on the low-level client.
#[derive(Clone, Debug)]
pub struct SpecOperation {
    /// Its id.
    pub id: String,
    /// The HTTP method.
    pub method: String,
    /// Its path, parameters in braces.
    pub path: String,
    /// Its repeat class.
    pub repeat: String,
    /// Its parameters, references resolved.
    pub parameters: Vec<Value>,
    /// The schema of its request body.
    pub body: Option<Value>,
    /// Whether it must have a body.
    pub body_required: bool,
    /// Fields and query parameters that only streaming faces send, in whichever face this is: name, value.
    pub hidden: Map<String, Value>,
    /// What this face sends of them.
    pub forced: Map<String, Value>,
    /// The status of a success.
    pub success: u16,
    /// The media type of a success.
    pub media: String,
    /// The schema of a JSON success.
    pub answer: Option<Value>,
    /// Whether it runs a command, whose limit the call's limits follow.
    pub runs_command: bool,
}

impl SpecOperation {
    /// The parameters sent in `place`.
    pub fn given(&self, place: &str) -> impl Iterator<Item = &Value> {
        self.parameters.iter().filter(move |parameter| parameter["in"] == place)
    }

    /// Whether an idempotency key goes with it.
    pub fn keyed(&self) -> bool {
        self.given("header").any(|parameter| parameter["name"] == "Idempotency-Key")
    }

    /// Whether success is one JSON document.
    pub fn is_json(&self) -> bool {
        self.media == "application/json"
    }
}

impl Spec {
    /// Reads the document and applies the dialect's overlay.
    ///
    /// # Panics
    /// When a file cannot be read or an edit finds no place.
    pub fn read(dialect: Dialect) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs");
        let yaml = |name: &str| -> Value {
            let text = std::fs::read_to_string(folder.join(name)).expect("a file of the repository");
            serde_yaml_ng::from_str(&text).expect("YAML")
        };
        let mut document = yaml("sandboxer.openapi.yaml");
        if dialect != Dialect::default() {
            let overlay = yaml(&format!("{dialect}.overlay.yaml"));
            for edit in overlay["edits"].as_array().expect("edits") {
                apply(&mut document, edit);
            }
        }
        Self { document }
    }

    /// A part of the document.
    pub fn part(&self, pointer: &str) -> &Value {
        self.document.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// What a reference leads to; anything else is itself.
    pub fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        let mut value = value;
        while let Some(target) = reference(value) {
            value = self.part(target.trim_start_matches('#'));
        }
        value
    }

    /// Every operation and face that has a method on the low-level client.
    pub fn operations(&self) -> Vec<SpecOperation> {
        let absent = self.part("/x-service/absent");
        let mut all = Vec::new();
        for (path, item) in self.part("/paths").as_object().expect("paths") {
            for (method, own) in item.as_object().expect("a path") {
                if method == "parameters" || own["x-websocket"] == true {
                    continue;
                }
                if absent.as_array().is_some_and(|absent| absent.contains(&own["operationId"])) {
                    continue;
                }
                let lists = [&item["parameters"], &own["parameters"]];
                let listed = lists.into_iter().filter_map(Value::as_array).flatten();
                let parameters = listed.map(|parameter| self.resolved(parameter).clone()).collect();
                self.add(&mut all, method, path, own, parameters);
            }
        }
        all
    }

    fn add(
        &self,
        all: &mut Vec<SpecOperation>,
        method: &str,
        path: &str,
        own: &Value,
        parameters: Vec<Value>,
    ) {
        let face = &own["x-streaming-face"];
        let parts = [&face["body"], &face["query"]].into_iter().filter_map(Value::as_object).flatten();
        let hidden: Map<String, Value> = parts.map(|(name, value)| (name.clone(), value.clone())).collect();
        let responses = own["responses"].as_object().expect("responses");
        let (status, response) =
            responses.iter().find(|(status, _)| status.starts_with('2')).expect("a success");
        let (media, content) =
            response["content"].as_object().and_then(|all| all.iter().next()).expect("a body");
        let json = media == "application/json";
        let base = SpecOperation {
            id: text(own, "operationId"),
            method: method.to_uppercase(),
            path: path.to_owned(),
            repeat: text(own, "x-repeat"),
            parameters,
            body: own.pointer("/requestBody/content/application~1json/schema").cloned(),
            body_required: own.pointer("/requestBody/required") == Some(&Value::Bool(true)),
            hidden: hidden.clone(),
            forced: Map::new(),
            success: status.parse().expect("a status"),
            media: media.clone(),
            answer: json.then(|| content["schema"].clone()),
            runs_command: own.get("x-command-limit").is_some(),
        };
        all.push(base.clone());
        if face.is_object() {
            let (id, media) = (text(face, "operationId"), text(face, "mediaType"));
            all.push(SpecOperation { id, media, forced: hidden, answer: None, ..base });
        }
    }

    /// A success of the operation, as small as it can be.
    pub fn success(&self, operation: &SpecOperation) -> Turn {
        let headers = vec![("content-type".to_owned(), operation.media.clone())];
        let body = operation.answer.as_ref().map_or_else(String::new, |s| self.example(s).to_string());
        Turn::Reply { status: operation.success, headers, body: body.into() }
    }

    /// A small value that fits a schema: what is required of it and what a reader cannot do without.
    pub fn example(&self, schema: &Value) -> Value {
        let schema = self.resolved(schema);
        if let Some(values) = schema["enum"].as_array() {
            return values[0].clone();
        }
        if let Some(targets) = schema.pointer("/discriminator/mapping").and_then(Value::as_object) {
            let (value, target) = targets.iter().next().expect("a choice");
            let mut made = self.example(&serde_json::json!({"$ref": target}));
            made[schema["discriminator"]["propertyName"].as_str().expect("a name")] = value.as_str().into();
            return made;
        }
        match schema["type"].as_str() {
            Some("string") if schema["format"] == "date-time" => "2026-01-02T03:04:05.678Z".into(),
            Some("string") => "https://a.example/sample".into(),
            Some("integer") => schema["minimum"].as_i64().unwrap_or(1).into(),
            Some("number") => 0.5.into(),
            Some("boolean") => true.into(),
            Some("array") => Value::Array(Vec::new()),
            Some("object") => {
                let lists = [&schema["required"], &schema["x-essential"]];
                let names = lists.into_iter().filter_map(Value::as_array).flatten();
                let names = names.filter_map(Value::as_str);
                names.map(|name| (name.to_owned(), self.example(&schema["properties"][name]))).collect()
            }
            _ => Value::Null,
        }
    }
}

/// The target of a reference, or of the only part of a combination.
fn reference(value: &Value) -> Option<&str> {
    let alone = value["allOf"].as_array().filter(|parts| parts.len() == 1).map(|parts| &parts[0]);
    alone.unwrap_or(value)["$ref"].as_str()
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no `{name}` in {value}")).to_owned()
}

/// Applies one edit of an overlay.
fn apply(document: &mut Value, edit: &Value) {
    for (action, how) in edit.as_object().expect("an edit") {
        let places: Vec<String> = match &how["at"] {
            Value::String(place) => vec![place.clone()],
            Value::Array(places) => places.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => vec![String::new()],
        };
        for place in places {
            match action.as_str() {
                "set" => *at(document, &place) = how["value"].clone(),
                "add" => match (at(document, &place), &how["value"]) {
                    (Value::Object(there), Value::Object(more)) => there.extend(more.clone()),
                    (Value::Array(there), Value::Array(more)) => there.extend(more.clone()),
                    _ => panic!("{place}: nothing can be added here"),
                },
                "rename" => {
                    rename(at(document, &place), how["from"].as_str().unwrap(), how["to"].as_str().unwrap());
                }
                "name" | "expect" => {}
                other => panic!("{other} is no action of an overlay"),
            }
        }
    }
}

/// The place that a pointer names; in a list a segment is a position or a name.
fn at<'a>(document: &'a mut Value, pointer: &str) -> &'a mut Value {
    pointer.split('/').skip(1).fold(document, |value, segment| {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        match value {
            Value::Array(items) => {
                let index = segment.parse().ok();
                let index = index.or_else(|| items.iter().position(|item| item["name"] == segment.as_str()));
                &mut items[index.unwrap_or_else(|| panic!("{pointer}: no `{segment}`"))]
            }
            Value::Object(fields) => {
                fields.get_mut(&segment).unwrap_or_else(|| panic!("{pointer}: no `{segment}`"))
            }
            _ => panic!("{pointer}: no `{segment}`"),
        }
    })
}

fn rename(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) if text == from => to.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, from, to)),
        Value::Object(fields) => {
            *fields = std::mem::take(fields)
                .into_iter()
                .map(|(name, mut value)| {
                    rename(&mut value, from, to);
                    (if name == from { to.to_owned() } else { name }, value)
                })
                .collect();
        }
        _ => {}
    }
}
