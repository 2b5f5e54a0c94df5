//! Every operation meets every row of the repeat table, in both dialects and both twins: how often it is tried, with which
//! key, after which waits, and what error comes of it in the end.

mod repeat_table_support;

use std::collections::{BTreeMap, BTreeSet};

use repeat_table_support::{
    Bench, Case,
    table::{NO_ROW, hits, rows},
};
use sandboxer::Dialect;
use sandboxer_tests::{
    drive::Drive,
    generated::every_call,
    pacer::Pacer,
    spec::{Spec, SpecOperation},
};
use serde_json::Value;

/// Each operation of the dialect's document with the call that the client has for it.
fn calls(spec: &Spec, dialect: Dialect) -> Vec<(SpecOperation, Drive)> {
    let drives: BTreeMap<_, _> =
        every_call(dialect).into_iter().map(|drive| (drive.operation.id().to_owned(), drive)).collect();
    let operations = spec.operations();
    let ids: BTreeSet<_> = operations.iter().map(|operation| operation.id.clone()).collect();
    assert_eq!(ids, drives.keys().cloned().collect(), "the client's operations are the document's");
    operations.into_iter().map(|operation| (operation.clone(), drives[&operation.id])).collect()
}

/// Runs every operation through every row; gives the number of operations, of rows and of pairs of them that were met.
///
/// For each pair one failure that belongs to the row is taken, by turns. If it is to be `thorough`, the first operation of
/// each class meets all of them, and every operation each way in which the network fails.
fn meet_all(
    dialect: Dialect,
    thorough: bool,
    mut call: impl FnMut(&Bench, &Pacer, &Drive) -> sandboxer::Result<()>,
) -> (usize, usize, usize) {
    let spec = Spec::read(dialect);
    let (rows, calls) = (rows(&spec), calls(&spec, dialect));
    let mut bench = Bench::new(dialect);
    // What an answer says is the same for all operations.
    let answers: Vec<_> = rows.iter().map(|row| hits(&spec, &rows, row, &calls[0].0)).collect();
    let (mut met, mut classes) = (BTreeSet::new(), BTreeSet::new());
    for (turn, (operation, drive)) in calls.iter().enumerate() {
        let first = classes.insert(&operation.repeat);
        let sent: Value = serde_json::from_str(drive.least.sent).unwrap();
        for (row, answers) in rows.iter().zip(&answers) {
            let own = row.is_about_the_network().then(|| hits(&spec, &rows, row, operation));
            let all = own.as_ref().unwrap_or(answers);
            let every = thorough && (first || own.is_some());
            let variants = if every { &all[..] } else { std::slice::from_ref(&all[turn % all.len()]) };
            for hit in variants {
                // What is never repeated never gets to a second answer.
                let may = row.repeats(&operation.repeat);
                for once in [false, true].into_iter().filter(|once| may || !once) {
                    let case = Case { spec: &spec, operation, row, hit, once, sent: &sent };
                    let pacer = Pacer::default();
                    bench.peer.play(case.script(), &pacer);
                    let result = call(&bench, &pacer, drive);
                    case.check(&mut bench, &pacer, result);
                    met.insert((&operation.id, &row.name));
                }
            }
        }
    }
    (calls.len(), rows.len(), met.len())
}

fn meet_all_async(dialect: Dialect, thorough: bool) -> (usize, usize, usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    meet_all(dialect, thorough, |bench, pacer, drive| {
        runtime.block_on(async {
            let client = bench.client(pacer);
            (drive.least.call)(client.api()).await.map(drop)
        })
    })
}

fn meet_all_blocking(dialect: Dialect) -> (usize, usize, usize) {
    meet_all(dialect, false, |bench, pacer, drive| {
        let client = sandboxer_blocking::Sandboxer::from_async(bench.client(pacer));
        (drive.least.blocking)(client.api()).map(drop)
    })
}

#[test]
fn the_table_has_these_rows() {
    for dialect in Dialect::ALL {
        let names: Vec<_> = rows(&Spec::read(*dialect)).into_iter().map(|row| row.name).collect();
        let expected = [
            "not-sent",
            "cut",
            "no-machine-now",
            "day-quota",
            "says-final",
            "starting",
            "restoring",
            "relay-retryable",
            "relay",
            "key-in-use",
            "not-up-yet",
            "throttled",
            "start-quota",
            "says-again",
            "server-fault",
            NO_ROW,
        ];
        assert_eq!(names, expected);
    }
}

#[test]
fn every_operation_meets_every_row() {
    // 91 operations and two streaming faces; 15 rows and what fits none.
    assert_eq!(meet_all_async(Dialect::Sandboxer, true), (93, 16, 93 * 16));
}

#[test]
fn every_operation_meets_every_row_in_the_other_dialect() {
    // Ten operations less, two of them without a method anyway, and the eleven file operations more.
    assert_eq!(meet_all_async(Dialect::Boat, false), (96, 16, 96 * 16));
}

#[test]
fn every_operation_meets_every_row_without_async() {
    assert_eq!(meet_all_blocking(Dialect::Sandboxer), (93, 16, 93 * 16));
}

#[test]
fn every_operation_meets_every_row_without_async_in_the_other_dialect() {
    assert_eq!(meet_all_blocking(Dialect::Boat), (96, 16, 96 * 16));
}
