//! What the two crates show is documented: every verb, builder and kind of error with an example that runs, everything
//! generated with a sentence, its unit and its errors.

mod documented_support;

use std::path::{Path, PathBuf};

use documented_support::{
    examples::{Fence, fences, is_named, runs},
    generated,
    undocumented::undocumented,
};
use sandboxer_tests::surface::Surface;

/// Examples that are compiled and not run: the file, a text in the example, and why.
const NOT_RUN: &[(&str, &str, &str)] = &[("client.rs", "::from_env()", FROM_ENVIRONMENT)];

const FROM_ENVIRONMENT: &str =
    "takes key and address from the environment, which may be those of a paid account";

/// The verbs that such an example is for.
const EXCUSED: &[(&str, &str)] = &[("Sandboxer", "from_env")];

fn excused(name: &str, verb: &str) -> bool {
    EXCUSED.contains(&(name.strip_prefix("Async").unwrap_or(name), verb))
}

fn root(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src")
}

#[test]
fn every_verb_and_builder_has_an_example_that_runs() {
    let mut lacking = Vec::new();
    for name in ["sdk", "sdk-blocking"] {
        let (seen, found) = undocumented(&Surface::of_folder(&root(name)), excused);
        lacking.extend(found.into_iter().map(|found| format!("{name}: {found}")));
        // Guards against reading nothing.
        assert!(seen >= 200, "{name}: only {seen} methods were seen");
    }
    assert!(lacking.is_empty(), "{} without an example:\n{}", lacking.len(), lacking.join("\n"));
}

#[test]
fn every_kind_of_error_has_an_example_that_runs() {
    let text = std::fs::read_to_string(root("sdk").join("error/kind.rs")).unwrap();
    for (name, least) in [("ErrorKind", 21), ("Delivery", 3)] {
        let variants = generated::variants(&text, name);
        assert!(variants.len() >= least, "{name}: {}", variants.len());
        for (variant, docs) in variants {
            let shown = runs(&docs).iter().any(|code| is_named(code, &variant));
            assert!(shown, "{name}::{variant} has no example that runs and names it");
        }
    }
}

#[test]
fn every_example_runs() {
    let mut odd = Vec::new();
    let mut excused = vec![false; NOT_RUN.len()];
    let mut count = 0;
    for name in ["sdk", "sdk-blocking", "mock-server"] {
        for (file, fence) in fences(&root(name)) {
            let Fence { info, code } = fence;
            let words: Vec<&str> = info.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
            count += usize::from(words.is_empty() || words == ["rust"]);
            if !words.iter().any(|word| ["ignore", "no_run", "compile_fail", "should_panic"].contains(word)) {
                continue;
            }
            let excuse = NOT_RUN.iter().position(|(known, text, _)| {
                words == ["no_run"] && file.ends_with(known) && code.contains(text)
            });
            match excuse {
                Some(at) => excused[at] = true,
                None => odd.push(format!("{}: `{info}`", file.display())),
            }
        }
    }
    assert!(odd.is_empty(), "{odd:#?}");
    let stale: Vec<_> = NOT_RUN.iter().zip(&excused).filter(|(_, used)| !**used).collect();
    assert!(stale.is_empty(), "listed and not there: {stale:?}");
    assert!(count >= 500, "only {count} examples were seen");
}

#[test]
fn everything_generated_has_a_sentence_its_unit_and_its_errors() {
    let mut faults = Vec::new();
    let mut seen = generated::Seen::default();
    for folder in [root("sdk").join("generated"), root("sdk-blocking").join("generated")] {
        generated::check_folder(&folder, &mut seen, &mut faults);
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    // Guards against reading nothing.
    assert!(seen.types >= 150 && seen.fields >= 700 && seen.operations >= 200, "{seen:?}");
}

const SHOWN: &str = "
    pub use parts::{AsyncBox, Options};
    /// ```
    /// # async fn f() { let options = Options::new().size(3); }
    /// ```
    pub struct Options;
    impl Options {
        /// New.
        pub fn new() -> Self { todo() }
        /// Its size.
        pub fn size(self, size: u8) -> Self { self }
        fn private(self) {}
    }
    /// A box.
    ///
    /// ```
    /// assert_eq!(the_box.name(), \"b\");
    /// ```
    pub struct AsyncBox;
    impl AsyncBox {
        /// Opens it.
        ///
        /// ```
        /// # let x = 1;
        /// the_box.open().await?;
        /// ```
        pub async fn open(&self) -> Result<()> { todo() }
        /// Its name.
        pub fn name(&self) -> &str { todo() }
    }
";

#[test]
fn what_lacks_an_example_is_found() {
    let found = |text: &str| undocumented(&Surface::of_text(text), |_, _| false).1;
    assert_eq!(found(SHOWN), Vec::<String>::new());
    let cases = [
        (".size(3)", "", "Options::size: neither its own example nor that of its type shows it"),
        (
            "the_box.name()",
            "the_box",
            "AsyncBox::name: neither its own example nor that of its type shows it",
        ),
        ("the_box.open()", "the_box", "AsyncBox::open: its example does not show it"),
        (
            "/// ```\n        /// # let x",
            "/// ```no_run\n        /// # let x",
            "AsyncBox::open: no example that runs",
        ),
        (
            "/// ```\n        /// # let x",
            "/// ```text\n        /// # let x",
            "AsyncBox::open: no example that runs",
        ),
        (
            "/// ```\n    /// # async",
            "/// ```ignore\n    /// # async",
            "Options::new: neither its own example nor that of its type shows it",
        ),
    ];
    for (from, to, expected) in cases {
        assert!(SHOWN.contains(from), "{from}");
        let found = found(&SHOWN.replacen(from, to, 1));
        assert!(found.iter().any(|found| found == expected), "{expected}: {found:?}");
    }
}

const GENERATED: &str = "
    /// What is read.
    pub struct Answer {
        /// How long it took, in seconds.
        pub took_seconds: i64,
        /// When it began.
        pub begun_at: Timestamp,
    }
    impl Answer {
        /// What it does.
        ///
        /// # Errors
        ///
        /// * `not_found` (404): There is none.
        pub async fn call(&self) -> Result<()> { todo() }
    }
";

#[test]
fn what_generated_items_lack_is_found() {
    let faults = |text: &str| {
        let mut faults = Vec::new();
        generated::check_text(text, "a.rs", &mut generated::Seen::default(), &mut faults);
        faults
    };
    assert_eq!(faults(GENERATED), Vec::<String>::new());
    let cases = [
        ("/// What is read.", "", "a.rs: Answer: no sentence"),
        ("What is read.", "What is read", "a.rs: Answer: no sentence"),
        (", in seconds", "", "a.rs: Answer.took_seconds: does not say that it is in seconds"),
        ("Timestamp", "i64", "a.rs: Answer.begun_at: a time that does not say how it is counted"),
        ("/// When it began.", "", "a.rs: Answer.begun_at: no sentence"),
        ("/// What it does.", "", "a.rs: Answer::call: no sentence"),
        ("/// * `not_found` (404): There is none.", "", "a.rs: Answer::call: lists no errors"),
    ];
    for (from, to, expected) in cases {
        assert!(GENERATED.contains(from), "{from}");
        let found = faults(&GENERATED.replacen(from, to, 1));
        assert!(found.iter().any(|found| found == expected), "{expected}: {found:?}");
    }
}
