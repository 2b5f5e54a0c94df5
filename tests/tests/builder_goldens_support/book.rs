//! Calls, one a line, with what they sent and how they ended; held against a golden file.

use std::{
    fmt::Write as _,
    future::Future,
    path::PathBuf,
    pin::{Pin, pin},
    time::Duration,
};

use sandboxer::{AsyncSandboxer, Builder, ErrorKind, clock::ManualClock, webhooks::WebhookError};

use super::peer::{Mood, Peer, cut};

/// The pauses that a client makes between two requests; while one of them lasts, nothing is on its way.
fn pauses() -> Vec<Duration> {
    let growing = std::iter::successors(Some(Duration::from_millis(100)), |pause| {
        let next = *pause * 3 / 2;
        (next < Duration::from_secs(2)).then_some(next)
    });
    // A look at what was just made, an interval of events, of what takes long, and what the peer asks for.
    growing.chain([10, 1000, 1500, 2000, 8000].map(Duration::from_millis)).collect()
}

/// How a call ended.
pub(crate) struct End {
    /// Nothing was wrong with what was asked for.
    is_fine: bool,
    /// It was refused by the client itself.
    is_refusal: bool,
    text: String,
}

/// What a call answers with.
pub(crate) trait Told {
    fn told(self) -> End;
}

impl<T> Told for Result<T, sandboxer::Error> {
    fn told(self) -> End {
        match self {
            Ok(_) => End { is_fine: true, is_refusal: false, text: "fine".to_owned() },
            Err(error) => {
                let kind = error.kind();
                let is_refusal =
                    matches!(kind, ErrorKind::InvalidInput | ErrorKind::Config | ErrorKind::Unsupported);
                End { is_fine: false, is_refusal, text: format!("{kind:?}: {}", error.message()) }
            }
        }
    }
}

impl<T> Told for Result<T, WebhookError> {
    fn told(self) -> End {
        match self {
            Ok(_) => End { is_fine: true, is_refusal: false, text: "fine".to_owned() },
            Err(error) => End { is_fine: false, is_refusal: true, text: format!("{error}") },
        }
    }
}

/// Something whose answer matters.
pub(crate) struct Says(pub(crate) String);

impl Told for Says {
    fn told(self) -> End {
        End { is_fine: true, is_refusal: false, text: self.0 }
    }
}

/// A golden file in the making.
pub(crate) struct Book {
    name: &'static str,
    pub(crate) peer: Peer,
    pub(crate) clock: ManualClock,
    text: String,
    plain: Option<String>,
    mood: Mood,
    problems: Vec<String>,
}

impl Book {
    pub(crate) async fn open(name: &'static str) -> Self {
        let clock = ManualClock::new();
        let peer = Peer::start(clock.clone()).await;
        Self { name, peer, clock, text: String::new(), plain: None, mood: Mood::Normal, problems: Vec::new() }
    }

    /// A client's builder that leads to the peer.
    pub(crate) fn builder(&self) -> Builder {
        AsyncSandboxer::builder()
            .ignore_env()
            .no_proxy()
            .api_key("sbx_live_1")
            .base_url(&self.peer.url)
            .clock(self.clock.shared())
    }

    pub(crate) fn client(&self) -> AsyncSandboxer {
        self.builder().build().unwrap()
    }

    /// Begins a section, whose lines are compared with its plain one.
    pub(crate) fn section(&mut self, title: &str) {
        self.mood = Mood::Normal;
        self.plain = None;
        write!(self.text, "\n# {title}\n").unwrap();
    }

    /// The peer behaves so from now on; a new plain line has to follow.
    pub(crate) fn mood(&mut self, mood: Mood) {
        self.mood = mood;
        self.plain = None;
    }

    /// The call that the next ones are compared with.
    pub(crate) async fn plain<F>(&mut self, call: &str, work: impl FnOnce() -> Pin<Box<F>>)
    where
        F: Future<Output: Told>,
    {
        let (record, _) = self.record(work()).await;
        self.write("plain", call, &record);
        self.plain = Some(record);
    }

