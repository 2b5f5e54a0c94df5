//! Where the account's measurements go.

use crate::{
    AsyncSandboxer,
    error::Result,
    models::{TelemetryConfig, TelemetrySetResponse},
    sandboxer::{Api, repeated::removed},
};

use super::TelemetryTarget;

/// The account's telemetry target, an OpenTelemetry collector; comes from
/// [`AsyncSandboxer::telemetry`](crate::AsyncSandboxer::telemetry).
///
/// There is one for the account. It gets gauges every 60 s and a log record for every change of a sandbox, by OTLP
/// over HTTP. All of it needs the action `account.admin`.
#[derive(Clone, Debug)]
pub struct AsyncTelemetry {
    api: Api,
}

impl AsyncSandboxer {
    /// Where the account's measurements go.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::builder().allow_loopback_targets().start().unwrap();
    /// # let client = server.client();
    /// # let target = sandboxer::TelemetryTarget::new(format!("http://{}", server.address())).header("X-Key", "hush");
    /// # client.telemetry().set(target).await?;
    /// let target = client.telemetry().get().await?;
    /// assert_eq!(target.map(|target| target.headers), Some(vec!["X-Key".to_owned()]));
    /// # Ok(()) }
    /// ```
    pub fn telemetry(&self) -> AsyncTelemetry {
        AsyncTelemetry { api: self.api().clone() }
    }
}

impl AsyncTelemetry {
    /// Reads the target, if there is one: of its headers only the names.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::builder().allow_loopback_targets().start().unwrap();
    /// # let client = server.client();
    /// # let target = sandboxer::TelemetryTarget::new(format!("http://{}", server.address())).header("X-Key", "hush");
    /// # client.telemetry().set(target).await?;
    /// let target = client.telemetry().get().await?;
    /// assert_eq!(target.map(|target| target.headers), Some(vec!["X-Key".to_owned()]));
    /// # Ok(()) }
    /// ```
    pub async fn get(&self) -> Result<Option<TelemetryConfig>> {
        Ok(self.api.get_telemetry().await?.telemetry)
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
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::builder().allow_loopback_targets().start().unwrap();
    /// # let client = server.client();
    /// use sandboxer::TelemetryTarget;
    ///
    /// # let collector = server.address();
    /// let target = TelemetryTarget::new(format!("http://{collector}")).header("X-Key", "hush");
    /// let answer = client.telemetry().set(target).await?;
    /// if !answer.test.ok {
    ///     println!("the collector said: {:?}", answer.test.message);
    /// }
    /// # assert_eq!(answer.test.status, Some(404));
    /// # Ok(()) }
    /// ```
    pub async fn set(&self, target: TelemetryTarget) -> Result<TelemetrySetResponse> {
        self.api.set_telemetry(target.request()?).await
    }

    /// Removes the target, and what was still to be sent to it.
    ///
    /// # Errors
    ///
    /// `not_found` when there is none, unless an earlier try of the same call may have removed it; and the failures of
    /// any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::builder().allow_loopback_targets().start().unwrap();
    /// # let client = server.client();
    /// # let target = sandboxer::TelemetryTarget::new(format!("http://{}", server.address())).header("X-Key", "hush");
    /// # client.telemetry().set(target).await?;
    /// client.telemetry().delete().await?;
    /// # Ok(()) }
    /// ```
    pub async fn delete(&self) -> Result<()> {
        removed(self.api.delete_telemetry().await)
    }
}
