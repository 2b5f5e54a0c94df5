//! A peer that answers with cases of the corpus, and the two twins that ask it.

use std::{collections::BTreeMap, future::Future, time::Duration};

use sandboxer::{
    AsyncSandboxer, Dialect, Error, Result,
    clock::{Clock as _, SystemClock},
};
use sandboxer_blocking::Sandboxer;
use sandboxer_tests::{
    drive::{Drive, Made},
    generated::every_call,
    pacer::Pacer,
    peer::{Peer, Turn},
    spec::{Spec, SpecOperation},
};
use serde_json::Value;

use crate::corpus::{Case, Fails};

pub(crate) const KEY: &str = "key_of_the_suite";
/// The id that the head of every answer carries.
const REQUEST_ID: &str = "req_of_the_head";
/// Long enough never to be reached by what works.
const GUARD: Duration = Duration::from_secs(120);

/// One dialect's operations, a peer, and a client of each twin that reach it.
pub(crate) struct Wire {
    pub(crate) spec: Spec,
    operations: BTreeMap<String, SpecOperation>,
    drives: BTreeMap<String, Drive>,
    peer: Peer,
    runtime: tokio::runtime::Runtime,
    pub(crate) client: AsyncSandboxer,
    pub(crate) blocking: Sandboxer,
}

impl Wire {
    pub(crate) fn new(dialect: Dialect) -> Self {
        let (spec, peer) = (Spec::read(dialect), Peer::start());
        let client = AsyncSandboxer::builder()
            .ignore_env()
            .no_proxy()
            .dialect(dialect)
            .api_key(KEY)
            .base_url(format!("http://127.0.0.1:{}/api/v1", peer.port()))
            .retries(0)
            .build()
            .unwrap();
        let operations = spec.operations().into_iter().map(|operation| (operation.id.clone(), operation));
        let drives = every_call(dialect).into_iter().map(|drive| (drive.operation.id().to_owned(), drive));
        Self {
            operations: operations.collect(),
            drives: drives.collect(),
            spec,
            peer,
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            blocking: Sandboxer::from_async(client.clone()),
            client,
        }
    }

    pub(crate) fn operation(&self, id: &str) -> &SpecOperation {
        self.operations.get(id).unwrap_or_else(|| panic!("no operation {id}"))
    }

    /// The operations whose success is one JSON document.
    pub(crate) fn json_operations(&self) -> impl Iterator<Item = &str> {
        self.operations
            .values()
            .filter(|operation| operation.is_json())
            .map(|operation| operation.id.as_str())
    }

    /// Runs to its end, which it has to come to.
    #[track_caller]
    pub(crate) fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let finished = self.runtime.block_on(async {
            tokio::select! {
                done = future => Some(done),
                () = SystemClock::new().sleep(GUARD) => None,
            }
        });
        finished.expect("the client hangs")
    }

    /// An answer of an operation.
    pub(crate) fn turn(
        &self,
        id: &str,
        status: Option<u16>,
        headers: &BTreeMap<String, String>,
        body: Vec<u8>,
    ) -> Turn {
        let operation = self.operation(id);
        let mut all = BTreeMap::from([
            ("content-type".to_owned(), operation.media.clone()),
            ("x-request-id".to_owned(), REQUEST_ID.to_owned()),
        ]);
        all.extend(headers.clone());
        let headers = all.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        Turn::Reply { status: status.unwrap_or(operation.success), headers, body }
    }

    /// Answers with these from now on, the last one again and again.
    pub(crate) fn play(&self, turns: impl IntoIterator<Item = Turn>) {
        self.peer.play(turns, &Pacer::default());
    }

    /// Answers the operation's calls with the case from now on.
    pub(crate) fn answer(&self, id: &str, case: &Case) {
        let bodies = case.bodies(self.operation(id).media == "text/event-stream");
        self.play(bodies.into_iter().map(|body| self.turn(id, case.status, &case.headers, body)));
    }

    /// What the async client makes of it.
    #[track_caller]
    pub(crate) fn call(&self, id: &str) -> Result<Made> {
        let drive = self.drives[id];
        self.run(async { (drive.least.call)(self.client.api()).await })
    }

    /// What the blocking client makes of it.
    pub(crate) fn call_blocking(&self, id: &str) -> Result<Made> {
        (self.drives[id].least.blocking)(self.blocking.api())
    }
}

