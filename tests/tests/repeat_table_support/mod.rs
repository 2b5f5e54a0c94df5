//! What a call that meets a failure has to come to, and what the peer and the clock have to have seen of it.

pub(crate) mod table;

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use sandboxer::{AsyncSandboxer, Builder, Delivery, Dialect, Error, ErrorKind, Result};
use sandboxer_tests::{
    pacer::Pacer,
    peer::{Peer, Turn},
    spec::{Spec, SpecOperation},
};
use serde_json::Value;
use table::{Hint, Hit, Row};

/// The longest bound that a wait is drawn below, and the first.
const LONGEST: Duration = Duration::from_secs(8);
const FIRST: Duration = Duration::from_millis(500);
const REPEATS: usize = 3;

/// Leads to the peer, unless its script says that nobody is there.
struct Resolver(Peer);

impl Resolve for Resolver {
    fn resolve(&self, _: Name) -> Resolving {
        let found: Option<SocketAddr> = match self.0.before_sending() {
            // The peer listens on the first address of the loopback network only; elsewhere there is but one.
            Some(Turn::Refused) if cfg!(target_os = "linux") => Some(([127, 0, 0, 2], 0).into()),
            Some(_) => None,
            None => Some(([127, 0, 0, 1], 0).into()),
        };
        Box::pin(async move {
            match found {
                Some(address) => Ok(Box::new(std::iter::once(address)) as Addrs),
                None => Err("there is no such name".into()),
            }
        })
    }
}

/// A peer and a way to it.
pub(crate) struct Bench {
    pub(crate) peer: Peer,
    http: reqwest::Client,
    dialect: Dialect,
    keys: BTreeSet<String>,
}

impl Bench {
    pub(crate) fn new(dialect: Dialect) -> Self {
        let peer = Peer::start();
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .pool_max_idle_per_host(0)
            .dns_resolver(std::sync::Arc::new(Resolver(peer.clone())))
            .tls_certs_only([])
            .build()
            .unwrap();
        Self { peer, http, dialect, keys: BTreeSet::new() }
    }

    fn builder(&self, pacer: &Pacer) -> Builder {
        AsyncSandboxer::builder()
            .ignore_env()
            .dialect(self.dialect)
            .api_key("key_of_the_suite")
            .base_url(format!("http://peer.test:{}/api/v1", self.peer.port()))
            .allow_plain_http()
            .http_client(self.http.clone())
            .clock(pacer.shared())
    }

    /// A client with a budget of its own.
    pub(crate) fn client(&self, pacer: &Pacer) -> AsyncSandboxer {
        self.builder(pacer).build().unwrap()
    }
}

/// One case: an operation meets a failure, once or always.
pub(crate) struct Case<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) operation: &'a SpecOperation,
    pub(crate) row: &'a Row,
    pub(crate) hit: &'a Hit,
    /// Whether the second try succeeds.
    pub(crate) once: bool,
    /// What the caller gave, by name on the wire.
    pub(crate) sent: &'a Value,
}

