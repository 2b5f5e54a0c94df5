//! The secrets of the default environment.

use sandboxer::{ReplaceSecrets, Result, models::SecretsResponse};

use crate::Sandboxer;

/// The secrets of the default environment; comes from [`Sandboxer::secrets`](crate::Sandboxer::secrets).
///
/// They are variables, as the text of a `.env` file, and files. One at a time is changed through
/// [`environments`](crate::Sandboxer::environments).
#[derive(Clone, Debug)]
pub struct Secrets {
    client: Sandboxer,
}

impl Sandboxer {
    /// The secrets of the default environment: variables and files.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let secrets = sandboxer_blocking::ReplaceSecrets::new().env_contents("A=1\n");
    /// # client.secrets().replace(secrets)?;
    /// let secrets = client.secrets().get()?;
    /// assert_eq!(secrets.env_contents.expose(), "A=1\n");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn secrets(&self) -> Secrets {
        Secrets { client: self.clone() }
    }
}

impl Secrets {
    /// Reads them all; printing the answer does not show them.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let secrets = sandboxer_blocking::ReplaceSecrets::new().env_contents("A=1\n");
    /// # client.secrets().replace(secrets)?;
    /// let secrets = client.secrets().get()?;
    /// assert_eq!(secrets.env_contents.expose(), "A=1\n");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn get(&self) -> Result<SecretsResponse> {
        self.client.call(|client| async move { client.secrets().get().await })
    }

    /// Replaces **all** secrets: what is not given, variables or files, is deleted.
    ///
    /// To change one variable or file and keep the rest, use [`set_var`](crate::Environments::set_var) or
    /// [`set_secret_file`](crate::Environments::set_secret_file) of the default environment. Running sandboxes get the
    /// new ones at once; `pushed` counts them.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) before anything is sent, for a bad path or more than 64 KiB
    /// of variables; `invalid_env` and `invalid_secret_path` of the service; and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// use sandboxer_blocking::ReplaceSecrets;
    ///
    /// let secrets = ReplaceSecrets::new().env_contents("A=1\n"); // and no files: those there were are deleted
    /// let now = client.secrets().replace(secrets)?;
    /// assert!(now.secret_files.is_empty());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn replace(&self, secrets: ReplaceSecrets) -> Result<SecretsResponse> {
        self.client.call(|client| async move { client.secrets().replace(secrets).await })
    }
}
