//! The API document is valid OpenAPI by somebody else's word, names every known code, and says each thing once.
//!
//! The oracle is the document itself, read as YAML, and lists written down here; the SDK's tables are compared with both.

mod spec_valid_support;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use sandboxer::operations::{ERROR_CODES, Media, Operation, REPEAT_RULES, Repeat};
use sandboxer_mock_server::{Scenario, WorldSeed};
use sandboxer_tests::python;
use serde_json::{Value, json};
use spec_valid_support::{ACTIONS, CODES, boat_document, classes, document, operations};

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/spec/validate.py")
}

#[test]
fn both_documents_are_valid_openapi() {
    let Some(python) = python::openapi_validator() else { return };
    let faults = |document: &Value| -> Vec<String> {
        let output = python.run(&script(), document.to_string().as_bytes());
        serde_json::from_slice(&output).unwrap()
    };
    assert_eq!(faults(&document()), Vec::<String>::new());
    assert_eq!(faults(&boat_document()), Vec::<String>::new(), "with boat's overlay");

    // The validator does look: it finds what is put in.
    let mut broken = document();
    broken["paths"]["/me"]["get"]["responses"] = serde_json::json!({});
    broken["components"]["schemas"]["SandboxState"]["type"] = "text".into();
    let found = faults(&broken);
    assert!(found.iter().any(|fault| fault.contains("/me/get/responses")), "{found:?}");
    assert!(found.iter().any(|fault| fault.contains("SandboxState")), "{found:?}");
}

/// What `$ref` leads to.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.map_or(value, |pointer| document.pointer(pointer).unwrap())
}

/// Whether a value of this schema can have something at these segments of a pointer.
fn reaches(document: &Value, schema: &Value, segments: &[&str]) -> bool {
    let schema = resolved(document, schema);
    let Some((first, rest)) = segments.split_first() else { return !schema.is_null() };
    let within = if first.parse::<usize>().is_ok() { &schema["items"] } else { &schema["properties"][first] };
    let parts = ["allOf", "oneOf"].into_iter().flat_map(|name| schema[name].as_array().into_iter().flatten());
    (!within.is_null() && reaches(document, within, rest))
        || parts.into_iter().any(|part| reaches(document, part, segments))
}

/// Where an operation's parameters are and what they are called.
type Parameters<'a> = BTreeSet<(&'a str, &'a str)>;

/// Each operation with its parameters, those of its path included.
fn with_parameters(document: &Value) -> BTreeMap<&str, (&Value, Parameters<'_>)> {
    let mut found = BTreeMap::new();
    for item in document["paths"].as_object().unwrap().values() {
        for (method, operation) in item.as_object().unwrap() {
            let lists = [&item["parameters"], &operation["parameters"]];
            let all = lists.into_iter().filter_map(Value::as_array).flatten();
            let parameters = all
                .map(|parameter| resolved(document, parameter))
                .map(|parameter| (parameter["in"].as_str().unwrap(), parameter["name"].as_str().unwrap()))
                .collect();
            if method != "parameters" {
                found.insert(operation["operationId"].as_str().unwrap(), (operation, parameters));
            }
        }
    }
    found
}

/// Whether a link's expression names something that the operation is asked with or answers with.
fn is_there(document: &Value, operation: &Value, own: &Parameters<'_>, answer: &Value, source: &str) -> bool {
    let holds = |of: &Value, pointer: &str| {
        let schema = &of["content"]["application/json"]["schema"];
        reaches(document, schema, &pointer.split('/').collect::<Vec<_>>())
    };
    if let Some(pointer) = source.strip_prefix("$response.body#/") {
        return holds(answer, pointer);
    }
    if let Some(pointer) = source.strip_prefix("$request.body#/") {
        return holds(&operation["requestBody"], pointer);
    }
    source.strip_prefix("$request.path.").is_some_and(|path| own.contains(&("path", path)))
}

