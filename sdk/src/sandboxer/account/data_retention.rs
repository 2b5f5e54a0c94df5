//! What the service keeps of the account's data.

use crate::{AsyncSandboxer, error::Result, models::DataRetentionPolicyResponse, sandboxer::Api};

use super::RetentionUpdate;

/// What the service keeps of the account's data; comes from
/// [`AsyncSandboxer::data_retention`](crate::AsyncSandboxer::data_retention).
///
/// The keys that sandboxes have are refused.
#[derive(Clone, Debug)]
pub struct AsyncDataRetention {
    api: Api,
}

impl AsyncSandboxer {
    /// What the service keeps of the account's data.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// assert!(!client.data_retention().get().await?.enabled);
    /// # Ok(()) }
    /// ```
    pub fn data_retention(&self) -> AsyncDataRetention {
        AsyncDataRetention { api: self.api().clone() }
    }
}

impl AsyncDataRetention {
    /// Reads the policy; `enabled` is zero data retention.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// assert!(!client.data_retention().get().await?.enabled);
    /// # Ok(()) }
    /// ```
    pub async fn get(&self) -> Result<DataRetentionPolicyResponse> {
        self.api.get_data_retention().await
    }

    /// Changes the policy; what is not given stays.
    ///
    /// Turning zero data retention on **deletes the data of archived sandboxes**, and what was accepted for
    /// deletion is deleted even if it is turned off again: see
    /// [`RetentionUpdate::enable`](crate::RetentionUpdate::enable).
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, when nothing is to change or the
    /// confirmation is not as it must be; `session_required` of the service, which takes this from a signed-in
    /// person alone; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::builder().session("somebody").start().expect("a server");
    /// # let client = server.client_builder().api_key("somebody").build()?;
    /// use sandboxer::RetentionUpdate;
    ///
    /// let policy = client.data_retention().update(RetentionUpdate::new().monitoring_off(true)).await?;
    /// assert_eq!(policy.monitoring_off, Some(true));
    /// # Ok(()) }
    /// ```
    pub async fn update(&self, change: RetentionUpdate) -> Result<DataRetentionPolicyResponse> {
        self.api.update_data_retention(change.request()?).await
    }
}