impl Case<'_> {
    /// What the peer does.
    pub(crate) fn script(&self) -> Vec<Turn> {
        let mut turns = vec![self.hit.turn.clone()];
        turns.extend(self.once.then(|| self.spec.success(self.operation)));
        turns
    }

    /// The limits of one try and of the whole call: the documented defaults.
    fn limits(&self) -> (Duration, Duration) {
        let (attempt, total) = if self.operation.runs_command { (120, 180) } else { (60, 300) };
        (Duration::from_secs(attempt), Duration::from_secs(total))
    }

    /// Checks a call that is over.
    pub(crate) fn check(&self, bench: &mut Bench, pacer: &Pacer, result: Result<()>) {
        let what = format!(
            "{} {}, row {}, {:?}, once: {}: {result:?}",
            bench.dialect, self.operation.id, self.row.name, self.hit, self.once
        );
        let may = self.row.repeats(&self.operation.repeat);
        let (_, total) = self.limits();
        let too_long = |elapsed| self.hit.hint.at(elapsed).is_some_and(|hint| elapsed + hint >= total);
        let goes_on = may && !too_long(Duration::ZERO);
        let tries = pacer.limits().len();
        self.check_times(pacer, goes_on, &what);
        match (goes_on, self.once) {
            (false, _) => assert_eq!(tries, 1, "{what}"),
            (true, true) => assert_eq!(tries, 2, "{what}"),
            (true, false) if self.row.until_deadline => assert!(tries > 1 + REPEATS, "{tries} {what}"),
            (true, false) => assert_eq!(tries, 1 + REPEATS, "{what}"),
        }
        let key = self.check_requests(bench, tries, &what);
        match result {
            Ok(()) => assert!(goes_on && self.once, "{what}"),
            Err(error) => {
                assert!(!(goes_on && self.once), "{what}");
                self.check_error(&error, tries, may, &what);
                assert_eq!(error.idempotency_key().is_some(), self.operation.keyed(), "{what}");
                assert!(key.is_none() || key.as_deref() == error.idempotency_key(), "{what}");
            }
        }
    }

    /// Each try's limit is the attempt's or what is left of the total, each wait what the row and the service say.
    fn check_times(&self, pacer: &Pacer, goes_on: bool, what: &str) {
        let (attempt, total) = self.limits();
        let (limits, waits) = (pacer.limits(), pacer.waits());
        assert_eq!(limits.len(), waits.len() + 1, "{what}");
        let (mut elapsed, mut bound) = (Duration::ZERO, FIRST);
        for (index, limit) in limits.iter().enumerate() {
            assert_eq!(*limit, attempt.min(total - elapsed), "{what}");
            if matches!(self.hit.turn, Turn::Stall) && (index == 0 || !self.once) {
                elapsed += *limit;
            }
            let Some(wait) = waits.get(index) else { break };
            match self.hit.hint.at(elapsed) {
                Some(hint) => assert_eq!(*wait, hint.max(self.row.pause), "{what}"),
                None => {
                    let range = self.row.pause..=self.row.pause.max(bound);
                    assert!(range.contains(wait), "{wait:?} is not in {range:?}: {what}");
                    bound = LONGEST.min(bound * 2);
                }
            }
            elapsed += *wait;
        }
        if goes_on && !self.once && self.row.until_deadline {
            let next = self.hit.hint.at(elapsed).unwrap_or(LONGEST).max(self.row.pause);
            assert!(elapsed < total && elapsed + next >= total, "{elapsed:?} {what}");
        }
    }

    /// The peer has seen each try that was sent, all the same but for their number; gives the key back.
    fn check_requests(&self, bench: &mut Bench, tries: usize, what: &str) -> Option<String> {
        let seen = bench.peer.seen();
        let unsent = match (self.hit.turn.is_before_sending(), self.once) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => tries,
        };
        let numbers: Vec<String> = (unsent + 1..=tries).map(|number| number.to_string()).collect();
        let sent: Vec<_> = seen.iter().filter_map(|seen| seen.header("x-sandboxer-attempt")).collect();
        assert_eq!(sent, numbers, "{what}");
        let first = seen.first()?;
        for other in &seen {
            assert_eq!(
                (&other.method, &other.target, &other.body),
                (&first.method, &first.target, &first.body),
                "{what}"
            );
        }
        assert_eq!(first.method, self.operation.method, "{what}");
        let keys: Vec<_> = seen.iter().map(|seen| seen.header("idempotency-key")).collect();
        assert!(keys.iter().all(|key| *key == keys[0]), "{what}");
        assert_eq!(keys[0].is_some(), self.operation.keyed(), "{what}");
        let key = keys[0]?.to_owned();
        assert!(key.len() >= 32 && bench.keys.insert(key.clone()), "a key of its own: {what}");
        Some(key)
    }

    fn check_error(&self, error: &Error, tries: usize, may: bool, what: &str) {
        let hit = self.hit;
        let code = match (hit.delivery, &hit.code, hit.status) {
            ("answered", _, Some(302)) => "unexpected_redirect".to_owned(),
            ("answered", Some(code), _) => {
                let alias = &self.spec.part("/x-service/codeAliases")[code];
                alias.as_str().unwrap_or(code).to_owned()
            }
            ("answered", None, Some(status)) => format!("http_{status}"),
            _ if matches!(hit.turn, Turn::Stall) => "timeout".to_owned(),
            _ => "connection_error".to_owned(),
        };
        let (kind, delivery) = match (hit.delivery, hit.status) {
            ("not-sent", _) => (ErrorKind::Connection, Delivery::NotSent),
            ("unknown", _) if matches!(hit.turn, Turn::Stall) => (ErrorKind::Timeout, Delivery::Unknown),
            ("unknown", _) => (ErrorKind::Connection, Delivery::Unknown),
            (_, status) => (kind_of(status.unwrap_or(0)), Delivery::Answered),
        };
        assert_eq!((error.kind(), error.code(), error.delivery()), (kind, code.as_str(), delivery), "{what}");
        assert_eq!(error.status(), hit.status, "{what}");
        assert_eq!(error.attempts() as usize, tries, "{what}");
        assert_eq!(error.operation().map(|operation| operation.id()), Some(&*self.operation.id), "{what}");
        assert_eq!(error.is_retryable(), may, "{what}");
        let answered = hit.delivery == "answered";
        assert_eq!(error.request_id(), answered.then_some("req_scripted"), "{what}");
        if hit.code.is_some() {
            assert_eq!(error.message(), hit.message, "{what}");
        }
        let sandbox = self.sent["path"]["sandboxId"].as_str();
        assert_eq!(error.sandbox_id(), sandbox, "{what}");
        // A date comes nearer with each wait; a redirect is not asked when to come back.
        match hit.hint {
            _ if hit.status == Some(302) => {}
            Hint::At(date) => assert!(error.retry_after().is_some_and(|wait| wait <= date), "{what}"),
            hint => assert_eq!(error.retry_after(), hint.at(Duration::ZERO), "{what}"),
        }
    }
}

fn kind_of(status: u16) -> ErrorKind {
    match status {
        401 => ErrorKind::Authentication,
        402 => ErrorKind::PaymentRequired,
        403 => ErrorKind::PermissionDenied,
        404 => ErrorKind::NotFound,
        409 => ErrorKind::Conflict,
        429 => ErrorKind::RateLimited,
        400..=499 => ErrorKind::BadRequest,
        500..=599 => ErrorKind::Server,
        _ => ErrorKind::Unexpected,
    }
}
