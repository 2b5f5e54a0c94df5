//! Every builder and every verb with arguments: what a call sends, and what is refused before anything is sent.
//!
//! Each line of `tests/goldens/*.txt` is a call with the requests that a recording peer saw of it, or with the refusal.
//! `UPDATE_GOLDENS=1 cargo test -p sandboxer-tests --test builder_goldens` writes the files anew.

#[path = "builder_goldens_support/mod.rs"]
mod builder_goldens_support;
#[path = "builder_goldens_lines/mod.rs"]
mod lines;

use std::path::Path;

use builder_goldens_support::{
    book::{Book, call, plain, refused},
    coverage,
};
use sandboxer::Create;
use sandboxer_tests::surface::Surface;

/// Types whose methods send nothing, or are held against a golden of their own, and why.
const TYPES: &[(&str, &str)] = &[
    ("ByteBody", "gives out what was answered"),
    ("Download", "gives out what was answered"),
    ("EnvMap", "a part of requests, which have goldens of their own"),
    ("InvalidField", "says why something is refused"),
    ("LogStream", "gives out what was answered"),
    ("MemoryReplayGuard", "remembers deliveries"),
    ("Offsets", "a place in an output"),
    ("Output", "what was answered"),
    ("OutputBytes", "gives out what was answered"),
    ("OutputLines", "gives out what was answered"),
    ("OutputText", "gives out what was answered"),
    ("PartialOutput", "what was answered"),
    ("Patch", "a part of requests, which have goldens of their own"),
    ("ReplayGuard", "is the caller's to write"),
    ("Secret", "a part of requests, which have goldens of their own"),
    ("Signal", "what was answered"),
    ("SignatureHeaders", "what came with a delivery"),
    ("TextDecoder", "decodes what was answered"),
];

/// Methods that need no line, and why.
const METHODS: &[(&str, &str, &str)] = &[
    ("AsyncSandboxer", "set_shared", "the lines of the default client begin with it"),
    ("AsyncSnapshot", "download_chunk", "goes to a signed address of the service's; see the SDK's own tests"),
    ("Attach", "keep_output", "keeps what was answered"),
    ("Builder", "add_root_certificate", "a good one shows in TLS alone; a bad one has a line"),
    ("Builder", "clock", "every time in every golden comes from it"),
    ("Builder", "ignore_env", "the variables of a process are every test's"),
    ("Builder", "no_proxy", "the variables of a process are every test's"),
    ("EventStream", "until", "asks the caller; see the SDK's own tests"),
    ("ExecStream", "keep_output", "keeps what was answered"),
    ("Transfer", "length", "shows in refusals and in uploads to signed addresses"),
    ("Transfer", "progress", "tells the caller; see the SDK's own tests"),
    ("Transfer", "resumes", "shows where a download breaks; see the SDK's own tests"),
    ("Verifier", "parse", "as `verify`"),
    ("Verifier", "parse_at", "as `verify_at`"),
];

#[tokio::test]
async fn an_option_that_is_dropped_is_found() {
    let mut book = Book::open("none").await;
    let client = book.client();
    plain!(book, client.create(Create::new()).await);
    call!(book, client.create(Create::new().kind("small")).await);
    assert_eq!(book.problems(), Vec::<String>::new());
    call!(book, client.create(Create::new().wait(true)).await);
    refused!(book, client.create(Create::new()).await);
    let problems = book.problems();
    assert!(
        problems[0]
            .starts_with("`client.create(Create::new().wait(true)).await` does what the plain line does")
    );
    assert!(
        problems[1].starts_with("`client.create(Create::new()).await` is not refused: fine"),
        "{problems:?}"
    );
    assert!(problems[2].contains("sends something"), "{problems:?}");
}

#[test]
fn a_setter_without_a_line_is_found() {
    let surface = Surface::hand_written(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk/src"));
    let empty = tempfile::tempdir().unwrap();
    let lines = "plain: client.create(Create::new()).await\ncall: client.create(Create::new().kind(\"small\")).await\n\
                 refused: client.create(Create::new().name(\"\")).await\n\
                 call: client.create(Create::new().no_env().fail_fast()).await\n";
    std::fs::write(empty.path().join("a.txt"), lines).unwrap();
    let problems = coverage::problems(&surface, empty.path(), &[("Signal", "")], &[("Create", "kind", "")]);
    let has = |text: &str| problems.iter().any(|problem| problem.contains(text));
    assert!(
        has("Create::name has no line")
            && has("Fork::kind has no line")
            && has("AsyncSandbox::host has no line")
    );
    assert!(!has("Create::kind has no line") && !has("AsyncSandboxer::create has no line"));
    assert!(has("Create::kind is excused, but has a line") && has("sets more than one thing"));
}

#[test]
fn every_setter_and_every_argument_has_a_line() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let surface = Surface::hand_written(&root.join("../sdk/src"));
    let problems = coverage::problems(&surface, &root.join("goldens"), TYPES, METHODS);
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
