//! The program's flags and exit codes.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sandboxer-codegen")).args(arguments).output().unwrap()
}

#[test]
fn a_fresh_tree_checks_clean() {
    let output = run(&["--check"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(output.stdout.is_empty());
}

#[test]
fn an_unknown_flag_is_named() {
    let output = run(&["--chekc"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--chekc"));
}

#[test]
fn the_document_of_a_dialect_is_printed() {
    let output = run(&["--print", "boat"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["x-service"]["name"], "boat");
    assert_eq!(document["openapi"], "3.0.3");
    let none = run(&["--print", "other"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("only sandboxer and boat"));
    assert_eq!(run(&["--print"]).status.code(), Some(2));
}
