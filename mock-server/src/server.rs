//! The server as a value: asked for its address, its state and its record, and dropped.

use std::{fmt, net::SocketAddr, thread::JoinHandle};

use sandboxer::{AsyncSandboxer, Operation, clock::SharedClock};

use crate::{
    agent::{Agent, AgentError, Turn},
    builder::MockServerBuilder,
    faults::{Faults, Script, Wire},
    record::Recorded,
    router,
    serve::Service,
    world::handle::World,
};

/// A local sandbox service on a thread of its own. Dropping it ends everything it started and removes what it made,
/// but for a data folder.
pub struct MockServer {
    service: Service,
    address: SocketAddr,
    notice: Option<String>,
    api_key: String,
    clock: SharedClock,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for MockServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockServer").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl MockServer {
    pub(crate) fn new(
        service: Service,
        address: SocketAddr,
        notice: Option<String>,
        api_key: String,
        clock: SharedClock,
        thread: JoinHandle<()>,
    ) -> Self {
        Self { service, address, notice, api_key, clock, thread: Some(thread) }
    }

    /// Starts a server with the defaults: a free port on `127.0.0.1`, one account, a key made up for the occasion, the
    /// best runner that works here.
    ///
    /// # Panics
    ///
    /// If it cannot be started; [`MockServer::builder`] answers with an error instead.
    #[expect(clippy::expect_used, reason = "documented: for tests that have nothing else to do about it")]
    pub fn start() -> Self {
        Self::builder().start().expect("the mock server cannot be started")
    }

    /// A server to be set up first.
    pub fn builder() -> MockServerBuilder {
        MockServerBuilder::default()
    }

    /// The base URL of its API, such as `http://127.0.0.1:40123/api/v1`.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, router::PREFIX)
    }

    /// The address of the page for people, such as `http://127.0.0.1:40123/?token=…`: shows sandboxes, what runs in them,
    /// webhook deliveries and the last requests. The token lets in whoever has it, for as long as the server runs.
    pub fn page_url(&self) -> String {
        let base = self.service.app.url().unwrap_or_else(|| self.url());
        self.service.page.url(base.strip_suffix(router::PREFIX).unwrap_or(&base))
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A key that it takes: the first one given, or the one made up.
    pub fn api_key(&self) -> &str {
        &self.api_key
    }

    /// A client of this server: its address, its key, its clock, no proxy, nothing from the environment.
    ///
    /// # Panics
    ///
    /// If this machine cannot build a client at all, for want of a usable trust store for instance.
    #[expect(clippy::expect_used, reason = "documented: for tests that have nothing else to do about it")]
    pub fn client(&self) -> AsyncSandboxer {
        self.client_builder().build().expect("a client cannot be built")
    }

    /// The same, to be changed before it is built.
    pub fn client_builder(&self) -> sandboxer::Builder {
        AsyncSandboxer::builder()
            .ignore_env()
            .no_proxy()
            .base_url(self.url())
            .api_key(self.api_key.as_str())
            .clock(self.clock())
    }

    /// The clock it runs on.
    pub fn clock(&self) -> SharedClock {
        self.clock.clone()
    }

    /// What there is to say about how commands run, such as that they are not isolated.
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// The name of the runner that runs commands: `isolated`, `process` or `scripted`.
    pub fn runner_name(&self) -> &'static str {
        self.service.app.runner.name()
    }

    /// Its insides, for tests of them.
    #[cfg(test)]
    pub(crate) fn app(&self) -> std::sync::Arc<crate::app::App> {
        self.service.app.clone()
    }

    /// Its state, to be looked at and changed.
    pub fn world(&self) -> World {
        World::new(self.service.app.clone())
    }

    /// Answers prompts with this closure from now on, instead of the agent that is built in; see
    /// [`agent`](crate::agent). Turns that run go on with the agent they began with.
    pub fn set_agent<F, W>(&self, agent: F)
    where
        F: Fn(Turn) -> W + Send + Sync + 'static,
        W: Future<Output = Result<(), AgentError>> + Send + 'static,
    {
        self.service.app.agents.install(Agent::new(agent));
    }

    /// Answers prompts with the agent that is built in again.
    pub fn reset_agent(&self) {
        self.service.app.agents.install(Agent::default());
    }

    /// Starts a script for one operation: what its next requests are answered with instead of the real answer. A command
    /// that asks for a stream is [`Operation::CommandStream`], one for events as a stream [`Operation::EventsStream`].
    ///
    /// ```
    /// use sandboxer_mock_server::{MockServer, Reply};
    /// use sandboxer::Operation;
    ///
    /// let server = MockServer::start();
    /// server.on(Operation::Create).reply(Reply::status(503)).times(2);
    /// ```
    pub fn on(&self, operation: Operation) -> Script {
        self.service.faults.on(operation)
    }

    /// Every fault there can be, also for all operations at once.
    pub fn faults(&self) -> &Faults {
        &self.service.faults
    }

    /// The faults of connections.
    pub fn wire(&self) -> &Wire {
        self.service.faults.wire()
    }

    /// Takes back every fault that has not happened yet.
    pub fn clear_faults(&self) {
        self.service.faults.clear();
    }

    /// The last 10,000 requests, oldest first, with 64 KiB of each body.
    pub fn requests(&self) -> Vec<Recorded> {
        self.service.recorder.requests()
    }

    /// Those of them that were for one operation.
    pub fn requests_to(&self, operation: Operation) -> Vec<Recorded> {
        self.service.recorder.requests_to(operation)
    }

    /// Forgets the requests so far.
    pub fn clear_requests(&self) {
        self.service.recorder.clear();
    }

    /// Ends it: open streams get their last frame, every process is ended, temporary folders are removed. Returns when
    /// that is done.
    pub fn shutdown(mut self) {
        self.close();
    }

    fn close(&mut self) {
        self.service.app.closing.cancel();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the server's thread panicked");
        }
        #[cfg(feature = "check-answers")]
        self.service.differences.judge();
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.close();
    }
}
