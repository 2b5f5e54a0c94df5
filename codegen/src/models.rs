//! The public models, a file for each group of operations.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use proc_macro2::TokenStream;
use quote::quote;
use serde_json::Value;

use crate::{
    Artifact, Error, Result,
    edits::face_body_name,
    enums, format,
    load::{Answer, Document},
    names::ident,
    params, requests, responses, shape,
};

/// The group of what several others share.
const SHARED: &str = "shared";

/// The group of what is sent to webhook endpoints.
const WEBHOOKS: &str = "webhooks";

/// Generates every file below `generated/models`.
pub(crate) fn generate(document: &Document) -> Result<Vec<Artifact>> {
    let mut read = Vec::new();
    let mut sent = Vec::new();
    let mut groups: IndexMap<&str, TokenStream> = IndexMap::new();
    for operation in &document.operations {
        groups.entry(&operation.tag).or_default();
        sent.extend(operation.body.iter().map(|body| body.schema.clone()));
        read.extend(match &operation.answer {
            Answer::Json(name) | Answer::Ndjson(name) | Answer::Sse(name) => Some(name.clone()),
            Answer::Bytes | Answer::WebSocket => None,
        });
    }
    if let Some(event) = &document.webhook_event {
        groups.entry(WEBHOOKS).or_default();
        read.push(event.clone());
    }
    groups.insert(SHARED, TokenStream::new());
    let (read, sent) = (document.reachable(read)?, document.reachable(sent)?);
    let owners = owners(document)?;
    let mut forced: BTreeMap<&str, IndexMap<String, Value>> = BTreeMap::new();
    for operation in &document.operations {
        if let (Some(body), Some((_, fields))) = (&operation.body, &operation.face_of) {
            forced.entry(&body.schema).or_default().extend(fields.clone());
        }
    }

    for (name, schema) in &document.schemas {
        let Some(owner) = owners.get(name.as_str()) else { continue };
        let tokens = if shape::is_values(schema) {
            enums::values(name, schema)?
        } else if schema.one_of.is_some() {
            enums::choice(name, schema)?
        } else if schema.properties.is_empty() {
            continue;
        } else if read.contains(name) && sent.contains(name) {
            return Err(Error::new(format!("{name}: give what is sent and what is read names of their own")));
        } else if read.contains(name) {
            responses::structure(document, name, schema)?
        } else {
            requests::structure(
                document,
                name,
                schema,
                forced.get(name.as_str()).unwrap_or(&IndexMap::new()),
            )?
        };
        groups.entry(owner).or_default().extend(tokens);
    }
    for operation in document.called() {
        let group = groups.entry(&operation.tag).or_default();
        group.extend(params::structure(document, operation)?);
        if let (Some((_, fields)), Some(body)) = (&operation.face_of, &operation.body) {
            group.extend(requests::face_body(&face_body_name(operation), &body.schema, fields)?);
        }
    }
    files(&groups)
}

fn files(groups: &IndexMap<&str, TokenStream>) -> Result<Vec<Artifact>> {
    let mut index = TokenStream::new();
    let mut artifacts = Vec::new();
    for (group, tokens) in groups.iter().filter(|(_, tokens)| !tokens.is_empty()) {
        let module = ident(&crate::names::snake(group));
        let doc = format!("What is sent and read: {group}.");
        index.extend(quote!(mod #module; pub use #module::*;));
        artifacts.push(Artifact {
            path: format!("sdk/src/generated/models/{module}.rs"),
            text: format::tokens(tokens.clone(), &doc)?,
        });
    }
    let doc = "What is sent to and read from the service.\n//!\n//! What is read keeps unknown fields and unknown values; a \
               field that is missing or odd has its default. What\n//! is sent is made with `new`, filled in with setters, \
               and checked before it goes out.";
    let path = "sdk/src/generated/models/mod.rs".into();
    artifacts.push(Artifact { path, text: format::tokens(index, doc)? });
    Ok(artifacts)
}

/// Which group each schema belongs to: the only one whose operations lead to it, else the shared one. Schemas that only
/// failures lead to have none.
fn owners(document: &Document) -> Result<BTreeMap<String, &str>> {
    let mut roots_of: Vec<(&str, Vec<String>)> = Vec::new();
    for operation in &document.operations {
        let mut roots: Vec<String> = operation.body.iter().map(|body| body.schema.clone()).collect();
        if let Answer::Json(name) | Answer::Ndjson(name) | Answer::Sse(name) = &operation.answer {
            roots.push(name.clone());
        }
        roots.extend(operation.parameters.iter().filter_map(|p| p.schema.referred()).map(str::to_owned));
        roots_of.push((&operation.tag, roots));
    }
    roots_of.extend(document.webhook_event.iter().map(|event| (WEBHOOKS, vec![event.clone()])));
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    for (tag, roots) in roots_of {
        for name in document.reachable(roots)? {
            owners
                .entry(name)
                .and_modify(|owner| {
                    if *owner != tag {
                        *owner = SHARED
                    }
                })
                .or_insert(tag);
        }
    }
    Ok(owners)
}
