//! Looking after a sandbox: its load, its processes, its history, sharing it and getting it back.

use super::{AsyncSandboxer, given, sandbox::AsyncSandbox};
use crate::{
    error::{Error, Result},
    models::{
        CommandHistoryParams, CommandMode, CommandRecord, MetricsParams, MetricsResponse,
        MetricsSummaryParams, ProcessListResponse, RecoverSandboxResponse, SandboxMetrics,
        ShareSandboxResponse, StatsResponse,
    },
    stream::{Page, PageRequest, Pager},
};

/// How far back a load curve goes.
///
/// ```
/// use sandboxer::MetricsWindow;
///
/// assert_eq!(MetricsWindow::Day.as_str(), "24h");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MetricsWindow {
    /// An hour, in steps of 30 s.
    Hour,
    /// A day, in steps of 10 minutes.
    Day,
    /// A week, in steps of an hour.
    Week,
}

impl MetricsWindow {
    /// As it is written on the wire: `1h`, `24h` or `1w`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::Day => "24h",
            Self::Week => "1w",
        }
    }
}

/// Which records of a sandbox's history to list.
///
/// ```
/// use sandboxer::HistoryOptions;
///
/// let options = HistoryOptions::new().mode("stream").mode("detached").query("pytest").limit(20).cursor("c_1");
/// let commands = HistoryOptions::new().commands(); // not what agents ran
/// # let _ = (options, commands);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct HistoryOptions {
    modes: Vec<String>,
    query: Option<String>,
    limit: Option<u64>,
    cursor: Option<String>,
}

impl HistoryOptions {
    /// Everything, newest first.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only what was run this way: `sync`, `stream`, `detached` or `process`; several calls add up.
    pub fn mode(mut self, mode: impl Into<CommandMode>) -> Self {
        self.modes.push(mode.into().as_str().to_owned());
        self
    }

    /// Only what this API ran: `sync`, `stream` and `detached`, not other processes.
    pub fn commands(mut self) -> Self {
        self.modes.push("commands".to_owned());
        self
    }

    /// Only commands that contain this text, at most 200 characters; upper and lower case are alike.
    pub fn query(mut self, text: impl Into<String>) -> Self {
        self.query = Some(text.into());
        self
    }

    /// At most this many, over all pages.
    pub fn limit(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }

    /// From this cursor on, as an earlier answer of the service gave it.
    pub fn cursor(mut self, cursor: impl Into<String>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }

    fn check(&self) -> Result<()> {
        given::listed("mode", self.modes.iter().map(String::as_str))?;
        given::filled("cursor", self.cursor.as_deref())
    }
}

