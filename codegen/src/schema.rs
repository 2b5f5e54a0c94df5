//! The parts of an OpenAPI schema and parameter that the generator understands; anything else is an error, so that a
//! misspelt key cannot pass unseen.

use indexmap::IndexMap;
use proc_macro2::Ident;
use serde::Deserialize;
use serde_json::Value;

use crate::names::field;

/// A schema, as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Schema {
    #[serde(rename = "$ref")]
    pub reference: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub format: Option<String>,
    #[serde(default)]
    pub nullable: bool,
    #[serde(rename = "enum")]
    pub values: Option<Vec<Value>>,
    pub default: Option<Value>,
    #[serde(rename = "example")]
    pub _example: Option<Value>,
    pub minimum: Option<i64>,
    pub maximum: Option<i64>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub pattern: Option<String>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub max_properties: Option<u64>,
    pub items: Option<Box<Schema>>,
    pub additional_properties: Option<Additional>,
    #[serde(default)]
    pub properties: IndexMap<String, Schema>,
    #[serde(default)]
    pub required: Vec<String>,
    pub all_of: Option<Vec<Schema>>,
    pub one_of: Option<Vec<Schema>>,
    pub discriminator: Option<Discriminator>,
    pub description: Option<String>,
    #[serde(rename = "x-essential", default)]
    pub essential: Vec<String>,
    #[serde(rename = "x-secret", default)]
    pub secret: bool,
    #[serde(rename = "x-three-state", default)]
    pub three_state: bool,
    #[serde(rename = "x-check")]
    pub check: Option<Check>,
    /// A text that the service takes besides, from older callers.
    #[serde(rename = "x-also")]
    pub also: Option<String>,
    #[serde(rename = "x-max-bytes")]
    pub max_bytes: Option<u64>,
    #[serde(rename = "x-error-code")]
    pub error_code: Option<String>,
    /// What each of the known values means.
    #[serde(rename = "x-meanings", default)]
    pub meanings: IndexMap<String, String>,
    /// The only dialect that takes it.
    #[serde(rename = "x-dialect")]
    pub dialect: Option<String>,
    /// Patterns of dialects that have another one.
    #[serde(rename = "x-dialect-patterns", default)]
    pub dialect_patterns: IndexMap<String, String>,
}

/// What an object says about properties it does not name.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Additional {
    /// Whether there may be any.
    Allowed(bool),
    /// What each of them is.
    Of(Box<Schema>),
}

/// A rule that a schema cannot say.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Check {
    /// Names and sizes of environment variables.
    EnvMap,
    /// No NUL character.
    NoNul,
}

/// How to tell the variants of a `oneOf` apart.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Discriminator {
    pub property_name: String,
    pub mapping: IndexMap<String, String>,
}

/// Where a parameter is sent.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Place {
    /// In the path.
    Path,
    /// In the query.
    Query,
    /// In a header.
    Header,
}

/// A parameter, references resolved.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Parameter {
    pub name: String,
    #[serde(rename = "in")]
    pub place: Place,
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub description: String,
    pub schema: Schema,
    #[serde(rename = "x-filled-by")]
    pub filled_by: Option<FilledBy>,
    #[serde(rename = "x-default-from-path")]
    pub default_from_path: Option<String>,
    /// The codes that whatever takes the parameter can answer with because of it.
    #[serde(rename = "x-errors", default)]
    pub errors: Vec<String>,
}

/// Who writes a header, when it is not the caller.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FilledBy {
    /// The client's request hook.
    Client,
}

impl Parameter {
    /// Its field's or argument's name; what every header of the service begins with is left out.
    pub(crate) fn rust_name(&self) -> Ident {
        field(self.name.strip_prefix("X-Sandboxer-").unwrap_or(&self.name))
    }
}

impl Schema {
    /// The name of the component that is referred to, directly or as the only part of `allOf`.
    pub(crate) fn referred(&self) -> Option<&str> {
        let reference = match (&self.reference, self.all_of.as_deref()) {
            (Some(reference), _) => reference,
            (None, Some([only])) => only.reference.as_ref()?,
            _ => return None,
        };
        reference.strip_prefix("#/components/schemas/")
    }
}
