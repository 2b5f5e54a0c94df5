//! All secrets of the default environment, to take the place of those there are.

use crate::{
    error::Result,
    models::{SecretFileRequest, SecretsUpdateRequest},
    wire::Secret,
};

use super::checks;

/// **All** secrets of the default environment, to take the place of those there are: what is left out is deleted.
///
/// ```
/// use sandboxer::ReplaceSecrets;
///
/// let secrets = ReplaceSecrets::new().env_contents("TOKEN=hush\n").file("config/key.pem", "hush");
/// assert!(!format!("{secrets:?}").contains("hush"));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct ReplaceSecrets {
    env_contents: Secret,
    files: Vec<SecretFileRequest>,
}

impl ReplaceSecrets {
    /// No variables and no files: replacing by this deletes all.
    pub fn new() -> Self {
        Self::default()
    }

    /// The variables, as the text of a `.env` file, up to 64 KiB.
    pub fn env_contents(mut self, text: impl Into<Secret>) -> Self {
        self.env_contents = text.into();
        self
    }

    /// A file; its path is relative to the work folder and inside it. Several calls add up.
    pub fn file(mut self, path: impl Into<String>, contents: impl Into<Secret>) -> Self {
        self.files.push(SecretFileRequest::new(path, contents));
        self
    }

    /// Both fields are always sent, so that the request says what happens.
    pub(super) fn request(self) -> Result<SecretsUpdateRequest> {
        check_files(&self.files)?;
        Ok(SecretsUpdateRequest::new().env_contents(self.env_contents).secret_files(self.files))
    }
}

/// Each path is fit, and none comes twice.
pub(super) fn check_files(files: &[SecretFileRequest]) -> Result<()> {
    for (index, file) in files.iter().enumerate() {
        let field = format!("secretFiles[{index}].path");
        checks::secret_path(&field, &file.path)?;
        if files[..index].iter().any(|earlier| earlier.path == file.path) {
            return Err(crate::Error::invalid_input(&field, "must be given once"));
        }
    }
    Ok(())
}