impl AsyncSandbox {
    /// Lists what was run in it over all pages, lazily, newest first: commands of the last 90 days, processes of the last
    /// 72 hours. It works while the sandbox is stopped too.
    ///
    /// The list ends with an error where `monitoring_off` says that nothing is recorded, or where an option is out of its
    /// limits; nothing is sent then.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::HistoryOptions;
    ///
    /// let mut history = sandbox.history(HistoryOptions::new().commands().query("echo").limit(10));
    /// while let Some(record) = history.next().await {
    ///     println!("{}", record?.command);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn history(&self, options: HistoryOptions) -> Pager<CommandRecord> {
        if let Err(error) = options.check() {
            return Pager::failing(error);
        }
        let sandbox = self.clone();
        let mut request = CommandHistoryParams::new();
        if !options.modes.is_empty() {
            request = request.mode(options.modes.join(","));
        }
        request.q = options.query;
        Pager::new(options.limit, options.cursor, move |page: PageRequest| {
            let sandbox = sandbox.clone();
            let mut request = request.clone().limit(page.size);
            request.cursor = page.cursor;
            async move {
                let answer = sandbox.api().command_history(sandbox.id(), request).await?;
                let has_more = answer.next_cursor.is_some();
                Ok(Page { items: answer.commands, next_cursor: answer.next_cursor, has_more })
            }
        })
    }

    /// Its processes: as they are now while it is up, at most 500, else as they were last recorded; `live` tells which.
    ///
    /// # Errors
    ///
    /// `monitoring_off` of the service when nothing is recorded; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let list = sandbox.processes().await?;
    /// println!("{} processes, {} of them listed", list.total, list.processes.len());
    /// # Ok(()) }
    /// ```
    pub async fn processes(&self) -> Result<ProcessListResponse> {
        self.api().processes(self.id()).await
    }

    /// Its load now: processor, memory and disk.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let stats = sandbox.stats().await?;
    /// println!("{} % busy", stats.cpu.unwrap_or_default());
    /// # Ok(()) }
    /// ```
    pub async fn stats(&self) -> Result<StatsResponse> {
        self.api().stats(self.id()).await
    }

    /// Its load over time.
    ///
    /// # Errors
    ///
    /// `monitoring_off` of the service when nothing is recorded; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::MetricsWindow;
    ///
    /// for point in sandbox.metrics(MetricsWindow::Day).await?.points.unwrap_or_default() {
    ///     println!("{}: {} % of its memory", point.t, point.mem);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn metrics(&self, window: MetricsWindow) -> Result<MetricsResponse> {
        self.api().metrics(self.id(), MetricsParams::new().window(window.as_str())).await
    }

    /// Lets the members of the organisation that pays for it use it. This cannot be taken back, and the creator's sign-ins
    /// are wiped when it starts next: where `restart_required` says so, members can use it after a stop and a resume.
    ///
    /// # Errors
    ///
    /// [`PermissionDenied`](crate::ErrorKind::PermissionDenied) for anyone but its creator, `not_org_sandbox` of the
    /// service when no organisation pays; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::{MockServer, WorldSeed};
    /// # let world = WorldSeed::from_toml("[[organisations]]\nname = 'Acme'\nmembers = [{ account = 'local' }]");
    /// # let server = MockServer::builder().world(world.unwrap()).start().unwrap();
    /// # let client = server.client();
    /// # let client = client.with(sandboxer::CallOptions::new().org("Acme"));
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// if sandbox.share().await?.restart_required == Some(true) {
    ///     sandbox.stop().await?;
    ///     sandbox.resume(sandboxer::Resume::new()).await?;
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn share(&self) -> Result<ShareSandboxResponse> {
        let answer = self.api().share(self.id()).await?;
        if let Some(info) = &answer.sandbox {
            self.remember(info.clone());
        }
        Ok(answer)
    }

    /// Power-cycles the machine of a sandbox that cannot be reached; its disk is not touched. It takes one or two minutes
    /// and is not waited for: the sandbox's `health` tells.
    ///
    /// # Errors
    ///
    /// [`Conflict`](crate::ErrorKind::Conflict) with `sandbox_is_reachable` when there is no need, `too_soon` within 10
    /// minutes of the last time, `no_machine`, `recover_unsupported` or `reset_failed`; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::{MockServer, Scenario};
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # server.world().set_scenario_for(sandbox.id(), Scenario::Unreachable, true).unwrap();
    /// let answer = sandbox.recover().await?;
    /// println!("{}", answer.message.unwrap_or_default());
    /// # Ok(()) }
    /// ```
    pub async fn recover(&self) -> Result<RecoverSandboxResponse> {
        self.api().recover(self.id()).await
    }
}

impl AsyncSandboxer {
    /// The load of several sandboxes over time, at most 30 points each: of those with these ids, or of the newest 100 that
    /// the key may see when there are none.
    ///
    /// Sandboxes that are not monitored or have no points are left out.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, for an id that is empty or has a comma in
    /// it, and for more ids than 4096 characters hold; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// use sandboxer::MetricsWindow;
    ///
    /// for sandbox in client.metrics_summary(MetricsWindow::Hour, &[]).await? {
    ///     let busiest = sandbox.points.iter().map(|point| point.cpu).fold(0.0, f64::max);
    ///     println!("{}: {busiest} % at most", sandbox.sandbox_id);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn metrics_summary(&self, window: MetricsWindow, ids: &[&str]) -> Result<Vec<SandboxMetrics>> {
        let mut request = MetricsSummaryParams::new().window(window.as_str());
        if ids.iter().any(|id| id.is_empty() || id.contains(',')) {
            return Err(Error::invalid_input(
                "ids",
                "an id must not be empty and must not have a comma in it",
            ));
        }
        if !ids.is_empty() {
            request = request.ids(ids.join(","));
        }
        Ok(self.api().metrics_summary(request).await?.sandboxes.unwrap_or_default())
    }
}
