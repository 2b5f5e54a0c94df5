//! Every list that the API document pages has a verb that reads it to its end.

use std::collections::BTreeMap;

use quote::ToTokens as _;
use sandboxer_tests::surface::Surface;
use serde_yaml_ng::Value;

/// Operation, and the type and verb that read it page by page.
const READ_BY: &[(&str, &str, &str)] = &[
    ("sandboxes", "AsyncSandboxer", "list"),
    ("repos", "AsyncRepositories", "list"),
    ("commandHistory", "AsyncSandbox", "history"),
    ("commandLogs", "AsyncCommand", "logs"),
    ("events", "AsyncSandbox", "events"),
    ("listSnapshots", "AsyncSandboxer", "snapshots"),
    ("listSandboxSnapshots", "AsyncSandbox", "snapshots"),
];

/// What the twins call a list that is read as it is needed.
const LAZY: &[&str] = &["Pager", "LogStream", "EventStream"];

fn document() -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs/sandboxer.openapi.yaml");
    serde_yaml_ng::from_str(&std::fs::read_to_string(path).expect("the document")).expect("YAML")
}

/// What a reference leads to, or the value itself.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value.get("$ref").and_then(Value::as_str) {
        Some(reference) => reference
            .trim_start_matches("#/")
            .split('/')
            .fold(document, |at, key| at.get(key).unwrap_or_else(|| panic!("{reference} leads nowhere"))),
        None => value,
    }
}

/// Whether an answer of this schema says that there is more of it.
fn is_page(document: &Value, schema: &Value) -> bool {
    let schema = resolved(document, schema);
    let own = schema.get("properties").and_then(Value::as_mapping);
    let names = ["pageInfo", "nextCursor", "hasMore"];
    own.is_some_and(|own| own.keys().filter_map(Value::as_str).any(|name| names.contains(&name)))
        || ["allOf", "oneOf", "anyOf"].into_iter().any(|way| {
            schema
                .get(way)
                .and_then(Value::as_sequence)
                .is_some_and(|all| all.iter().any(|one| is_page(document, one)))
        })
}

/// The operations whose answers have more than one page, each with why it is taken for one.
fn paged(document: &Value) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (_, item) in document["paths"].as_mapping().expect("paths") {
        for (_, operation) in item.as_mapping().expect("an item") {
            let Some(id) = operation.get("operationId").and_then(Value::as_str) else { continue };
            let parameters = operation.get("parameters").and_then(Value::as_sequence);
            let cursor = parameters.into_iter().flatten().any(|parameter| {
                let parameter = resolved(document, parameter);
                parameter["in"] == "query" && matches!(parameter["name"].as_str(), Some("cursor" | "offset"))
            });
            if cursor {
                found.insert(id.to_owned(), "it takes a cursor".to_owned());
            }
            for (status, response) in operation["responses"].as_mapping().expect("responses") {
                let response = resolved(document, response);
                let success = status.as_str().is_some_and(|status| status.starts_with('2'));
                let contents = response.get("content").and_then(Value::as_mapping).filter(|_| success);
                for (_, content) in contents.into_iter().flatten() {
                    if content.get("schema").is_some_and(|schema| is_page(document, schema)) {
                        found.insert(id.to_owned(), "its answer says that there is more".to_owned());
                    }
                }
            }
        }
    }
    found
}

#[test]
fn every_paged_operation_has_a_verb_in_both_twins() {
    let document = document();
    let paged = paged(&document);
    let listed: Vec<&str> = READ_BY.iter().map(|(operation, ..)| *operation).collect();
    for (operation, why) in &paged {
        assert!(listed.contains(&operation.as_str()), "{operation} has no verb that reads all pages: {why}");
    }
    for operation in listed {
        assert!(paged.contains_key(operation), "{operation} is not paged, or not in the document");
    }
    let root =
        |name: &str| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
    let (sdk, twin) = (Surface::of_folder(&root("sdk")), Surface::of_folder(&root("sdk-blocking")));
    for (operation, kind, verb) in READ_BY {
        let twin_kind = if *kind == "AsyncCommand" { "CommandHandle" } else { &kind["Async".len()..] };
        for (surface, kind) in [(&sdk, *kind), (&twin, twin_kind)] {
            let method =
                surface.method(kind, verb).unwrap_or_else(|| panic!("{operation}: no {kind}::{verb}"));
            let answer =
                method.answer.as_ref().map(|answer| answer.to_token_stream().to_string()).unwrap_or_default();
            assert!(
                LAZY.iter().any(|lazy| answer.contains(lazy)),
                "{operation}: {kind}::{verb} answers {answer}"
            );
        }
    }
}
