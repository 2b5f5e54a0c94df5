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
