//! The secrets of the default environment.

use crate::{AsyncSandboxer, error::Result, models::SecretsResponse, sandboxer::Api};

use super::ReplaceSecrets;

/// The secrets of the default environment; comes from [`AsyncSandboxer::secrets`](crate::AsyncSandboxer::secrets).
///
/// They are variables, as the text of a `.env` file, and files. One at a time is changed through
/// [`environments`](crate::AsyncSandboxer::environments).
#[derive(Clone, Debug)]
pub struct AsyncSecrets {
    api: Api,
}

impl AsyncSandboxer {
    /// The secrets of the default environment: variables and files.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let secrets = sandboxer::ReplaceSecrets::new().env_contents("A=1\n");
    /// # client.secrets().replace(secrets).await?;
    /// let secrets = client.secrets().get().await?;
    /// assert_eq!(secrets.env_contents.expose(), "A=1\n");
    /// # Ok(()) }
    /// ```
    pub fn secrets(&self) -> AsyncSecrets {
        AsyncSecrets { api: self.api().clone() }
    }
}

impl AsyncSecrets {
    /// Reads them all; printing the answer does not show them.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let secrets = sandboxer::ReplaceSecrets::new().env_contents("A=1\n");
    /// # client.secrets().replace(secrets).await?;
    /// let secrets = client.secrets().get().await?;
    /// assert_eq!(secrets.env_contents.expose(), "A=1\n");
    /// # Ok(()) }
    /// ```
    pub async fn get(&self) -> Result<SecretsResponse> {
        self.api.secrets().await
    }

    /// Replaces **all** secrets: what is not given, variables or files, is deleted.
    ///
    /// To change one variable or file and keep the rest, use [`set_var`](crate::AsyncEnvironments::set_var) or
    /// [`set_secret_file`](crate::AsyncEnvironments::set_secret_file) of the default environment. Running sandboxes get the
    /// new ones at once; `pushed` counts them.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, for a bad path or more than 64 KiB
    /// of variables; `invalid_env` and `invalid_secret_path` of the service; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::ReplaceSecrets;
    ///
    /// let secrets = ReplaceSecrets::new().env_contents("A=1\n"); // and no files: those there were are deleted
    /// let now = client.secrets().replace(secrets).await?;
    /// assert!(now.secret_files.is_empty());
    /// # Ok(()) }
    /// ```
    pub async fn replace(&self, secrets: ReplaceSecrets) -> Result<SecretsResponse> {
        self.api.update_secrets(secrets.request()?).await
    }
}
