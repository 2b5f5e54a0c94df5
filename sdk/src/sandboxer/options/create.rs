//! A sandbox to be made.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    Waiting,
    setters::{made_setters, start_setters, waiting_setters},
};
use crate::{
    models::{ContentEncoding, CreateFile, CreateSandboxRequest, HostPortRequest, SandboxVisibility},
    wire::Patch,
};

/// A sandbox to be made.
///
/// ```
/// use sandboxer::{Create, models::{HostPortRequest, SandboxVisibility}};
/// use std::time::Duration;
///
/// let options = Create::new()
///     .kind("small")
///     .name("demo")
///     .ttl(Duration::from_secs(1800)) // or `no_ttl`
///     .env("CI", "1")
///     .envs([("LC_ALL", "C"), ("TZ", "UTC")])
///     .environment("ci") // or `no_env`
///     .setup_script("pip install pytest")
///     .from("python-base") // a named snapshot or a share code
///     .org("acme") // or `personal`
///     .snapshots(true)
///     .monitoring(false)
///     .fail_fast()
///     .wait(true)
///     .wait_limit(Duration::from_secs(120));
///
/// let alone = Create::new().no_ttl().no_env().personal();
///
/// // What only boat has.
/// let more = Create::new()
///     .file("app/main.py", "print('hi')\n")
///     .hosted_port(HostPortRequest::new(3000))
///     .visibility(SandboxVisibility::Private);
/// # let _ = (options, alone, more);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct Create {
    pub(crate) request: CreateSandboxRequest,
    pub(crate) waiting: Waiting,
    pub(crate) name: Option<String>,
}

impl Create {
    /// Everything as the service has it by default: size `default`, stopped after an hour.
    pub fn new() -> Self {
        Self::default()
    }

    start_setters!();
    made_setters!();
    waiting_setters!("ready", "5 minutes");

    /// Waits also until its [setup script](Self::setup_script) has ended well, for up to 10 minutes more unless
    /// [`wait_limit`](Self::wait_limit) sets how long to wait in all; without a script (or [files](Self::file)) there is
    /// nothing more to wait for. A script that fails is an error with the code `setup_failed` and the sandbox's id, and the
    /// sandbox stays, unless a guard or a scope owns it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::Create;
    ///
    /// let sandbox = client.create(Create::new().setup_script("echo one > ~/made").wait_for_setup()).await?;
    /// assert_eq!(sandbox.files().read("made").await?, "one\n");
    ///
    /// let failed = client.create(Create::new().setup_script("exit 3").wait_for_setup()).await.unwrap_err();
    /// assert_eq!(failed.code(), "setup_failed");
    /// client.sandbox(failed.sandbox_id().unwrap()).delete().await?; // it is there to be looked at
    /// # Ok(()) }
    /// ```
    pub fn wait_for_setup(mut self) -> Self {
        self.waiting.wait = true;
        self.waiting.setup = true;
        self
    }

    /// Whether its disk is kept when it stops (default: yes). Without it, it cannot be resumed or forked once stopped.
    pub fn snapshots(mut self, keep: bool) -> Self {
        self.request = self.request.snapshots(keep);
        self
    }

    /// A bash script run once it is up, at most 64 KiB; being ready does not wait for it, but
    /// [`wait_for_setup`](Self::wait_for_setup) does.
    pub fn setup_script(mut self, script: impl Into<String>) -> Self {
        self.request = self.request.setup_script(script);
        self
    }

    /// The organisation that pays: its id or its name. Without it, the one of the client or view, then the account's
    /// active wallet.
    pub fn org(mut self, org: impl Into<String>) -> Self {
        self.request.org = Patch::Value(org.into());
        self
    }

    /// The personal wallet pays, whatever the account's active wallet is.
    pub fn personal(mut self) -> Self {
        self.request.org = Patch::Null;
        self
    }

    /// The named snapshot or share code to start from.
    pub fn from(mut self, snapshot: impl Into<String>) -> Self {
        self.request = self.request.from(snapshot.into());
        self
    }

    /// A file to write once it is up, before its setup script runs: at most 32, together at most 256 KB. Only
    /// [`Dialect::Boat`](crate::Dialect::Boat) has it.
    pub fn file(mut self, path: impl Into<String>, content: impl AsRef<[u8]>) -> Self {
        let file = match std::str::from_utf8(content.as_ref()) {
            Ok(text) => CreateFile::new(path, text),
            Err(_) => {
                CreateFile::new(path, STANDARD.encode(content.as_ref())).encoding(ContentEncoding::Base64)
            }
        };
        self.request.files.get_or_insert_default().push(file);
        self
    }

    /// A port to make reachable from outside: at most 50, and not with [`fail_fast`](Self::fail_fast). Only
    /// [`Dialect::Boat`](crate::Dialect::Boat) has it.
    pub fn hosted_port(mut self, port: HostPortRequest) -> Self {
        self.request.hosted_ports.get_or_insert_default().push(port);
        self
    }

    /// Whether the members of the organisation that pays may use it: `private` or `shared`. Only
    /// [`Dialect::Boat`](crate::Dialect::Boat) has it.
    pub fn visibility(mut self, visibility: impl Into<SandboxVisibility>) -> Self {
        self.request = self.request.visibility(visibility);
        self
    }

    /// Whether there is something that setting it up takes time for.
    pub(crate) fn sets_up(&self) -> bool {
        self.request.setup_script.is_some() || self.request.files.is_some()
    }
}
