//! What the service keeps of the account's data.

use sandboxer::{Result, RetentionUpdate, models::DataRetentionPolicyResponse};

use crate::Sandboxer;

/// What the service keeps of the account's data; comes from
/// [`Sandboxer::data_retention`](crate::Sandboxer::data_retention).
///
/// The keys that sandboxes have are refused.
#[derive(Clone, Debug)]
pub struct DataRetention {
    client: Sandboxer,
}

impl Sandboxer {
    /// What the service keeps of the account's data.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// assert!(!client.data_retention().get()?.enabled);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn data_retention(&self) -> DataRetention {
        DataRetention { client: self.clone() }
    }
}

impl DataRetention {
    /// Reads the policy; `enabled` is zero data retention.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// assert!(!client.data_retention().get()?.enabled);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn get(&self) -> Result<DataRetentionPolicyResponse> {
        self.client.call(|client| async move { client.data_retention().get().await })
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
    /// # let server = sandboxer_mock_server::MockServer::builder().session("somebody").start().expect("a server");
    /// # let client = server.client_builder().api_key("somebody").build().expect("a client");
    /// # let client = sandboxer_blocking::Sandboxer::from_async(client);
    /// use sandboxer_blocking::RetentionUpdate;
    ///
    /// let policy = client.data_retention().update(RetentionUpdate::new().monitoring_off(true))?;
    /// assert_eq!(policy.monitoring_off, Some(true));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn update(&self, change: RetentionUpdate) -> Result<DataRetentionPolicyResponse> {
        self.client.call(|client| async move { client.data_retention().update(change).await })
    }
}