#[test]
fn a_link_leads_from_what_was_asked_or_answered_to_a_parameter() {
    for document in [document(), boat_document()] {
        let known = with_parameters(&document);
        let mut count = 0;
        for (name, (operation, own)) in &known {
            let answers = operation["responses"].as_object().unwrap().values();
            let links = answers.flat_map(|answer| {
                let links = answer["links"].as_object().into_iter().flat_map(|links| links.values());
                links.map(move |link| (answer, link))
            });
            for (answer, link) in links {
                let target = link["operationId"].as_str().unwrap();
                let (_, parameters) = known.get(target).unwrap_or_else(|| panic!("{name}: {target}"));
                for (parameter, source) in link["parameters"].as_object().unwrap() {
                    let is_known = parameters.iter().any(|(_, known)| known == parameter);
                    assert!(is_known, "{name}: {target} has no {parameter}");
                    let source = source.as_str().unwrap();
                    assert!(is_there(&document, operation, own, answer, source), "{name}: {source}");
                }
                count += 1;
            }
        }
        assert!(count >= 40, "{count}");
    }
    let (document, nothing) = (document(), BTreeSet::new());
    let create = with_parameters(&document)["create"].0.clone();
    let answer = create["responses"]["202"].clone();
    let holds = |source| is_there(&document, &create, &nothing, &answer, source);
    assert!(holds("$response.body#/sandbox/id") && !holds("$response.body#/sandboxId"));
    assert!(holds("$request.body#/from") && !holds("$request.path.sandboxId"));
}

#[test]
fn every_known_code_is_in_the_documents_under_its_status() {
    let (own, boat) = (document(), boat_document());
    let mut missing = Vec::new();
    for (code, status, boat_only) in CODES {
        let in_own = own["x-error-codes"].get(code);
        let in_boat = boat["x-error-codes"].get(code);
        let described = if *boat_only { in_boat } else { in_own };
        match described.and_then(|described| described["status"].as_u64()) {
            Some(described) if described == u64::from(*status) => {}
            found => missing.push(format!("{code}: {found:?} instead of {status}")),
        }
        // A code that a service may answer with is one that the client knows, in the spelling it reports it in.
        let alias = boat["x-service"]["codeAliases"].get(code).and_then(Value::as_str);
        let reported = alias.unwrap_or(code);
        if !ERROR_CODES.iter().any(|known| known.code == reported) {
            missing.push(format!("{code}: the client does not know `{reported}`"));
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(CODES.len() >= 77, "{}", CODES.len());
    let names: BTreeSet<_> = CODES.iter().map(|(code, ..)| code).collect();
    assert_eq!(names.len(), CODES.len());
    for (document, expected) in [(&own, 78), (&boat, 97)] {
        let codes = document["x-error-codes"].as_object().unwrap();
        assert_eq!(codes.len(), expected);
        for (code, described) in codes {
            assert!(described["meaning"].as_str().is_some_and(|meaning| meaning.ends_with('.')), "{code}");
        }
    }
}

#[test]
fn a_code_is_described_once_and_used() {
    for document in [document(), boat_document()] {
        let described: BTreeSet<_> = document["x-error-codes"].as_object().unwrap().keys().cloned().collect();
        let listed = |value: &Value| -> Vec<String> {
            let texts = value.as_array().into_iter().flatten().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        let mut used: BTreeSet<String> = listed(&document["x-common-errors"]).into_iter().collect();
        for operation in operations(&document) {
            let codes = listed(&operation["x-errors"]);
            assert_eq!(
                codes.iter().collect::<BTreeSet<_>>().len(),
                codes.len(),
                "{}",
                operation["operationId"]
            );
            used.extend(codes);
        }
        for row in document["x-repeat-table"].as_array().unwrap() {
            used.extend(listed(&row["when"]["codes"]));
        }
        let unknown: Vec<_> = used.difference(&described).collect();
        assert!(unknown.is_empty(), "used, not described: {unknown:?}");
    }
}

/// Whether a world file knows the setting of this path: each part but the last is a table, or a list of tables.
fn is_setting(path: &str) -> bool {
    let parts: Vec<&str> = path.split('.').collect();
    let (last, outer) = parts.split_last().unwrap();
    let shapes = 1_u32 << outer.len();
    // In a shape that is another than the world's the part itself is refused, not its name.
    (0..shapes).all(|lists| {
        let setting = outer.iter().enumerate().rev().fold(json!({ *last: 1 }), |inner, (at, part)| {
            let is_list = lists & (1 << at) != 0;
            if is_list { json!({ *part: [inner] }) } else { json!({ *part: inner }) }
        });
        let read = serde_json::from_value::<WorldSeed>(setting).map(drop);
        read.is_ok() || !read.unwrap_err().to_string().contains("unknown field")
    })
}

#[test]
fn every_code_says_how_the_local_server_is_brought_to_it() {
    for document in [document(), boat_document()] {
        for (code, described) in document["x-error-codes"].as_object().unwrap() {
            let way = described["produced"].as_str().unwrap_or_default();
            assert!(["ruled", "scenario", "elsewhere"].contains(&way), "{code}: {way:?}");
            let scenarios = described["scenarios"].as_array().into_iter().flatten();
            let names: Vec<&str> = scenarios.map(|name| name.as_str().unwrap()).collect();
            assert_eq!(way == "scenario", !names.is_empty(), "{code}");
            for name in names {
                let is_known = match name.contains('.') {
                    true => is_setting(name),
                    false => serde_json::from_value::<Scenario>(name.into()).is_ok(),
                };
                assert!(is_known, "{code}: the local server has no {name}");
            }
        }
    }
    assert!(is_setting("machines.paused") && !is_setting("machines.pause"));
    assert!(is_setting("organisations.members.active_sandboxes") && !is_setting("organisations.members.cap"));
    assert!(!is_setting("machine.paused"));
}

#[test]
fn one_table_says_what_is_repeated() {
    let document = document();
    let rows = document["x-repeat-table"].as_array().unwrap();
    assert_eq!(rows.len(), REPEAT_RULES.len());
    let names: BTreeSet<_> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), rows.len(), "a row's name is its own");
    for row in rows {
        assert!(row["why"].as_str().is_some_and(|why| why.ends_with('.')), "{row}");
        assert!(row["when"].as_object().is_some_and(|when| !when.is_empty()), "{row}");
        for class in row["repeat"].as_array().unwrap() {
            assert!(classes().contains(&class.as_str().unwrap()), "{row}");
        }
    }
    // No row is hidden behind an earlier one: whatever the later asks for is not all that the earlier needs.
    for (at, later) in rows.iter().enumerate() {
        for earlier in &rows[..at] {
            let (wide, narrow) = (earlier["when"].as_object().unwrap(), later["when"].as_object().unwrap());
            let hidden = wide.iter().all(|(key, value)| match (key.as_str(), narrow.get(key)) {
                ("codes", Some(codes)) => {
                    let all = value.as_array().unwrap();
                    codes.as_array().unwrap().iter().all(|code| all.contains(code))
                }
                (_, given) => given == Some(value),
            });
            assert!(!hidden, "{} hides {}", earlier["name"], later["name"]);
        }
    }
    // The classes, the only other part of the rule, stand at each operation and nowhere else.
    for operation in operations(&document) {
        assert!(classes().contains(&operation["x-repeat"].as_str().unwrap()), "{operation}");
        let others: Vec<_> = operation
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| key.starts_with("x-") && (key.contains("retr") || key.contains("repeat")))
            .collect();
        assert_eq!(others, ["x-repeat"], "{}", operation["operationId"]);
    }
}

