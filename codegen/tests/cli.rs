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

#[test]
fn what_suites_saw_is_shown_and_what_they_did_not_see_is_an_error() {
    let file = std::env::temp_dir().join(format!("sandboxer-codegen-seen-{}", std::process::id()));
    std::fs::write(&file, "me 200 -\nme 401 unauthorized\n").unwrap();
    let output = run(&["--seen", file.to_str().unwrap()]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let (table, faults) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(table.lines().any(|line| line.starts_with("me  ") && line.ends_with("  200, 401 unauthorized")));
    let faults: Vec<&str> = faults.lines().collect();
    assert!(faults.contains(&"limits: no success") && !faults.contains(&"me: no success"), "{faults:?}");

    let none = run(&["--seen", file.to_str().unwrap()]);
    assert_eq!(none.status.code(), Some(2));
    assert_eq!(run(&["--seen"]).status.code(), Some(2));
}
