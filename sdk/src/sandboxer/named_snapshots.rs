//! Disks saved under a name, and the codes that let others start from them.

use std::time::Duration;

use super::{
    Api, AsyncSandboxer,
    allowance::Allowance,
    repeated::removed,
    sandbox::AsyncSandbox,
    settle::limit_of,
    wait::{Look, Pace, late, poll},
};
use crate::{
    call::CallOptions,
    error::{Delivery, Error, ErrorKind, Result},
    models::{
        NamedSnapshot, NamedSnapshotListResponse, NamedSnapshotSaveRequest, NamedSnapshotShare,
        NamedSnapshotShareCreatedResponse, NamedSnapshotStatus,
    },
    wire::Timestamp,
};

/// How long a save is waited for at most unless something else is said.
const LIMIT: Duration = Duration::from_secs(1800);

/// The pause between two looks at a save.
const PAUSE: Duration = Duration::from_secs(2);

/// Names that mean something else to the service.
const RESERVED: [&str; 8] = ["latest", "tree", "pull", "rm", "save", "current", "self", "new"];

/// The named snapshots of a wallet; comes from [`AsyncSandboxer::named_snapshots`].
///
/// A named snapshot does not depend on the sandbox it was saved from and does not expire. [`Create::from`](crate::Create::from)
/// takes its name.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
/// # use sandboxer_mock_server::MockServer;
/// # let server = MockServer::start(); let client = server.client();
/// # let sandbox = client.create(sandboxer::Create::new()).await?;
/// # client.named_snapshots().save(sandbox.id(), "base").await?;
/// let list = client.named_snapshots().list().await?;
/// for snapshot in &list.snapshots {
///     println!("{}: {}", snapshot.name, snapshot.status);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct AsyncNamedSnapshots {
    api: Api,
}

impl AsyncNamedSnapshots {
    /// Reads all of them, newest first, and how many more there may be.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # client.named_snapshots().save(sandbox.id(), "base").await?;
    /// assert_eq!(client.named_snapshots().list().await?.allowance.and_then(|allowance| allowance.free), Some(10));
    /// # Ok(()) }
    /// ```
    pub async fn list(&self) -> Result<NamedSnapshotListResponse> {
        self.api.list_named_snapshots().await
    }

    /// Reads one.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) when there is none of that name; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # sandbox.snapshot("base").await?;
    /// use sandboxer::models::NamedSnapshotStatus;
    ///
    /// assert_eq!(client.named_snapshots().get("base").await?.status, NamedSnapshotStatus::Ready);
    /// # Ok(()) }
    /// ```
    pub async fn get(&self, name: &str) -> Result<NamedSnapshot> {
        Ok(self.api.get_named_snapshot(name).await?.snapshot)
    }

    /// Begins to save a sandbox's disk under a name, and does not wait: [`wait`](Self::wait) does, and
    /// [`AsyncSandbox::snapshot`] does both.
    ///
    /// A name has up to 63 small letters, digits and dashes and begins with a letter or digit; `latest`, `tree`, `pull`,
    /// `rm`, `save`, `current`, `self` and `new` are reserved. Under a name in use, the old snapshot is replaced once the
    /// new one is ready.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](ErrorKind::InvalidInput) for a name out of its limits, before anything is sent;
    /// `save_in_progress` and `named_snapshot_limit` of the service; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let snapshot = client.named_snapshots().save(sandbox.id(), "base").await?;
    /// assert_eq!(snapshot.status.as_str(), "saving");
    /// # Ok(()) }
    /// ```
    pub async fn save(&self, sandbox_id: &str, name: &str) -> Result<NamedSnapshot> {
        if RESERVED.contains(&name) {
            let names = RESERVED.join("`, `");
            return Err(Error::invalid_input("name", format!("must not be one of `{names}`")));
        }
        let request = NamedSnapshotSaveRequest::new(sandbox_id, name);
        Ok(self.api.save_named_snapshot(request).await?.snapshot)
    }

    /// Waits until a save is ready. It is looked at every 2 s, for at most `limit`: the view's total limit if one is set,
    /// else 30 minutes, if `None`.
    ///
    /// # Errors
    ///
    /// [`SandboxState`](ErrorKind::SandboxState) with the code `snapshot_failed` when the save failed, with the reason;
    /// [`WaitTimeout`](ErrorKind::WaitTimeout) at the limit; [`NotFound`](ErrorKind::NotFound) when there is none of that
    /// name; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # sandbox.snapshot("base").await?;
    /// let ready = client.named_snapshots().wait("base", None).await?;
    /// assert!(ready.snapshot_id.is_some());
    /// # Ok(()) }
    /// ```
    pub async fn wait(&self, name: &str, limit: Option<Duration>) -> Result<NamedSnapshot> {
        wait_saved(&self.api, name, limit_of(&self.api, limit, LIMIT), None).await
    }

    /// Removes one, and its share codes with it; sandboxes made from it stay.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) when there is none of that name, unless an earlier try of the same call may
    /// have removed it; `save_in_progress` of the service; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # sandbox.snapshot("base").await?;
    /// client.named_snapshots().delete("base").await?;
    /// # Ok(()) }
    /// ```
    pub async fn delete(&self, name: &str) -> Result<()> {
        removed(self.api.delete_named_snapshot(name).await)
    }

