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
    /// # let server = sandboxer_mock_server::MockServer::builder().allow_loopback_targets().start().unwrap();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let target = sandboxer_blocking::TelemetryTarget::new(format!("http://{}", server.address())).header("X-Key", "hush");
    /// # client.telemetry().set(target)?;
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
    /// # let server = sandboxer_mock_server::MockServer::builder().allow_loopback_targets().start().unwrap();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let target = sandboxer_blocking::TelemetryTarget::new(format!("http://{}", server.address())).header("X-Key", "hush");
    /// # client.telemetry().set(target)?;
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
    /// # let server = sandboxer_mock_server::MockServer::builder().allow_loopback_targets().start().unwrap();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::TelemetryTarget;
    ///
    /// # let collector = server.address();
    /// let target = TelemetryTarget::new(format!("http://{collector}")).header("X-Key", "hush");
    /// let answer = client.telemetry().set(target)?;
    /// if !answer.test.ok {
    ///     println!("the collector said: {:?}", answer.test.message);
    /// }
    /// # assert_eq!(answer.test.status, Some(404));
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
    /// # let server = sandboxer_mock_server::MockServer::builder().allow_loopback_targets().start().unwrap();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let target = sandboxer_blocking::TelemetryTarget::new(format!("http://{}", server.address())).header("X-Key", "hush");
    /// # client.telemetry().set(target)?;
    /// client.telemetry().delete()?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn delete(&self) -> Result<()> {
        self.client.call(|client| async move { client.telemetry().delete().await })
    }
}