    /// A call that must not do the same as the plain one.
    pub(crate) async fn line<F>(&mut self, call: &str, work: impl FnOnce() -> Pin<Box<F>>)
    where
        F: Future<Output: Told>,
    {
        let (record, end) = self.record(work()).await;
        self.write("call", call, &record);
        match &self.plain {
            None => self.problems.push(format!("`{call}` has no plain line before it")),
            Some(plain) if *plain == record => {
                self.problems.push(format!("`{call}` does what the plain line does:\n{record}"));
            }
            Some(_) if end.is_refusal => self.problems.push(format!("`{call}` is refused: {}", end.text)),
            Some(_) => {}
        }
    }

    /// A call that must be refused without a word to the peer.
    pub(crate) async fn refused<F>(&mut self, call: &str, work: impl FnOnce() -> Pin<Box<F>>)
    where
        F: Future<Output: Told>,
    {
        let (record, end) = self.record(work()).await;
        self.write("refused", call, &record);
        if end.is_fine || !end.is_refusal {
            self.problems.push(format!("`{call}` is not refused: {}", end.text));
        }
        if !self.peer.seen().is_empty() {
            self.problems.push(format!("`{call}` sends something: {:?}", self.peer.seen()));
        }
    }

    async fn record(&self, work: Pin<Box<impl Future<Output: Told>>>) -> (String, End) {
        self.peer.begin(self.mood);
        let end = self.drive(work).await.told();
        let port = self.peer.url.split(':').nth(2).unwrap().split('/').next().unwrap();
        let text = format!("=> {}", cut(&end.text));
        let steps = self.peer.seen().into_iter().chain([text]);
        let record = steps.map(|step| format!("  {}\n", step.replace(port, "PORT"))).collect();
        (record, end)
    }

    /// Runs the work; time moves on only while the client pauses or waits for an answer that never comes.
    async fn drive<F: Future>(&self, mut work: Pin<Box<F>>) -> F::Output {
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.idle() => self.clock.advance(self.clock.next_due().unwrap_or_default()),
            }
        }
    }

    async fn idle(&self) {
        let pausing = pauses().into_iter().map(|pause| Box::pin(self.clock.wait_for_sleep_of(pause)));
        let hanging = pin!(async {
            while !(self.peer.is_hanging() && self.clock.next_due().is_some()) {
                tokio::task::yield_now().await;
            }
        });
        if matches!(self.mood, Mood::Hanging | Mood::Silent) {
            hanging.await;
        } else {
            futures_util::future::select_all(pausing).await;
        }
    }

    fn write(&mut self, how: &str, call: &str, record: &str) {
        let call = call.split_whitespace().collect::<Vec<_>>().join(" ");
        write!(self.text, "\n{how}: {call}\n{record}").unwrap();
    }

    /// What was wrong with the lines so far.
    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Compares with the golden file, or writes it.
    pub(crate) fn close(self) {
        assert!(self.problems.is_empty(), "{} problems:\n{}", self.problems.len(), self.problems.join("\n"));
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("goldens/{}.txt", self.name));
        let text = format!("{}\n", self.text.trim());
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            return std::fs::write(path, text).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        let differing = golden.lines().zip(text.lines()).position(|(golden, new)| golden != new);
        if golden != text {
            let line = differing.unwrap_or(golden.lines().count().min(text.lines().count()));
            let of =
                |text: &str| text.lines().skip(line.saturating_sub(3)).take(8).collect::<Vec<_>>().join("\n");
            panic!(
                "{} differs from line {}; golden:\n{}\nnow:\n{}\nIf the change is meant, run with UPDATE_GOLDENS=1.",
                path.display(),
                line + 1,
                of(&golden),
                of(&text)
            );
        }
    }
}

/// `plain!(book, call)`: the call that the next lines are compared with.
macro_rules! plain {
    ($book:ident, $call:expr) => {
        $book.plain(stringify!($call), || Box::pin(async { $call })).await
    };
}

/// `line!(book, call)`: a call with one option more than the plain one.
macro_rules! call {
    ($book:ident, $call:expr) => {
        $book.line(stringify!($call), || Box::pin(async { $call })).await
    };
}

/// `refused!(book, call)`: a call that must not send anything.
macro_rules! refused {
    ($book:ident, $call:expr) => {
        $book.refused(stringify!($call), || Box::pin(async { $call })).await
    };
}

pub(crate) use {call, plain, refused};
