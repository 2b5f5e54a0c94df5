//! Where the account's measurements go.

use sandboxer::{
    Result, TelemetryTarget,
    models::{TelemetryConfig, TelemetrySetResponse},
};

use crate::Sandboxer;

/// The account's telemetry target, an OpenTelemetry collector; comes from
/// [`Sandboxer::telemetry`](crate::Sandboxer::telemetry).
///
/// There is one for the account. It gets gauges every 60 s and a log record for every change of a sandbox, by OTLP
/// over HTTP. All of it needs the action `account.admin`.
#[derive(Clone, Debug)]
pub struct Telemetry {
    client: Sandboxer,
}

impl Sandboxer {
    /// Where the account's measurements go.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let answer = serde_json::json!({"ok": true, "type": "telemetry.info", "telemetry": {"endpoint":
    /// #     "https://otel.example", "headers": ["X-Key"]}});
    /// # server.on(sandboxer_blocking::Operation::GetTelemetry).reply(sandboxer_mock_server::Reply::json(answer));
    /// let target = client.telemetry().get()?;
    /// assert_eq!(target.map(|target| target.headers), Some(vec!["X-Key".to_owned()]));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn telemetry(&self) -> Telemetry {
        Telemetry { client: self.clone() }
    }
}

impl Telemetry {
    /// Reads the target, if there is one: of its headers only the names.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let answer = serde_json::json!({"ok": true, "type": "telemetry.info", "telemetry": {"endpoint":
    /// #     "https://otel.example", "headers": ["X-Key"]}});
    /// # server.on(sandboxer_blocking::Operation::GetTelemetry).reply(sandboxer_mock_server::Reply::json(answer));
    /// let target = client.telemetry().get()?;
    /// assert_eq!(target.map(|target| target.headers), Some(vec!["X-Key".to_owned()]));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn get(&self) -> Result<Option<TelemetryConfig>> {
        self.client.call(|client| async move { client.telemetry().get().await })
    }

    /// Replaces the target, headers included, and tries it once: `test` says what the collector answered.
    ///
    /// A trial that failed is not an error of the call; the target is set all the same.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, for a bad endpoint or header;
    /// `invalid_endpoint` of the service; and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let answer = serde_json::json!({"ok": true, "type": "telemetry.updated", "telemetry":
    /// #     {"endpoint": "https://otel.example", "headers": ["X-Key"]}, "test": {"ok": true, "status": 200,
    /// #     "message": null}});
    /// # server.on(sandboxer_blocking::Operation::SetTelemetry).reply(sandboxer_mock_server::Reply::json(answer));
    /// use sandboxer_blocking::TelemetryTarget;
    ///
    /// let target = TelemetryTarget::new("https://otel.example").header("X-Key", "hush");
    /// let answer = client.telemetry().set(target)?;
    /// assert!(answer.test.ok);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn set(&self, target: TelemetryTarget) -> Result<TelemetrySetResponse> {
        self.client.call(|client| async move { client.telemetry().set(target).await })
    }

    /// Removes the target, and what was still to be sent to it.
    ///
    /// # Errors
    ///
    /// `not_found` when there is none, unless an earlier try of the same call may have removed it; and the failures of
    /// any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let answer = serde_json::json!({"ok": true, "type": "telemetry.deleted", "telemetry": null});
    /// # server.on(sandboxer_blocking::Operation::DeleteTelemetry).reply(sandboxer_mock_server::Reply::json(answer));
    /// client.telemetry().delete()?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn delete(&self) -> Result<()> {
        self.client.call(|client| async move { client.telemetry().delete().await })
    }
}