/// Holds what a client made of a case against what it has to make.
pub(crate) fn check(what: &str, id: &str, case: &Case, result: &Result<Made>) {
    match (&case.fails, result) {
        (Some(fails), Err(error)) => {
            check_error(what, fails, error, &case.secrets);
            assert_eq!(error.operation().map(|operation| operation.id()), Some(id), "{what}");
            assert_eq!((error.attempts(), error.request_id().is_some()), (1, true), "{what}: {error:?}");
        }
        (None, Ok(made)) => {
            let reads = case.reads.as_ref().unwrap_or_else(|| panic!("{what} does not say what is read"));
            check_values(what, reads, &made.value);
            for secret in &case.secrets {
                assert!(!made.printed.contains(secret), "{what} prints {secret}: {}", made.printed);
            }
        }
        (_, result) => panic!("{what}: {result:?}"),
    }
}

/// Holds values against pointers; what is not there is null.
pub(crate) fn check_values(what: &str, reads: &BTreeMap<String, Value>, value: &Value) {
    for (pointer, wanted) in reads {
        assert_eq!(value.pointer(pointer).unwrap_or(&Value::Null), wanted, "{what}: {pointer} of {value:#}");
    }
}

/// Holds an error against what it has to be, and looks for what no error may show.
pub(crate) fn check_error(what: &str, fails: &Fails, error: &Error, secrets: &[String]) {
    let (shown, printed) = (error.to_string(), format!("{error:?} {error:#?}"));
    let what = format!("{what}: {printed}");
    if let Some(kind) = &fails.kind {
        assert_eq!(&format!("{:?}", error.kind()), kind, "{what}");
    }
    if let Some(code) = &fails.code {
        assert_eq!(error.code(), code, "{what}");
    }
    if fails.status.is_some() {
        assert_eq!(error.status(), fails.status, "{what}");
    }
    if fails.request_id.is_some() {
        assert_eq!(error.request_id(), fails.request_id.as_deref(), "{what}");
    }
    if let Some(delivery) = &fails.delivery {
        assert_eq!(&error.delivery().to_string(), delivery, "{what}");
    }
    if let Some(retryable) = fails.retryable {
        assert_eq!(error.is_retryable(), retryable, "{what}");
    }
    if let Some(seconds) = fails.retry_after {
        assert_eq!(error.retry_after(), seconds.map(Duration::from_secs), "{what}");
    }
    match &fails.details {
        Some(Some(details)) => {
            let found = error.details().unwrap_or_else(|| panic!("no details: {what}"));
            for (name, wanted) in details {
                assert_eq!(&found[name], wanted, "{name}: {what}");
            }
        }
        Some(None) => assert_eq!(error.details(), None, "{what}"),
        None => {}
    }
    if let Some(part) = &fails.says {
        assert!(error.message().contains(part), "no {part:?}: {what}");
    }
    if fails.command_id.is_some() {
        assert_eq!(error.command_id(), fails.command_id.as_deref(), "{what}");
    }
    if let Some(partial) = &fails.partial {
        let output = error.partial_output().unwrap_or_else(|| panic!("no output: {what}"));
        assert_eq!(&*output.stdout_text(), partial, "{what}");
    }
    if let Some([stdout, stderr]) = fails.offsets {
        let offsets = error.resume_offsets().unwrap_or_else(|| panic!("no offsets: {what}"));
        assert_eq!((offsets.stdout, offsets.stderr), (stdout, stderr), "{what}");
    }
    assert!(
        error.message().len() <= fails.longest.unwrap_or(1000),
        "{} bytes: {what}",
        error.message().len()
    );
    assert!(!shown.contains(char::is_control), "{shown:?} is not one line");
    for secret in secrets.iter().map(String::as_str).chain([KEY, "redirect-s3cr3t"]) {
        assert!(!shown.contains(secret) && !printed.contains(secret), "{secret} is shown: {what}");
    }
}
