//! The cases of JSON answers, errors included, through the low-level client.

use std::collections::{BTreeMap, BTreeSet};

use sandboxer::Dialect;
use sandboxer_mock_server::checks::translate;
use serde_json::json;

use crate::{
    corpus::{self, Case, VARIANTS},
    wire::{Wire, check},
};

fn both(wire: &Wire, id: &str, case: &Case) {
    wire.answer(id, case);
    check(&format!("{id}: {}", case.what), id, case, &wire.call(id));
    check(&format!("{id}, blocking: {}", case.what), id, case, &wire.call_blocking(id));
}

#[test]
fn the_corpus_has_every_answer_in_every_variant() {
    let fixtures = corpus::read();
    let index = include_str!("../../fixtures/README.md");
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for fixture in &fixtures {
        assert!(index.contains(&format!("`{}`", fixture.name)), "the index lacks {}", fixture.name);
        assert!(!fixture.follows.is_empty(), "{} follows nothing", fixture.name);
        let mut variants = BTreeSet::new();
        for case in fixture.cases() {
            assert!(VARIANTS.contains(&case.variant.as_str()), "{}: {}", case.what, case.variant);
            let reads = case.reads.is_some() || case.output.is_some() || !case.gives.is_empty();
            assert!(reads || case.fails.is_some(), "{} expects nothing", case.what);
            variants.insert(case.variant);
        }
        if fixture.name != "every" {
            assert_eq!(variants.len(), VARIANTS.len(), "{} has only {variants:?}", fixture.name);
        }
        if fixture.is_answer() {
            seen.entry(fixture.dialect().to_string()).or_default().extend(fixture.operations.iter().cloned());
        }
    }
    let mut covered = BTreeSet::new();
    for dialect in Dialect::ALL {
        covered.append(&mut seen.remove(&dialect.to_string()).unwrap_or_default());
        let wire = Wire::new(*dialect);
        let missing: Vec<_> = wire.json_operations().filter(|id| !covered.contains(*id)).collect();
        assert!(missing.is_empty(), "{dialect}: no fixture of {missing:?}");
    }
}

#[test]
fn captured_answers_are_as_documented() {
    for dialect in Dialect::ALL {
        let wire = Wire::new(*dialect);
        let definitions = translate::definitions(wire.spec.part("/components/schemas"));
        for fixture in corpus::read().iter().filter(|f| f.is_answer() && f.dialect() == *dialect) {
            let schema = wire.operation(&fixture.operations[0]).answer.clone().unwrap();
            let whole = json!({"$defs": definitions, "allOf": [translate::schema(&schema)]});
            let validator = jsonschema::validator_for(&whole).unwrap();
            let captured = fixture.cases().into_iter().filter(|case| case.variant == "captured");
            for case in captured.filter(|case| case.status.is_none_or(|status| status < 300)) {
                let value = case.value();
                let odd: Vec<_> =
                    validator.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
                assert!(odd.is_empty(), "{}: {odd:#?}", case.what);
            }
        }
    }
}

#[test]
fn every_case_is_read_as_the_corpus_says() {
    let fixtures = corpus::read();
    for dialect in Dialect::ALL {
        let wire = Wire::new(*dialect);
        let own = fixtures.iter().filter(|f| f.is_answer() && f.dialect() == *dialect);
        for fixture in own.chain(fixtures.iter().filter(|f| f.name == "errors")) {
            for id in &fixture.operations {
                fixture.cases().iter().for_each(|case| both(&wire, id, case));
            }
        }
    }
}

#[test]
fn what_can_happen_to_any_answer_is_read_alike_everywhere() {
    let fixtures = corpus::read();
    let every = corpus::named("every");
    for dialect in Dialect::ALL {
        let wire = Wire::new(*dialect);
        for fixture in fixtures.iter().filter(|f| f.is_answer() && f.dialect() == *dialect) {
            for id in &fixture.operations {
                for mut case in fixture.joined_with(&every) {
                    if let Some(fails) =
                        case.fails.as_mut().filter(|f| f.code.as_deref() == Some("unexpected_response"))
                    {
                        // The message names the operation too.
                        let says = fails.says.take().unwrap_or_default();
                        fails.says = Some(if says.starts_with("the body") {
                            format!("the answer to {id} cannot be read: {says}")
                        } else {
                            format!("the answer to {id} {says}")
                        });
                    }
                    both(&wire, id, &case);
                }
            }
        }
    }
}