    /// Reads the share codes of one, the revoked ones too; of each code only its first characters are known.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) when there is none of that name; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # client.named_snapshots().save(sandbox.id(), "base").await?;
    /// for share in client.named_snapshots().shares("base").await? {
    ///     println!("{}… was used {} times", share.code_prefix, share.use_count);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn shares(&self, name: &str) -> Result<Vec<NamedSnapshotShare>> {
        Ok(self.api.list_snapshot_shares(name).await?.shares)
    }

    /// Makes a code with which anyone can create sandboxes from one, on a wallet of their own. The code is told only now,
    /// and is not printed: `share_code.expose()` tells it.
    ///
    /// Saving under the same name again changes what the code gives.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) when there is none of that name; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # client.named_snapshots().save(sandbox.id(), "base").await?;
    /// use sandboxer::Create;
    ///
    /// let shared = client.named_snapshots().create_share("base").await?;
    /// assert!(!format!("{shared:?}").contains(shared.share_code.expose()));
    /// let options = Create::new().from(shared.share_code.expose());
    /// # let _ = options;
    /// # Ok(()) }
    /// ```
    pub async fn create_share(&self, name: &str) -> Result<NamedSnapshotShareCreatedResponse> {
        self.api.create_snapshot_share(name).await
    }

    /// Revokes a share code by the id of its share; sandboxes made with it keep their copy.
    ///
    /// # Errors
    ///
    /// [`NotFound`](ErrorKind::NotFound) when there is no such share; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # client.named_snapshots().save(sandbox.id(), "base").await?;
    /// # let id = client.named_snapshots().create_share("base").await?.share.id;
    /// let share = client.named_snapshots().revoke_share("base", &id).await?;
    /// assert_eq!(share.status.as_str(), "revoked");
    /// # Ok(()) }
    /// ```
    pub async fn revoke_share(&self, name: &str, share_id: &str) -> Result<NamedSnapshotShare> {
        Ok(self.api.revoke_snapshot_share(name, share_id).await?.share)
    }
}

impl AsyncSandboxer {
    /// The named snapshots of the wallet.
    pub fn named_snapshots(&self) -> AsyncNamedSnapshots {
        AsyncNamedSnapshots { api: self.api().clone() }
    }
}

impl AsyncSandbox {
    /// Saves its disk under a name and waits until that is ready, for at most 30 minutes or the view's total limit.
    ///
    /// Names are as [`AsyncNamedSnapshots::save`] says; a snapshot of the same name is replaced once the new one is ready.
    ///
    /// # Errors
    ///
    /// Those of [`AsyncNamedSnapshots::save`] and [`AsyncNamedSnapshots::wait`]. When the wait fails the save goes on at
    /// the service.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let snapshot = sandbox.snapshot("base").await?;
    /// assert_eq!(snapshot.name, "base"); // `Create::new().from("base")` starts from it
    /// # Ok(()) }
    /// ```
    pub async fn snapshot(&self, name: &str) -> Result<NamedSnapshot> {
        let allowance = Allowance::of(self.api());
        let group = AsyncNamedSnapshots { api: self.api().clone() };
        let label = |error: Error| error.with_sandbox_id(Some(self.id().to_owned()));
        let begun = group.save(self.id(), name).await.map_err(label)?;
        if begun.status == NamedSnapshotStatus::Ready {
            return Ok(begun);
        }
        let api = match allowance.left(self.api()) {
            Some(left) => self.api().with(CallOptions::new().total(left)),
            None => self.api().clone(),
        };
        let limit = limit_of(&api, None, LIMIT);
        wait_saved(&api, name, limit, Some(&begun.created_at)).await.map_err(label)
    }
}

/// Waits for the save that began at `begun`; one that is ready but began earlier is about to be replaced.
async fn wait_saved(
    api: &Api,
    name: &str,
    limit: Option<Duration>,
    begun: Option<&Timestamp>,
) -> Result<NamedSnapshot> {
    let begun = begun.and_then(Timestamp::to_system_time);
    let look = async |_| {
        let snapshot = api.get_named_snapshot(name).await?.snapshot;
        let older =
            begun.zip(snapshot.created_at.to_system_time()).is_some_and(|(begun, created)| created < begun);
        match snapshot.status {
            _ if older => Ok(Look::NotYet("saving".to_owned())),
            NamedSnapshotStatus::Ready => Ok(Look::Found(snapshot)),
            NamedSnapshotStatus::Failed => {
                let reason = snapshot.error.as_deref().unwrap_or("no reason was given");
                let message = format!("the save of `{}` failed: {reason}", snapshot.name);
                Err(Error::new(ErrorKind::SandboxState, "snapshot_failed", message)
                    .with_details(serde_json::json!({ "state": "failed" }))
                    .with_delivery(Delivery::Answered)
                    .with_sandbox_id(Some(snapshot.source_sandbox_id).filter(|id| !id.is_empty())))
            }
            status => Ok(Look::NotYet(status.to_string())),
        }
    };
    let expired = |state| late("the named snapshot was not ready", limit, state);
    poll(&**api.clock(), Pace::steady(PAUSE), limit, look, expired).await
}
