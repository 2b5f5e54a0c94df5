//! Reads the API document: YAML to a JSON value for the engine, and a typed view for everything else.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    Error, Result,
    codes::{self, ErrorCode},
    names::{callable, pascal},
    schema::{Parameter, Place, Schema},
};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// The API document.
#[derive(Clone, Debug)]
pub struct Document {
    pub(crate) json: Value,
    pub(crate) schemas: IndexMap<String, Schema>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) rules: Vec<RepeatRule>,
    pub(crate) errors: IndexMap<String, ErrorCode>,
    /// Codes that every operation may answer with.
    pub(crate) common_errors: Vec<String>,
    pub(crate) service: Option<Service>,
    pub(crate) base_url: Option<String>,
    /// What is sent to webhook endpoints.
    pub(crate) webhook_event: Option<String>,
}

/// What `x-service` says.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Service {
    pub name: String,
    pub key_variables: Vec<String>,
    pub url_variable: String,
    pub org_variable: String,
    pub reserved_variables: Vec<String>,
    pub host_suffix: String,
    pub log_folder: String,
    pub webhook_signature_header: Option<String>,
    pub webhook_header_prefix: String,
    pub command_variables: CommandVariables,
    pub code_aliases: IndexMap<String, String>,
    pub absent: Vec<String>,
}

/// How variables reach a command.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CommandVariables {
    Field,
    Exports,
}

/// One operation, or the streaming face of one.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub id: String,
    pub tag: String,
    pub summary: String,
    pub description: Option<String>,
    pub method: String,
    pub path: String,
    pub repeat: RepeatClass,
    pub key_action: Option<String>,
    /// All its codes: those of every operation, its own and those of its parameters.
    pub errors: Vec<String>,
    /// The codes that it lists itself.
    pub own_errors: Vec<String>,
    pub parameters: Vec<Parameter>,
    pub body: Option<Body>,
    pub success: u16,
    pub answer: Answer,
    pub command_limit: Option<String>,
    /// The operation this is the streaming face of, with the body fields that it forces.
    pub face_of: Option<(String, IndexMap<String, Value>)>,
    /// Query parameters that always have this value; they do not show.
    pub forced_query: IndexMap<String, String>,
    /// The only dialect that has it.
    pub dialect: Option<String>,
}

/// A JSON request body.
#[derive(Clone, Debug)]
pub(crate) struct Body {
    pub schema: String,
    pub required: bool,
}

