//! The blocking twin has the verbs of the async SDK: same names, parameters, answers and first sentence of
//! documentation.
//!
//! Both crates' sources are read. A type of the async SDK needs a twin if it is public and one of its public methods is
//! async or gives out something that needs a twin; everything else that is public must be re-exported as it is.

mod parity_support;

use parity_support::{Rules, compare};
use sandboxer_tests::surface::{RENAMED, Surface};

/// Verbs that differ, and why.
const DIFFERENT: &[(&str, &str, &str)] = &[
    ("ByteBody", "collect", "`Iterator::collect` would be hidden; here `read_all`"),
    ("LogStream", "collect", "`Iterator::collect` would be hidden; here `read_all`"),
    ("Pager", "collect", "`Iterator::collect` does it"),
    ("AsyncSandboxer", "reset_shared", "there is one default client, not one a runtime"),
    ("AsyncSandboxer", "scoped", "there is no future to drop, which the first sentence speaks of"),
];

/// Verbs that only the twin has, and why.
const EXTRA: &[(&str, &str, &str)] = &[
    ("Sandboxer", "from_async", "the way from one face to the other"),
    ("ByteIter", "read_all", "stands for `collect`"),
    ("LogStream", "read_all", "stands for `collect`"),
];

fn root(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src")
}

#[test]
fn the_twin_has_the_verbs_of_the_async_sdk() {
    let rules = Rules { renamed: RENAMED, different: DIFFERENT, extra: EXTRA };
    let (sdk, twin) = (Surface::of_folder(&root("sdk")), Surface::of_folder(&root("sdk-blocking")));
    let (verbs, differences) = compare(&sdk, &twin, &rules);
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    // Guards against comparing nothing.
    assert!(verbs >= 70, "only {verbs} verbs were compared");
}

const SDK: &str = "
    pub use client::{AsyncBox, Options};
    pub mod stream { pub use part::Piece; }
    pub struct AsyncBox;
    pub struct Options;
    impl AsyncBox {
        /// Opens it.
        ///
        /// More.
        pub async fn open(&self, mut how: impl Into<Options>) -> crate::Result<AsyncBox> { todo() }
        /// Its name.
        pub fn name(&self) -> &str { todo() }
        /// The next one.
        pub async fn next(&mut self) -> Option<Result<Chunk>> { todo() }
        pub(crate) async fn hidden(&self) {}
    }
";

const TWIN: &str = "
    pub use client::Box;
    pub use sandboxer::Options;
    pub use sandboxer::stream;
    pub struct Box;
    impl Box {
        /// Opens it.
        pub fn open(&self, how: impl Into<sandboxer::Options>) -> Result<Box> { todo() }
        /// Its name.
        pub fn name(&self) -> &str { todo() }
    }
    impl Iterator for Box {
        type Item = Result<Chunk>;
        fn next(&mut self) -> Option<Self::Item> { todo() }
    }
";

fn differences(twin: &str, rules: &Rules<'_>) -> Vec<String> {
    compare(&Surface::of_text(SDK), &Surface::of_text(twin), rules).1
}

#[test]
fn equal_surfaces_have_no_difference() {
    let rules = Rules::default();
    assert_eq!(differences(TWIN, &rules), Vec::<String>::new());
    assert_eq!(compare(&Surface::of_text(SDK), &Surface::of_text(TWIN), &rules).0, 3);
}

#[test]
fn every_kind_of_difference_is_found() {
    let cases = [
        ("pub fn name(", "fn name(", "AsyncBox::name: the twin lacks it"),
        ("how: impl Into", "what: impl Into", "AsyncBox::open: takes"),
        ("how: impl Into<sandboxer::Options>", "how: Options", "AsyncBox::open: takes"),
        ("pub fn open(&self, ", "pub fn open(&self, more: u8, ", "AsyncBox::open: takes"),
        ("pub fn name(&self)", "pub fn name(&mut self)", "AsyncBox::name: takes"),
        ("Result<Box>", "Result<u8>", "AsyncBox::open: answers"),
        ("-> &str", "-> String", "AsyncBox::name: answers"),
        ("/// Opens it.", "/// Closes it.", "AsyncBox::open: is described"),
        ("Item = Result<Chunk>", "Item = Chunk", "AsyncBox::next: answers"),
        ("impl Iterator for Box", "impl Other for Box", "AsyncBox::next: the twin lacks it"),
        ("pub use sandboxer::Options;", "", "Options: the twin does not re-export it"),
        ("pub use sandboxer::stream;", "pub mod stream {}", "Piece: the twin does not re-export it"),
        ("pub use client::Box;", "", "AsyncBox: the twin lacks `Box`"),
        ("pub fn name(", "pub fn more(&self) {} pub fn name(", "Box::more: the async SDK lacks it"),
    ];
    for (from, to, expected) in cases {
        assert!(TWIN.contains(from), "{from}");
        let found = differences(&TWIN.replacen(from, to, 1), &Rules::default());
        assert!(found.iter().any(|difference| difference.starts_with(expected)), "{expected}: {found:?}");
    }
}

#[test]
fn an_exception_counts_only_while_it_is_needed() {
    let lacking = TWIN.replace("pub fn name(", "fn name(");
    let excused = Rules { different: &[("AsyncBox", "name", "for this test")], ..Rules::default() };
    assert_eq!(differences(&lacking, &excused), Vec::<String>::new());
    assert_eq!(
        differences(TWIN, &excused),
        ["AsyncBox::name: listed as an exception, but it does not differ"]
    );
    let stale = Rules { extra: &[("Box", "gone", "for this test")], ..Rules::default() };
    assert_eq!(differences(TWIN, &stale), ["Box::gone: listed as an extra, but the twin does not have it"]);
}
