//! A file of this machine that appears only when it is whole.

use std::{
    io,
    path::{Path, PathBuf},
};

use tokio::{fs::File, io::AsyncWriteExt as _};

/// A file that is being written beside its target. Dropped before [`finish`](Self::finish), it is removed.
pub(super) struct Partial {
    file: Option<File>,
    /// Where it is until it is whole.
    path: PathBuf,
    target: PathBuf,
    is_whole: bool,
}

impl Partial {
    pub(super) async fn create(target: &Path) -> io::Result<Self> {
        let target = target.to_owned();
        // In one go: of a file that is made while its future is dropped there would be nobody to remove it.
        tokio::task::spawn_blocking(move || Self::create_blocking(target)).await.map_err(io::Error::other)?
    }

    fn create_blocking(target: PathBuf) -> io::Result<Self> {
        // A link stays one; what it leads to is replaced.
        let target = match std::fs::symlink_metadata(&target) {
            Ok(about) if about.is_symlink() => std::fs::canonicalize(&target)?,
            _ => target,
        };
        let Some(name) = target.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the target has no file name"));
        };
        let permissions = match std::fs::metadata(&target) {
            Ok(about) if about.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            // To rename over a device or a pipe would put an end to it.
            Ok(about) if !about.is_file() => {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "the target is no plain file"));
            }
            Ok(about) => Some(about.permissions()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        // Long names and a suffix might not fit together.
        let start: String = name.to_string_lossy().chars().take(40).collect();
        let path = target.with_file_name(format!(".{start}.{}.part", uuid::Uuid::new_v4().simple()));
        let file = std::fs::File::options().write(true).create_new(true).open(&path)?;
        let partial = Self { file: Some(File::from_std(file)), path, target, is_whole: false };
        if let Some(permissions) = permissions {
            std::fs::set_permissions(&partial.path, permissions)?;
        }
        Ok(partial)
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.write_all(bytes).await,
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Puts it in the target's place, on the disk for good.
    pub(super) async fn finish(mut self) -> io::Result<()> {
        if let Some(mut file) = self.file.take() {
            file.flush().await?;
            file.sync_all().await?;
        }
        tokio::fs::rename(&self.path, &self.target).await?;
        self.is_whole = true;
        Ok(())
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_whole {
            self.file = None;
            // Nobody is left to tell.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
