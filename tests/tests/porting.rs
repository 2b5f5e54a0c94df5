//! docs/porting.md speaks of every name of the two Python packages, and of no name that is not here.
//!
//! The last column of each of its tables holds names and expressions of ours, the others those of a package. Both sides
//! are looked up: ours in the sources of both twins, theirs in `porting/python_names.txt`.

mod porting_support;

use std::{collections::BTreeSet, fs, path::PathBuf};

use porting_support::{python::Names, resolve::Face, tables};
use sandboxer_tests::surface::Surface;

/// Operations that are no call and an answer: they open a WebSocket.
const SOCKETS: [&str; 2] = ["exec_web_socket", "ssh_web_socket"];

/// Second methods of operations that can answer as a stream.
const STREAMING_FACES: [&str; 2] = ["command_stream", "events_stream"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn snake_case(id: &str) -> String {
    let parts =
        id.chars().map(|c| if c.is_uppercase() { format!("_{}", c.to_lowercase()) } else { c.to_string() });
    parts.collect()
}

/// The operations of the API document, by the names of their methods.
fn operations() -> Vec<String> {
    let document: serde_json::Value = serde_yaml_ng::from_str(&read("specs/sandboxer.openapi.yaml")).unwrap();
    let paths = document["paths"].as_object().unwrap().values();
    let methods = paths.flat_map(|path| path.as_object().unwrap()).filter(|(method, _)| {
        ["get", "put", "post", "delete", "patch", "head", "options", "trace"].contains(&method.as_str())
    });
    methods.map(|(_, operation)| snake_case(operation["operationId"].as_str().unwrap())).collect()
}

/// The generated methods of an `Api`.
fn api_methods(path: &str, is_async: bool) -> BTreeSet<String> {
    let surface = Surface::of_text(&read(path));
    let methods = &surface.shape("Api").unwrap().methods;
    assert!(methods.values().all(|method| method.is_async == is_async), "{path}");
    methods.keys().cloned().collect()
}

#[test]
fn the_document_has_93_operations_and_each_api_91_of_them() {
    let operations = operations();
    assert_eq!(operations.len(), 93);
    let ids: BTreeSet<String> = operations.into_iter().collect();
    assert_eq!(ids.len(), 93, "two operations have the same name");

    let api = api_methods("sdk/src/generated/api.rs", true);
    assert_eq!(api, api_methods("sdk-blocking/src/generated/api.rs", false));
    assert_eq!(ids.intersection(&api).count(), 91);
    let missing: Vec<&str> = ids.difference(&api).map(String::as_str).collect();
    assert_eq!(missing, SOCKETS);

    // What more there is are the streaming faces, and what the overlay for the other dialect adds.
    let overlay = read("specs/boat.overlay.yaml");
    let added = overlay.lines().filter_map(|line| line.trim().strip_prefix("operationId: "));
    let added: BTreeSet<String> = added.map(snake_case).collect();
    assert_eq!(added.len(), 11);
    let more: BTreeSet<String> = api.difference(&ids).cloned().collect();
    let expected = added.into_iter().chain(STREAMING_FACES.map(str::to_owned)).collect();
    assert_eq!(more, expected);
}

#[test]
fn every_name_here_is_in_both_twins() {
    let sdk = Surface::of_folder(&root().join("sdk/src"));
    let twin = Surface::of_folder(&root().join("sdk-blocking/src"));
    let faces = [("sandboxer", Face::of_sdk(&sdk)), ("sandboxer_blocking", Face::of_twin(&twin, &sdk))];
    let names = Names::read(&read("tests/porting/python_names.txt"));
    let (rows, prose) = tables::read(&read("docs/porting.md"));
    let (mut problems, mut checked) = (Vec::new(), 0);
    for (crate_name, face) in &faces {
        for row in &rows {
            let missing = face.check(&row.here);
            problems.extend(missing.into_iter().map(|what| format!("{}: {crate_name}: {what}", row.line)));
            checked += row.here.len();
        }
    }
    // The words around the tables may speak of what only one of them has.
    for (line, span) in prose.iter().filter(|(_, span)| !names.knows(span)) {
        let missing = faces.iter().map(|(_, face)| face.check_one(span, &mut None).err());
        problems
            .extend(missing.collect::<Option<Vec<_>>>().map(|both| format!("{line}: {}", both.join(", "))));
    }
    assert!(problems.is_empty(), "{} problems in docs/porting.md:\n{}", problems.len(), problems.join("\n"));
    // Guards against checking nothing.
    assert!(checked >= 500, "only {checked} names were checked");
}

#[test]
fn every_name_of_the_python_packages_has_a_row_or_a_method_of_the_same_name() {
    let names = Names::read(&read("tests/porting/python_names.txt"));
    let api = api_methods("sdk/src/generated/api.rs", true);
    let (rows, _) = tables::read(&read("docs/porting.md"));
    let problems = names.compare(&rows, |method| api.contains(method));
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
    assert!(names.count() >= 500, "the list is too short: {}", names.count());
}

const SDK: &str = "
    pub use a::{AsyncSandboxer, AsyncSandbox, Create, Event, Mode, OnlyHere};
    pub use generated::models;
    pub mod hooks { pub use b::Verifier; }
    pub struct AsyncSandboxer;
    impl AsyncSandboxer {
        pub fn builder() -> Builder { x() }
        pub async fn create(&self, options: Create) -> Result<AsyncSandbox> { x() }
        pub(crate) fn hidden(&self) {}
    }
    pub struct AsyncSandbox;
    impl AsyncSandbox {
        pub fn info(&self) -> Option<Arc<models::Sandbox>> { x() }
        pub fn events(&self) -> EventStream { x() }
    }
    macro_rules! setters { ($what:literal) => { #[doc = $what] pub fn name(mut self, name: &str) -> Self { self } } }
    pub struct Create;
    impl Create {
        pub fn new() -> Self { x() }
        setters!(\"The name.\");
    }
    pub struct Event { pub id: u8, data: u8 }
    pub enum Mode { Poll, Sse }
    pub struct Verifier;
    impl Verifier { pub fn verify(&self) {} }
    pub struct OnlyHere;
    struct Private;
    mod models { pub struct Sandbox { pub state: State } }
";

const TWIN: &str = "
    pub use a::{Sandboxer, Sandbox};
    pub use sandboxer::{Create, Event, Mode, hooks, models};
    pub struct Sandboxer;
    impl Sandboxer {
        pub fn builder() -> Builder { x() }
        pub fn create(&self, options: Create) -> Result<Sandbox> { x() }
    }
    pub struct Sandbox;
    impl Sandbox { pub fn info(&self) -> Option<Arc<models::Sandbox>> { x() } }
";

fn problems(cell: &[&str], in_twin: bool) -> Vec<String> {
    let (sdk, twin) = (Surface::of_text(SDK), Surface::of_text(TWIN));
    let face = if in_twin { Face::of_twin(&twin, &sdk) } else { Face::of_sdk(&sdk) };
    face.check(&cell.iter().map(|span| (*span).to_owned()).collect::<Vec<_>>())
}

#[test]
fn names_that_exist_are_found() {
    let cells: &[&[&str]] = &[
        &["AsyncSandboxer::create", "builder"],
        &["client.create(Create::new().name(..)).await?", "create"],
        &["client.create(Create::new().name(name)).await?.info()?.state"],
        &["Event::id", "Mode::Poll", "Sse"],
        &["hooks::Verifier::verify", "Verifier", "verify(..)"],
        &["models::Sandbox", "Sandbox::state"],
        &["[\"ls\", \"-la\"]", "0o755", "\"a_code\""],
    ];
    for cell in cells {
        assert_eq!(problems(cell, false), Vec::<String>::new());
        assert_eq!(problems(cell, true), Vec::<String>::new());
    }
}

#[test]
fn an_invented_name_is_found_missing() {
    let cells: &[&[&str]] = &[
        &["AsyncSandboxer::invented"],
        &["AsyncSandboxer::hidden"],
        &["AsyncSandboxer", "invented"],
        &["Invented"],
        &["Private"],
        &["Event::data"],
        &["Mode::Invented"],
        &["client.create(Create::new().invented(..))"],
        &["client.create(Invented::new())"],
        &["client.create(Create::new()).await?.invented()"],
        &["client.create(..).await?.info()?.invented"],
        &["client.create(..).await?.info()?.state.more"],
        &["stranger.create(..)"],
        &["client.builder().build()"],
        &["invented"],
        &["invented::Verifier"],
        &["hooks::Invented"],
        &["not rust"],
        &["client.create(|options| options)"],
    ];
    for cell in cells {
        assert_eq!(problems(cell, false).len(), 1, "{cell:?}");
        assert_eq!(problems(cell, true).len(), 1, "{cell:?}");
    }
    // The other crate alone has it.
    for cell in [["OnlyHere"], ["sandbox.events()"]] {
        assert_eq!(problems(&cell, false), Vec::<String>::new());
        assert_eq!(problems(&cell, true).len(), 1, "{cell:?}");
    }
}

const LIST: &str = "
sandboxer-sdk Sandbox.exec
sandboxer-sdk Sandbox.exec(cwd)
sandboxer-sdk Files.read
sandboxer-sdk SandboxerApi.me
sandboxer-sdk wait
sandboxer-sdk wait(timeout)
boat_sdk BoatApi.unshare
";

const DOCUMENT: &str = "
Words.

| `sandboxer-sdk` | here |
|---|---|
| `sandbox.exec(words, cwd=)`, `sandbox.files.read` | `a` |
| `wait(...)`, `timeout=` | `b`, a `Result<A | B>` |

| boat_sdk | means | here |
|---|---|---|
| `api.unshare` | `x` | |
";

#[test]
fn a_python_name_without_a_row_and_a_row_without_a_python_name_are_found() {
    let found = |list: &str, document: &str| {
        Names::read(list).compare(&tables::read(document).0, |method| method == "me")
    };
    let document = &DOCUMENT.replace("| means ", "").replace("| `x` ", "");
    assert_eq!(found(LIST, document), Vec::<String>::new());
    let cases = [
        (", cwd=", "", "sandboxer-sdk: no row speaks of `Sandbox.exec(cwd)`"),
        (", `timeout=`", "", "sandboxer-sdk: no row speaks of `wait(timeout)`"),
        (", `sandbox.files.read`", "", "sandboxer-sdk: no row speaks of `Files.read`"),
        ("`api.unshare`", "", "boat_sdk: no row speaks of `BoatApi.unshare`"),
        ("cwd=", "cwd=, dir=", "line 6: no package has `Sandbox.exec(dir)`"),
        (
            "api.unshare",
            "api.unshare`, `api.share",
            "line 11: no package has `SandboxerApi.share` or `BoatApi.share`",
        ),
        ("| boat_sdk", "| goat_sdk", "line 11: the table's heading names no package"),
    ];
    for (from, to, expected) in cases {
        assert!(document.contains(from), "{from}");
        let problems = found(LIST, &document.replacen(from, to, 1));
        assert!(problems.iter().any(|problem| problem == expected), "{expected}: {problems:?}");
    }
    assert_eq!(
        found(&LIST.replace(".me", ".you"), document),
        ["sandboxer-sdk: no row speaks of `SandboxerApi.you`"]
    );
}

#[test]
fn tables_are_read_cell_by_cell() {
    let (rows, prose) = tables::read(DOCUMENT);
    assert_eq!(rows.len(), 3);
    assert_eq!(prose, []);
    assert_eq!((rows[1].line, &*rows[1].heading), (7, "`sandboxer-sdk`"));
    assert_eq!(rows[1].there, ["wait(...)", "timeout="]);
    assert_eq!(rows[1].here, ["b", "Result<A | B>"]);
    assert_eq!((rows[2].there.len(), rows[2].here.len()), (2, 0));
    assert_eq!(tables::read("see `a`").1, [(1, "a".to_owned())]);
}
