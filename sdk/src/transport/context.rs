//! What the generated engine carries: the client's shared parts, and the state of one call.

use super::{plan::Plan, tries::Tries};
use crate::{
    clock::SharedClock,
    config::{ApiKey, base_url::BaseUrl},
    error::{Error, Result},
    generated::dialects::Dialect,
    retry::budget::Budget,
    sandboxer::reaper::Reaper,
};
use http::{HeaderMap, HeaderValue};
use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

/// What all views of one client share.
pub(crate) struct Shared {
    base: BaseUrl,
    dialect: Dialect,
    key: ApiKey,
    bearer: HeaderValue,
    http: reqwest::Client,
    clock: SharedClock,
    default_headers: HeaderMap,
    user_agent: HeaderValue,
    budget: Budget,
    closed: AtomicBool,
    reaper: Reaper,
}

impl Shared {
    pub(crate) fn new(
        base: BaseUrl,
        dialect: Dialect,
        key: ApiKey,
        http: reqwest::Client,
        clock: SharedClock,
        default_headers: HeaderMap,
        user_agent: HeaderValue,
    ) -> Result<Arc<Self>> {
        let (bearer, budget) = (key.bearer()?, Budget::new(clock.elapsed()));
        let closed = AtomicBool::new(false);
        let reaper = Reaper::default();
        Ok(Arc::new(Self {
            base,
            dialect,
            key,
            bearer,
            http,
            clock,
            default_headers,
            user_agent,
            budget,
            closed,
            reaper,
        }))
    }

    pub(crate) fn base(&self) -> &BaseUrl {
        &self.base
    }

    /// Which service is spoken to.
    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(crate) fn key(&self) -> &ApiKey {
        &self.key
    }

    pub(super) fn bearer(&self) -> HeaderValue {
        self.bearer.clone()
    }

    pub(crate) fn http(&self) -> &reqwest::Client {
        &self.http
    }

    pub(crate) fn clock(&self) -> &SharedClock {
        &self.clock
    }

    pub(super) fn default_headers(&self) -> &HeaderMap {
        &self.default_headers
    }

    pub(super) fn user_agent(&self) -> HeaderValue {
        self.user_agent.clone()
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The clean-ups that go on in the background.
    pub(crate) fn reaper(&self) -> &Reaper {
        &self.reaper
    }

    /// From now on calls are refused.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Refuses a call on a closed client.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::closed()) } else { Ok(()) }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("base", &self.base.as_str())
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

/// The engine's inner value: one call.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) shared: Arc<Shared>,
    pub(crate) plan: Arc<Plan>,
    tries: Tries,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    attempts: AtomicU32,
    failure: Mutex<Option<Error>>,
}

impl Context {
    pub(crate) fn new(shared: Arc<Shared>, plan: Plan) -> Self {
        Self::noting(shared, plan, Tries::default())
    }

    /// A call whose tries are noted in `tries`.
    pub(crate) fn noting(shared: Arc<Shared>, plan: Plan, tries: Tries) -> Self {
        Self { shared, plan: Arc::new(plan), tries, state: Arc::default() }
    }

    /// What its tries together say about it.
    pub(crate) fn tries(&self) -> &Tries {
        &self.tries
    }

    /// The call's tries so far.
    pub(crate) fn attempts(&self) -> u32 {
        self.state.attempts.load(Ordering::Relaxed)
    }

    pub(super) fn set_attempts(&self, attempts: u32) {
        self.state.attempts.store(attempts, Ordering::Relaxed);
    }

    /// Keeps the call's error while the engine, which has no place for it, returns.
    pub(crate) fn fail(&self, error: Error) {
        *self.state.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    pub(super) fn take_failure(&self) -> Option<Error> {
        self.state.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
