//! Stopping, bringing back, copying, changing and deleting a sandbox.

use std::sync::Arc;

use sandboxer::{
    Fork, Result, Resume, Stop, Ttl, Update,
    models::{self, DeletionOperation, SandboxUsageResponse, UsageParams},
};

use crate::Sandbox;

impl Sandbox {
    /// Stops it and waits until its disk is saved and it is archived, for at most 10 minutes or the view's total limit.
    /// One that is archived already is fine.
    ///
    /// # Errors
    ///
    /// As [`stop_with`](Self::stop_with).
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::Resume;
    ///
    /// sandbox.files().write("kept.txt", "still here")?;
    /// sandbox.stop()?;
    /// sandbox.resume(Resume::new())?;
    /// assert_eq!(sandbox.files().read("kept.txt")?, "still here");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn stop(&self) -> Result<()> {
        self.stop_with(Stop::new())
    }

    /// Stops it as `options` say. One that is archived already is fine.
    ///
    /// # Errors
    ///
    /// [`SandboxState`](crate::ErrorKind::SandboxState) with the code `stop_failing` when the disk cannot be saved, with
    /// the reason: the service goes on trying and the sandbox stays up, `force` gives up on saving. The same kind with
    /// `stop_superseded` when it is resumed meanwhile, or `sandbox_error` when it fails.
    /// [`WaitTimeout`](crate::ErrorKind::WaitTimeout) at the limit; and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::{Stop, models::SandboxState};
    ///
    /// sandbox.stop_with(Stop::new().force())?;
    /// assert_eq!(sandbox.refresh()?.state, SandboxState::Archived);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn stop_with(&self, options: Stop) -> Result<()> {
        self.call(|sandbox| async move { sandbox.stop_with(options).await })
    }

    /// Brings it back on a fresh machine with the disk it was stopped with, and waits until it is ready unless told not
    /// to. Background commands do not come back.
    ///
    /// If the connection breaks after the call was sent, the sandbox's state may tell that it had arrived, and then the
    /// wait goes on: it is starting and was last [seen](Self::info) otherwise, or it is up and was last seen stopped. One
    /// that was not seen before, as through a handle by id alone, may have been starting or up all along: then the error of
    /// the call is the answer. It is never sent twice.
    ///
    /// # Errors
    ///
    /// [`Conflict`](crate::ErrorKind::Conflict) with `sandbox_not_ready` when it is up already, `no_snapshot` when its
    /// disk is gone, `type_too_small`; the start's own refusals; [`SandboxState`](crate::ErrorKind::SandboxState) or
    /// [`WaitTimeout`](crate::ErrorKind::WaitTimeout) while waiting; and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::Resume;
    ///
    /// sandbox.stop()?;
    /// sandbox.resume(Resume::new().kind("large"))?;
    /// assert!(sandbox.exec("true")?.success());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn resume(&self, options: Resume) -> Result<()> {
        self.call(|sandbox| async move { sandbox.resume(options).await })
    }

    /// Makes a new sandbox from a copy of this one's disk and waits until it is ready unless told not to. This one is not
    /// touched.
    ///
    /// What [`create`](crate::Sandboxer::create) says of keys and names holds here too.
    ///
    /// # Errors
    ///
    /// As [`create`](crate::Sandboxer::create), [`NotFound`](crate::ErrorKind::NotFound), and
    /// [`Conflict`](crate::ErrorKind::Conflict) when this one keeps no disk that could be copied.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::Fork;
    ///
    /// sandbox.files().write("data.txt", "one")?;
    /// let copy = sandbox.fork(Fork::new().name("copy"))?;
    /// copy.files().write("data.txt", "two")?;
    /// assert_eq!(sandbox.files().read("data.txt")?, "one");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn fork(&self, options: Fork) -> Result<Sandbox> {
        let copy = self.call(|sandbox| async move { sandbox.fork(options).await })?;
        Ok(Self::new(self.driver().clone(), copy))
    }

    /// Sets when it stops by itself, counted from now: a duration of 1 second to 30 days, or [`Ttl::Never`].
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::Ttl;
    /// use std::time::Duration;
    ///
    /// sandbox.extend(Duration::from_secs(7200))?;
    /// sandbox.extend(Ttl::Never)?;
    /// assert!(sandbox.info().unwrap().archive_after.is_none());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn extend(&self, ttl: impl Into<Ttl>) -> Result<Arc<models::Sandbox>> {
        self.update(Update::new().ttl(ttl))
    }

    /// Changes its name, the time it stops by itself or its subdomain, and answers with what it is now.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for a value out of its limits; and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::Update;
    ///
    /// assert_eq!(sandbox.update(Update::new().name("renamed"))?.name.as_deref(), Some("renamed"));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn update(&self, options: Update) -> Result<Arc<models::Sandbox>> {
        self.call(|sandbox| async move { sandbox.update(options).await })
    }

    /// What it used in a span of time; by default since it was created.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::models::UsageParams;
    ///
    /// let usage = sandbox.usage(UsageParams::new())?;
    /// assert!(usage.running);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn usage(&self, span: UsageParams) -> Result<SandboxUsageResponse> {
        self.call(|sandbox| async move { sandbox.usage(span).await })
    }

    /// Deletes it for good, whatever state it is in. It is gone at once; the purge of its data goes on at the service as
    /// the operation answered with ([`Api::get_deletion_operation`](crate::Api::get_deletion_operation) follows it).
    /// `None` when it was gone already.
    ///
    /// # Errors
    ///
    /// [`PermissionDenied`](crate::ErrorKind::PermissionDenied) when the key may not; and the failures of any call.
    ///
    /// ```
    /// # let server = sandboxer_mock_server::MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// assert!(sandbox.delete()?.is_some());
    /// assert!(sandbox.delete()?.is_none());
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn delete(&self) -> Result<Option<DeletionOperation>> {
        self.call(|sandbox| async move { sandbox.delete().await })
    }
}
