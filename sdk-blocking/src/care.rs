//! Looking after a sandbox: its load, its processes, its history, sharing it and getting it back.

use sandboxer::{
    HistoryOptions, MetricsWindow, Result,
    models::{
        CommandRecord, MetricsResponse, ProcessListResponse, RecoverSandboxResponse, SandboxMetrics,
        ShareSandboxResponse, StatsResponse,
    },
};

use crate::{Pager, Sandbox, Sandboxer};

impl Sandbox {
    /// Lists what was run in it over all pages, lazily, newest first: commands of the last 90 days, processes of the last
    /// 72 hours. It works while the sandbox is stopped too.
    ///
    /// The list ends with an error where `monitoring_off` says that nothing is recorded, or where an option is out of its
    /// limits; nothing is sent then.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::HistoryOptions;
    ///
    /// let history = sandbox.history(HistoryOptions::new().commands().query("echo").limit(10));
    /// for record in history {
    ///     println!("{}", record?.command);
    /// }
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn history(&self, options: HistoryOptions) -> Pager<CommandRecord> {
        Pager::new(self.driver().clone(), self.inner.history(options), |record| record)
    }

    /// Its processes: as they are now while it is up, at most 500, else as they were last recorded; `live` tells which.
    ///
    /// # Errors
    ///
    /// `monitoring_off` of the service when nothing is recorded; and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let list = sandbox.processes()?;
    /// println!("{} processes, {} of them listed", list.total, list.processes.len());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn processes(&self) -> Result<ProcessListResponse> {
        self.call(|sandbox| async move { sandbox.processes().await })
    }

    /// Its load now: processor, memory and disk.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let stats = sandbox.stats()?;
    /// println!("{} % busy", stats.cpu.unwrap_or_default());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn stats(&self) -> Result<StatsResponse> {
        self.call(|sandbox| async move { sandbox.stats().await })
    }

    /// Its load over time.
    ///
    /// # Errors
    ///
    /// `monitoring_off` of the service when nothing is recorded; and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::MetricsWindow;
    ///
    /// for point in sandbox.metrics(MetricsWindow::Day)?.points.unwrap_or_default() {
    ///     println!("{}: {} % of its memory", point.t, point.mem);
    /// }
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn metrics(&self, window: MetricsWindow) -> Result<MetricsResponse> {
        self.call(|sandbox| async move { sandbox.metrics(window).await })
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
    /// # use sandboxer_mock_server::{MockServer, WorldSeed};
    /// # let world = WorldSeed::from_toml("[[organisations]]\nname = 'Acme'\nmembers = [{ account = 'local' }]");
    /// # let server = MockServer::builder().world(world.unwrap()).start().unwrap();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let client = client.with(sandboxer_blocking::CallOptions::new().org("Acme"));
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// if sandbox.share()?.restart_required == Some(true) {
    ///     sandbox.stop()?;
    ///     sandbox.resume(sandboxer_blocking::Resume::new())?;
    /// }
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn share(&self) -> Result<ShareSandboxResponse> {
        self.call(|sandbox| async move { sandbox.share().await })
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
    /// # use sandboxer_mock_server::{MockServer, Scenario};
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// # server.world().set_scenario_for(sandbox.id(), Scenario::Unreachable, true).unwrap();
    /// let answer = sandbox.recover()?;
    /// println!("{}", answer.message.unwrap_or_default());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn recover(&self) -> Result<RecoverSandboxResponse> {
        self.call(|sandbox| async move { sandbox.recover().await })
    }
}

impl Sandboxer {
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
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::MetricsWindow;
    ///
    /// for sandbox in client.metrics_summary(MetricsWindow::Hour, &[])? {
    ///     let busiest = sandbox.points.iter().map(|point| point.cpu).fold(0.0, f64::max);
    ///     println!("{}: {busiest} % at most", sandbox.sandbox_id);
    /// }
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn metrics_summary(&self, window: MetricsWindow, ids: &[&str]) -> Result<Vec<SandboxMetrics>> {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        self.call(|client| async move {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            client.metrics_summary(window, &ids).await
        })
    }
}
