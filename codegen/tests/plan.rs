//! The plan of the workspace's own document: fresh, repeatable, and guarded by its counts.

use std::{fs, path::PathBuf};

use sandboxer_codegen::{Artifact, Inputs, OVERLAYS, SPEC, check, plan, workspace_root};

fn inputs() -> Inputs {
    Inputs::read(&workspace_root()).unwrap()
}

fn artifact<'a>(artifacts: &'a [Artifact], path: &str) -> &'a Artifact {
    artifacts.iter().find(|artifact| artifact.path == path).unwrap_or_else(|| panic!("no {path}"))
}

fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn what_is_committed_is_fresh() {
    let difference = check::compare(&workspace_root(), &plan(&inputs()).unwrap()).unwrap();
    assert!(difference.is_empty(), "run `cargo run -p sandboxer-codegen`:\n{difference}");
}

#[test]
fn the_same_document_gives_the_same_bytes() {
    assert_eq!(plan(&inputs()).unwrap(), plan(&inputs()).unwrap());
}

#[test]
fn an_edit_of_the_document_shows_as_a_diff() {
    let root = scratch("edited");
    for artifact in plan(&inputs()).unwrap() {
        artifact.write(&root).unwrap();
    }
    let mut edited = inputs();
    edited.spec = edited.spec.replace("Says who the key belongs to.", "Says whose key it is.");
    let difference = check::compare(&root, &plan(&edited).unwrap()).unwrap();
    let old = "-    /// Says who the key belongs to.\n";
    let new = "+    /// Says whose key it is.\n";
    assert!(difference.contains(old) && difference.contains(new), "{difference}");
    assert!(difference.contains("--- specs/specs.lock.toml (on disk)"), "{difference}");
}

#[test]
fn missing_changed_and_left_over_files_are_differences() {
    let root = scratch("files");
    let artifacts = plan(&inputs()).unwrap();
    for artifact in &artifacts {
        artifact.write(&root).unwrap();
    }
    assert_eq!(check::compare(&root, &artifacts).unwrap(), "");
    fs::write(root.join("sdk/src/generated/models/old.rs"), "// old\n").unwrap();
    assert!(check::compare(&root, &artifacts).unwrap().contains("-// old"));
    fs::remove_file(root.join("sdk/src/generated/models/old.rs")).unwrap();
    fs::remove_file(root.join("specs/specs.lock.toml")).unwrap();
    assert!(check::compare(&root, &artifacts).unwrap().contains("+[generators]"));
    artifact(&artifacts, "specs/specs.lock.toml").write(&root).unwrap();
    fs::write(root.join("sdk/src/generated/api.rs"), [0xff]).unwrap();
    assert!(check::compare(&root, &artifacts).unwrap().contains("+++ sdk/src/generated/api.rs (generated)"));
}

#[test]
fn every_edit_fails_on_a_wrong_count() {
    let names: Vec<_> = inputs().counts.names().collect();
    assert_eq!(names.len(), 8);
    for name in names {
        let mut wrong = inputs();
        wrong.counts = wrong.counts.with(name, 1000);
        let error = plan(&wrong).map(drop).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("1000"), "{error}");
    }
}

#[test]
fn the_lock_names_what_went_in_and_came_out() {
    let inputs = inputs();
    let artifacts = plan(&inputs).unwrap();
    let lock = &artifact(&artifacts, "specs/specs.lock.toml").text;
    let lock: toml::Table = lock.parse().unwrap();
    assert_eq!(lock["generators"]["progenitor"].as_str(), Some("0.15.1"));
    assert_eq!(lock["spec"].as_table().unwrap().keys().collect::<Vec<_>>(), [OVERLAYS[0], SPEC]);
    assert_eq!(lock["artifacts"].as_table().unwrap().len(), artifacts.len() - 1);
    assert_eq!(lock["edits"]["split-streaming-faces"].as_integer(), Some(2));
}

#[test]
fn the_clients_have_every_operation_and_the_routes_too() {
    let artifacts = plan(&inputs()).unwrap();
    let count = |path: &str, what: &str| artifact(&artifacts, path).text.matches(what).count();
    // 93 operations less two WebSockets, two streaming faces, and what the overlay adds.
    assert_eq!(count("sdk/src/generated/api.rs", "pub async fn "), 91 + 2 + 11);
    assert_eq!(count("sdk-blocking/src/generated/api.rs", "pub fn "), 91 + 2 + 11);
    assert_eq!(
        count("sdk/src/generated/operations.rs", "=> {\n                &OperationInfo {"),
        93 + 2 + 11
    );
    assert_eq!(count("mock-server/src/generated/router.rs", "operation: Operation::"), 93 + 11);
}

#[test]
fn an_overlay_edit_fails_on_a_wrong_count_or_place() {
    let refused = |from: &str, to: &str| {
        let mut edited = inputs();
        let overlay = &mut edited.overlays[0].1;
        assert!(overlay.contains(from), "{from}");
        *overlay = overlay.replacen(from, to, 1);
        plan(&edited).map(drop).unwrap_err().to_string()
    };
    for (from, to, says) in [
        ("expect: 1", "expect: 2", "edit `title`: changed 1 places, 2 were expected"),
        ("at: /info/title", "at: /info/name", "there is no `name`"),
        ("from: X-Sandboxer-Org", "from: X-Org", "edit `org-header`: changed 0 places"),
        ("value: boat HTTP API", "value: Sandboxer HTTP API", "it is that already"),
        ("value: [boat_restoring]}", "value: [boat_starting]}", "there already"),
        ("absent: [createOrganization", "absent: [makeOrganization", "makeOrganization"),
        ("commandVariables: exports", "commandVariables: shouts", "shouts"),
        ("overlay: 1", "overlay: 2", "version 1"),
        ("  - name: title\n    set:", "  - name: title\n    put:", "put"),
        (
            "{at: /servers/0/url, value: 'https://boat.dev/api/v1'}",
            "{at: /openapi, value: '3.0.3-boat'}",
            "the client cannot be told of this",
        ),
    ] {
        let error = refused(from, to);
        assert!(error.contains(says), "{to}: {error}");
    }
}

#[test]
fn generated_files_say_so() {
    for artifact in plan(&inputs()).unwrap() {
        let first = artifact.text.lines().next().unwrap();
        assert!(
            first.contains("@generated by sandboxer-codegen") && first.contains("do not edit"),
            "{first}"
        );
    }
}