#[test]
fn the_clients_tables_are_the_documents() {
    let document = document();
    let known: BTreeMap<&str, Operation> = Operation::ALL.iter().map(|known| (known.id(), *known)).collect();
    let mut count = 0;
    for operation in operations(&document) {
        let id = operation["operationId"].as_str().unwrap();
        let info = known[id].info();
        count += 1;
        assert_eq!(operation["x-key-action"].as_str(), info.key_action, "{id}");
        let class = match info.repeat {
            Repeat::Safe => "safe",
            Repeat::Keyed => "keyed",
            Repeat::Replace => "replace",
            Repeat::Command => "command",
            Repeat::Write => "write",
            other => panic!("{id}: {other:?}"),
        };
        assert_eq!(operation["x-repeat"], class, "{id}");
        if operation.get("x-websocket").is_some() {
            assert_eq!(info.media, Media::WebSocket, "{id}");
        }
        for code in operation["x-errors"].as_array().unwrap() {
            assert!(info.errors.contains(&code.as_str().unwrap()), "{id}: {code}");
        }
    }
    assert_eq!(count, 93);
}

#[test]
fn one_table_says_which_action_each_operation_needs() {
    let mut table: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for operation in operations(&document()) {
        let action = operation["x-key-action"].as_str().expect("every operation names one").to_owned();
        table.entry(action).or_default().insert(operation["operationId"].as_str().unwrap().to_owned());
    }
    let expected: BTreeMap<String, BTreeSet<String>> = ACTIONS
        .iter()
        .map(|(action, ids)| ((*action).to_owned(), ids.split_whitespace().map(str::to_owned).collect()))
        .collect();
    assert_eq!(table, expected);
}
