//! Waiting for a sandbox to reach a state.

use std::{
    future::Future,
    pin::pin,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use futures_util::future::{Either, select};

use super::sandbox::AsyncSandbox;
use crate::{
    clock::Clock,
    error::{Delivery, Error, ErrorKind, Result},
    models::{Sandbox, SandboxState},
};

/// How long a readiness wait takes at most unless something else is said.
pub(crate) const READY_LIMIT: Duration = Duration::from_secs(300);

/// How long a stop is waited for at most unless something else is said.
pub(crate) const STOP_LIMIT: Duration = Duration::from_secs(600);

/// A resumed sandbox may still be read as archived for this long.
pub(crate) const RESUME_GRACE: Duration = Duration::from_secs(15);

/// The states in which commands can be run.
pub(crate) const READY: [SandboxState; 3] = [SandboxState::Ready, SandboxState::Idle, SandboxState::Running];

/// What a look at the sandbox says about the wait.
pub(crate) enum Verdict {
    Reached,
    NotYet,
    Failed(Error),
}

/// What one look has found.
pub(crate) enum Look<T> {
    Found(T),
    /// Not yet; what it is now.
    NotYet(String),
}

/// The pauses between looks: one that a start within milliseconds does not notice, then a tenth of a second, growing to
/// 2 s.
pub(crate) struct Pace {
    pause: Duration,
    steady: bool,
}

impl Pace {
    const FIRST: Duration = Duration::from_millis(10);
    const SECOND: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(2);

    pub(crate) fn new() -> Self {
        Self { pause: Self::FIRST, steady: false }
    }

    /// The same pause every time, for what takes long.
    pub(crate) fn steady(pause: Duration) -> Self {
        Self { pause, steady: true }
    }

    fn next(&mut self) -> Duration {
        let pause = self.pause;
        if !self.steady {
            self.pause = (pause * 3 / 2).clamp(Self::SECOND, Self::LONGEST);
        }
        pause
    }
}

/// Looks until the verdict is in, for at most `limit`: a look in flight when the limit runs out is dropped. `expired` is
/// told what the last look has seen.
pub(crate) async fn poll<T, L, Fut>(
    clock: &dyn Clock,
    mut pace: Pace,
    limit: Option<Duration>,
    mut look: L,
    expired: impl FnOnce(Option<String>) -> Error,
) -> Result<T>
where
    L: FnMut(Duration) -> Fut,
    Fut: Future<Output = Result<Look<T>>>,
{
    let start = clock.elapsed();
    let last = Mutex::new(None);
    let last = || last.lock().unwrap_or_else(PoisonError::into_inner);
    let looking = pin!(async {
        loop {
            match look(clock.elapsed().saturating_sub(start)).await? {
                Look::Found(found) => return Ok(found),
                Look::NotYet(state) => *last() = Some(state),
            }
            clock.sleep(pace.next()).await;
            if limit.is_some_and(|limit| clock.elapsed() >= start.saturating_add(limit)) {
                // A look that begins now could not end in time.
                return std::future::pending().await;
            }
        }
    });
    let Some(limit) = limit else { return looking.await };
    match select(looking, clock.sleep(limit)).await {
        // The limit of the look in flight may be the same moment.
        Either::Left((Err(error), _))
            if error.kind() == ErrorKind::Timeout && clock.elapsed() >= start.saturating_add(limit) =>
        {
            Err(expired(last().take()))
        }
        Either::Left((found, _)) => found,
        Either::Right(((), _)) => Err(expired(last().take())),
    }
}

impl AsyncSandbox {
    /// Waits until commands can be run: its state is `ready`, `idle` or `running`.
    ///
    /// # Errors
    ///
    /// As [`wait_for_state`](Self::wait_for_state), with a limit of 5 minutes or the view's total limit.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::Create;
    ///
    /// let sandbox = client.create(Create::new().wait(false)).await?;
    /// sandbox.wait_until_ready().await?;
    /// assert!(sandbox.exec("true").await?.success());
    /// # Ok(()) }
    /// ```
    pub async fn wait_until_ready(&self) -> Result<()> {
        self.wait_for_state(&READY, None).await
    }

    /// Waits until its state is one of `states`, for at most `limit`: the view's total limit if one is set, else 5
    /// minutes, if `None`. A second look comes after 10 ms, the next after 100 ms; in the
    /// end they are 2 s apart.
    ///
    /// # Errors
    ///
    /// [`WaitTimeout`](ErrorKind::WaitTimeout) at the limit, a look in flight included, with the state last
    /// read in its message and, as `state`, in its details;
    /// [`SandboxState`](ErrorKind::SandboxState) with the code `sandbox_<state>` as soon as it has failed (`error`), was
    /// cancelled for want of a machine (`cancelled`) or is stopped (`archived`) and that is not what is waited for;
    /// whatever reading it failed with.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::{Create, models::SandboxState};
    ///
    /// let sandbox = client.create(Create::new().wait(false)).await?;
    /// sandbox.wait_for_state(&[SandboxState::Ready], None).await?;
    /// # Ok(()) }
    /// ```
    pub async fn wait_for_state(&self, states: &[SandboxState], limit: Option<Duration>) -> Result<()> {
        if states.is_empty() {
            return Err(Error::invalid_input("states", "must have at least one state"));
        }
        self.watch(self.wait_limit(limit, READY_LIMIT), &wanted(states), |sandbox, _| {
            if states.contains(&sandbox.state) {
                return Verdict::Reached;
            }
            match sandbox.state {
                SandboxState::Archived | SandboxState::Error | SandboxState::Cancelled => {
                    Verdict::Failed(self.state_error(sandbox))
                }
                _ => Verdict::NotYet,
            }
        })
        .await
    }

    /// Waits for readiness after a call that brings it about; for a while after a resume, `archived` is old news.
    pub(crate) async fn wait_started(&self, limit: Option<Duration>, archived_grace: Duration) -> Result<()> {
        self.watch(self.wait_limit(limit, READY_LIMIT), "ready", |sandbox, waited| {
            if READY.contains(&sandbox.state) {
                return Verdict::Reached;
            }
            match sandbox.state {
                SandboxState::Archived if waited < archived_grace => Verdict::NotYet,
                SandboxState::Archived | SandboxState::Error | SandboxState::Cancelled => {
                    Verdict::Failed(self.state_error(sandbox))
                }
                _ => Verdict::NotYet,
            }
        })
        .await
        .map_err(|error| match error.kind() {
            // A sandbox that got no machine is told of once, and that answer may have been lost.
            ErrorKind::NotFound => Error::new(
                ErrorKind::SandboxState,
                "sandbox_gone",
                "the sandbox is gone before it was ready: it got no machine, or was deleted",
            )
            .with_details(serde_json::json!({ "state": "gone" }))
            .with_status(error.status())
            .with_delivery(Delivery::Answered)
            .with_sandbox_id(Some(self.id().to_owned()))
            .with_source(error),
            _ => error,
        })
    }

    /// Reads the sandbox until the verdict is in.
    pub(crate) async fn watch(
        &self,
        limit: Option<Duration>,
        wanted: &str,
        verdict: impl Fn(&Sandbox, Duration) -> Verdict,
    ) -> Result<()> {
        self.watch_at(Pace::new(), limit, wanted, verdict).await
    }

    /// Reads the sandbox at this pace until the verdict is in.
    pub(crate) async fn watch_at(
        &self,
        pace: Pace,
        limit: Option<Duration>,
        wanted: &str,
        verdict: impl Fn(&Sandbox, Duration) -> Verdict,
    ) -> Result<()> {
        let verdict = &verdict;
        let expired = |state: Option<String>| {
            let state = state.or_else(|| self.info().map(|info| info.state.to_string()));
            late(&format!("the sandbox was not {wanted}"), limit, state)
                .with_sandbox_id(Some(self.id().to_owned()))
        };
        let look = async |waited| {
            let info = self.refresh().await?;
            match verdict(&info, waited) {
                Verdict::Reached => Ok(Look::Found(())),
                Verdict::NotYet => Ok(Look::NotYet(info.state.to_string())),
                Verdict::Failed(error) => Err(error),
            }
        };
        poll(&**self.api().clock(), pace, limit, look, expired).await
    }

    /// The limit of a wait: what was asked for, else the view's total limit if it is set, else `default`.
    pub(crate) fn wait_limit(&self, asked: Option<Duration>, default: Duration) -> Option<Duration> {
        asked.or(self.explicit_total()).or(Some(default))
    }

    /// The error of a state from which the one wanted cannot be reached.
    pub(crate) fn state_error(&self, sandbox: &Sandbox) -> Error {
        let state = &sandbox.state;
        let reason = sandbox.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
        Error::new(
            ErrorKind::SandboxState,
            format!("sandbox_{state}"),
            format!("the sandbox is `{state}`{reason}"),
        )
        .with_details(serde_json::json!({ "state": state.as_str() }))
        .with_delivery(Delivery::Answered)
        .with_sandbox_id(Some(self.id().to_owned()))
    }
}

/// The error of a wait that took too long, with what was last seen.
pub(super) fn late(what: &str, limit: Option<Duration>, state: Option<String>) -> Error {
    let seen = state.as_deref().unwrap_or("unknown");
    let limit = limit.unwrap_or_default();
    let message = format!("{what} within {limit:?}; its state was `{seen}` when last read");
    Error::new(ErrorKind::WaitTimeout, "wait_timeout", message)
        .with_details(state.map(|state| serde_json::json!({ "state": state })))
        .with_delivery(Delivery::Answered)
}

fn wanted(states: &[SandboxState]) -> String {
    let names: Vec<&str> = states.iter().map(SandboxState::as_str).collect();
    format!("`{}`", names.join("` or `"))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::clock::ManualClock;

    async fn run<T>(clock: &ManualClock, future: impl Future<Output = T>) -> T {
        tokio::pin!(future);
        loop {
            tokio::select! {
                biased;
                done = &mut future => return done,
                () = tokio::task::yield_now() => clock.advance(clock.next_due().unwrap_or_default()),
            }
        }
    }

    fn expired(state: Option<String>) -> Error {
        late("it was not there", None, state)
    }

    #[tokio::test]
    async fn a_state_reached_after_1200_ms_is_seen_by_1500_ms() {
        for reached in [0, 150, 700, 1200, 1300] {
            let clock = ManualClock::new();
            let reached = Duration::from_millis(reached);
            let look = async |_| {
                let now = clock.elapsed();
                Ok(if now >= reached { Look::Found(now) } else { Look::NotYet("on its way".to_owned()) })
            };
            let seen =
                run(&clock, poll(&clock, Pace::new(), Some(READY_LIMIT), look, expired)).await.unwrap();
            assert!(seen <= reached + Duration::from_millis(350), "{reached:?} seen at {seen:?}");
        }
    }

    #[tokio::test]
    async fn looks_are_never_more_than_2_s_apart_and_never_a_storm() {
        let clock = ManualClock::new();
        let looks = Cell::new(0);
        let look = async |_| {
            looks.set(looks.get() + 1);
            Ok(Look::<()>::NotYet(looks.get().to_string()))
        };
        let error = run(&clock, poll(&clock, Pace::new(), Some(Duration::from_secs(60)), look, expired))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WaitTimeout);
        assert_eq!(clock.elapsed(), Duration::from_secs(60));
        assert!((30..=40).contains(&looks.get()), "{} looks", looks.get());
        assert!(error.message().contains(&format!("`{}` when last read", looks.get())), "{error}");
    }

    #[tokio::test]
    async fn the_limit_holds_while_a_look_is_in_flight() {
        let clock = ManualClock::new();
        let look = async |_| -> Result<Look<()>> { std::future::pending().await };
        let error = run(&clock, poll(&clock, Pace::new(), Some(Duration::from_secs(3)), look, expired))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WaitTimeout);
        assert_eq!(clock.elapsed(), Duration::from_secs(3));
    }
}