/// What a success is answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Json(String),
    Ndjson(String),
    Sse(String),
    Bytes,
    WebSocket,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RepeatClass {
    Safe,
    Keyed,
    Replace,
    Command,
    Write,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Delivery {
    NotSent,
    Answered,
    Unknown,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RepeatRule {
    pub name: String,
    pub when: When,
    pub repeat: Vec<RepeatClass>,
    pub pause_ms: Option<u64>,
    #[serde(default)]
    pub until_deadline: bool,
    pub why: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct When {
    pub delivery: Option<Delivery>,
    pub status: Option<Vec<u16>>,
    #[serde(default)]
    pub codes: Vec<String>,
    pub retryable: Option<bool>,
    pub message: Option<String>,
    pub window: Option<String>,
    pub hint: Option<bool>,
}

#[derive(Deserialize)]
struct Raw {
    #[serde(rename = "x-repeat-table", default)]
    rules: Vec<RepeatRule>,
    #[serde(rename = "x-common-errors", default)]
    common_errors: Vec<String>,
    #[serde(rename = "x-error-codes", default)]
    errors: IndexMap<String, ErrorCode>,
    #[serde(rename = "x-service")]
    service: Option<Service>,
    #[serde(rename = "x-webhook-events")]
    webhook_event: Option<Schema>,
    #[serde(default)]
    servers: Vec<Server>,
    paths: IndexMap<String, IndexMap<String, serde_yaml_ng::Value>>,
    components: RawComponents,
}

#[derive(Deserialize)]
struct Server {
    url: String,
}

#[derive(Deserialize)]
struct RawComponents {
    #[serde(default)]
    schemas: IndexMap<String, Schema>,
    #[serde(default)]
    parameters: IndexMap<String, Parameter>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawOperation {
    operation_id: String,
    tags: Vec<String>,
    summary: String,
    description: Option<String>,
    #[serde(rename = "x-repeat")]
    repeat: RepeatClass,
    #[serde(rename = "x-key-action")]
    key_action: Option<String>,
    #[serde(rename = "x-errors", default)]
    errors: Vec<String>,
    #[serde(rename = "x-streaming-face")]
    face: Option<Face>,
    #[serde(rename = "x-command-limit")]
    command_limit: Option<String>,
    #[serde(rename = "x-websocket", default)]
    websocket: bool,
    #[serde(rename = "x-dialect")]
    dialect: Option<String>,
    #[serde(default)]
    parameters: Vec<ParameterOrRef>,
    request_body: Option<RawBody>,
    responses: IndexMap<String, RawResponse>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Face {
    operation_id: String,
    summary: String,
    media_type: String,
    frame: String,
    #[serde(default)]
    body: IndexMap<String, Value>,
    #[serde(default)]
    query: IndexMap<String, String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ParameterOrRef {
    Ref {
        #[serde(rename = "$ref")]
        reference: String,
    },
    Item(Box<Parameter>),
}

#[derive(Deserialize)]
struct RawBody {
    #[serde(default)]
    required: bool,
    content: IndexMap<String, Media>,
}

#[derive(Deserialize)]
struct RawResponse {
    #[serde(default)]
    content: IndexMap<String, Media>,
}

#[derive(Deserialize)]
struct Media {
    schema: Schema,
}

/// Reads the document.
///
/// # Errors
/// When it is not YAML, lacks a part, has a part no step understands, or names something it does not define.
pub fn document(text: &str) -> Result<Document> {
    of_yaml(&yaml("the API document", text)?)
}

/// Reads YAML.
pub(crate) fn yaml(what: &str, text: &str) -> Result<serde_yaml_ng::Value> {
    serde_yaml_ng::from_str(text).map_err(|error| Error::new(format!("{what}: {error}")))
}

/// Reads the document from its parsed form.
pub(crate) fn of_yaml(yaml: &serde_yaml_ng::Value) -> Result<Document> {
    let json: Value = parse("the API document", yaml.clone())?;
    let raw: Raw = parse("the API document", yaml.clone())?;
    let mut operations = Vec::new();
    for (path, item) in &raw.paths {
        let shared = match item.get("parameters") {
            Some(value) => resolve(&raw, path, parse(path, value.clone())?)?,
            None => Vec::new(),
        };
        for key in item.keys().filter(|key| *key != "parameters") {
            if !METHODS.contains(&key.as_str()) {
                return Err(Error::new(format!("{path}: `{key}` is not understood")));
            }
        }
        for method in METHODS {
            if let Some(value) = item.get(method) {
                let place = format!("{method} {path}");
                let operation: RawOperation = parse(&place, value.clone())?;
                add(&mut operations, &raw, &shared, method, path, operation)?;
            }
        }
    }
    let webhook_event = raw.webhook_event.map(|event| {
        let name = event.referred().map(str::to_owned);
        name.ok_or_else(|| Error::new("x-webhook-events: what is sent must be a named schema"))
    });
    let document = Document {
        json,
        webhook_event: webhook_event.transpose()?,
        schemas: raw.components.schemas,
        operations,
        rules: raw.rules,
        errors: raw.errors,
        common_errors: raw.common_errors,
        service: raw.service,
        base_url: raw.servers.into_iter().next().map(|server| server.url),
    };
    document.verify()?;
    Ok(document)
}

fn parse<T: serde::de::DeserializeOwned>(place: &str, value: serde_yaml_ng::Value) -> Result<T> {
    serde_yaml_ng::from_value(value).map_err(|error| Error::new(format!("{place}: {error}")))
}

fn resolve(raw: &Raw, place: &str, list: Vec<ParameterOrRef>) -> Result<Vec<Parameter>> {
    list.into_iter()
        .map(|entry| match entry {
            ParameterOrRef::Item(parameter) => Ok(*parameter),
            ParameterOrRef::Ref { reference } => reference
                .strip_prefix("#/components/parameters/")
                .and_then(|name| raw.components.parameters.get(name))
                .cloned()
                .ok_or_else(|| Error::new(format!("{place}: there is no parameter `{reference}`"))),
        })
        .collect()
}

fn add(
    operations: &mut Vec<Operation>,
    raw: &Raw,
    shared: &[Parameter],
    method: &str,
    path: &str,
    operation: RawOperation,
) -> Result<()> {
    let id = operation.operation_id.clone();
    let mut parameters = shared.to_vec();
    parameters.extend(resolve(raw, &id, operation.parameters)?);
    let (status, response) = operation
        .responses
        .iter()
        .find_map(|(status, response)| {
            let status: u16 = status.parse().ok()?;
            let success = if operation.websocket { 101..102 } else { 200..300 };
            success.contains(&status).then_some((status, response))
        })
        .ok_or_else(|| Error::new(format!("{id}: there is no response that is a success")))?;
    let answer = if operation.websocket { Answer::WebSocket } else { answer(&id, response)? };
    let body = match operation.request_body {
        None => None,
        Some(body) => {
            let media = body
                .content
                .get("application/json")
                .filter(|_| body.content.len() == 1)
                .ok_or_else(|| Error::new(format!("{id}: the body must be JSON only")))?;
            let schema = media
                .schema
                .referred()
                .ok_or_else(|| Error::new(format!("{id}: the body must be a named schema")))?;
            Some(Body { schema: schema.to_owned(), required: body.required })
        }
    };
    let mut errors = raw.common_errors.clone();
    for code in operation.errors.iter().chain(parameters.iter().flat_map(|parameter| &parameter.errors)) {
        if !errors.contains(code) {
            errors.push(code.clone());
        }
    }
    let base = Operation {
        id: id.clone(),
        tag: operation.tags.first().cloned().ok_or_else(|| Error::new(format!("{id}: there is no tag")))?,
        summary: operation.summary,
        description: operation.description,
        method: method.to_uppercase(),
        path: path.to_owned(),
        repeat: operation.repeat,
        key_action: operation.key_action,
        errors,
        own_errors: operation.errors,
        parameters,
        body,
        success: status,
        answer,
        command_limit: operation.command_limit,
        face_of: None,
        forced_query: IndexMap::new(),
        dialect: operation.dialect,
    };
    let face = operation.face.map(|face| {
        let answer = match face.media_type.as_str() {
            "application/x-ndjson" => Answer::Ndjson(face.frame),
            "text/event-stream" => Answer::Sse(face.frame),
            _ => {
                let known = "application/x-ndjson or text/event-stream";
                return Err(Error::new(format!("{id}: a streaming face answers {known}")));
            }
        };
        if let Some(odd) = face.query.keys().find(|name| base.parameter(Place::Query, name).is_none()) {
            return Err(Error::new(format!("{id}: there is no query parameter `{odd}`")));
        }
        Ok(Operation {
            id: face.operation_id,
            summary: face.summary,
            answer,
            face_of: Some((id, face.body)),
            forced_query: face.query,
            ..base.clone()
        })
    });
    operations.push(base);
    if let Some(face) = face {
        operations.push(face?);
    }
    Ok(())
}

fn answer(id: &str, response: &RawResponse) -> Result<Answer> {
    let named = |media: &Media| {
        media
            .schema
            .referred()
            .map(str::to_owned)
            .ok_or_else(|| Error::new(format!("{id}: the answer must be a named schema")))
    };
    if let Some(media) = response.content.get("application/json") {
        return Ok(Answer::Json(named(media)?));
    }
    if let Some(media) = response.content.get("application/x-ndjson") {
        return Ok(Answer::Ndjson(named(media)?));
    }
    if response.content.contains_key("application/octet-stream") {
        return Ok(Answer::Bytes);
    }
    Err(Error::new(format!("{id}: the answer's media type is not understood")))
}

impl Operation {
    /// Its variant in the operation enum.
    pub(crate) fn variant(&self) -> String {
        pascal(&self.id)
    }

    /// Its method's name.
    pub(crate) fn method_name(&self) -> String {
        callable(&self.id)
    }

    /// Parameters sent in `place` that the caller gives, not the client's hook.
    pub(crate) fn given(&self, place: Place) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(move |p| {
            let forced = place == Place::Query && self.forced_query.contains_key(&p.name);
            p.place == place && p.filled_by.is_none() && !forced
        })
    }

    /// The parameter of that name in that place.
    pub(crate) fn parameter(&self, place: Place, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|p| p.place == place && p.name == name)
    }

    /// Whether it has a method on the low-level client.
    pub(crate) fn is_called(&self) -> bool {
        self.answer != Answer::WebSocket
    }

    /// Whether an idempotency key goes with it.
    pub(crate) fn keyed(&self) -> bool {
        self.parameters.iter().any(|p| p.name.eq_ignore_ascii_case("idempotency-key"))
    }

    /// The name of its parameter struct, when it has parameters beside path ids.
    pub(crate) fn params_name(&self) -> Option<String> {
        let any = self.given(Place::Query).chain(self.given(Place::Header)).next().is_some();
        any.then(|| format!("{}Params", self.variant()))
    }
}

impl Document {
    /// The operations that have a method on the low-level client.
    pub(crate) fn called(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter().filter(|operation| operation.is_called())
    }

    /// The component called `name`.
    pub(crate) fn schema(&self, name: &str) -> Result<&Schema> {
        self.schemas.get(name).ok_or_else(|| Error::new(format!("there is no schema `{name}`")))
    }

    /// A schema's own description, else that of what it refers to.
    pub(crate) fn description<'a>(&'a self, schema: &'a Schema) -> &'a str {
        let referred = schema.referred().and_then(|name| self.schemas.get(name));
        let own = schema.description.as_deref();
        own.or_else(|| referred?.description.as_deref()).unwrap_or("Not described.")
    }

    /// Names of the schemas that `roots` lead to, themselves included, in the document's order.
    pub(crate) fn reachable(&self, roots: impl IntoIterator<Item = String>) -> Result<Vec<String>> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<String> = roots.into_iter().collect();
        while let Some(name) = open.pop() {
            if seen.insert(name.clone()) {
                references(self.schema(&name)?, &mut open);
            }
        }
        Ok(self.schemas.keys().filter(|name| seen.contains(*name)).cloned().collect())
    }

    /// What the API is called, with its version.
    pub(crate) fn title(&self) -> String {
        let text = |key| self.json["info"][key].as_str().unwrap_or_default();
        format!("{} v{}", text("title"), text("version"))
    }

    /// Every dialect that something belongs to.
    pub(crate) fn dialect_names(&self) -> BTreeSet<&str> {
        let operations = self.operations.iter().filter_map(|operation| operation.dialect.as_deref());
        let fields = self.schemas.values().flat_map(|schema| schema.properties.values());
        let fields = fields.flat_map(|field| {
            field.dialect.as_deref().into_iter().chain(field.dialect_patterns.keys().map(String::as_str))
        });
        operations.chain(fields).collect()
    }

    fn verify(&self) -> Result<()> {
        self.reachable(self.schemas.keys().cloned())?;
        let mut ids = BTreeSet::new();
        for operation in &self.operations {
            if !ids.insert(operation.method_name()) {
                return Err(Error::new(format!("there are two operations `{}`", operation.id)));
            }
            for piece in operation.path.split('/').filter_map(|p| p.strip_prefix('{')) {
                let name = piece.trim_end_matches('}');
                if !operation.given(Place::Path).any(|p| p.name == name) {
                    return Err(Error::new(format!(
                        "{}: the path's `{name}` is not described",
                        operation.id
                    )));
                }
            }
            for parameter in &operation.parameters {
                if let Some(from) = &parameter.default_from_path
                    && !operation.given(Place::Path).any(|p| p.name == *from)
                {
                    return Err(Error::new(format!("{}: the path has no `{from}`", operation.id)));
                }
            }
        }
        codes::verify(&self.errors, &self.common_errors, &self.operations, &self.rules)
    }
}

fn references(schema: &Schema, into: &mut Vec<String>) {
    into.extend(schema.referred().map(str::to_owned));
    let parts = schema.all_of.iter().flatten().chain(schema.one_of.iter().flatten());
    for part in parts.chain(schema.properties.values()).chain(schema.items.as_deref()) {
        references(part, into);
    }
    if let Some(crate::schema::Additional::Of(part)) = &schema.additional_properties {
        references(part, into);
    }
}
