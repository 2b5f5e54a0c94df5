//! Ways into a sandbox: hosted ports, SSH and the desktop.

use std::time::Duration;

use super::{
    allowance::Allowance,
    given, public_key,
    sandbox::AsyncSandbox,
    wait::{Look, Pace, late, poll},
};
use crate::{
    error::{Delivery, Error, ErrorKind, Result},
    models::{
        DesktopParams, DesktopTheme, HostPortRequest, HostedPort, SshKeyRequest, SshKeyResponse,
        UnhostPortParams,
    },
    wire::{Secret, SecretUrl},
};

/// How long a desktop is waited for at most unless something else is said.
const DESKTOP_LIMIT: Duration = Duration::from_secs(300);

/// The pause between two questions for a desktop.
const DESKTOP_PAUSE: Duration = Duration::from_secs(2);

/// How a port is made reachable.
///
/// ```
/// use sandboxer::Host;
///
/// let options = Host::new().public(true).localhost(true).title("preview");
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct Host {
    public: Option<bool>,
    localhost: Option<bool>,
    title: Option<String>,
}

impl Host {
    /// Only whoever has the URL's token reaches it; the program listens on all addresses.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether everyone reaches it, or only whoever has its token (the default).
    pub fn public(mut self, public: bool) -> Self {
        self.public = Some(public);
        self
    }

    /// Whether the program listens on loopback only (default: no, it listens on `0.0.0.0`). Every call sets this anew.
    pub fn localhost(mut self, localhost: bool) -> Self {
        self.localhost = Some(localhost);
        self
    }

    /// The name shown to people, 1 to 200 characters.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }
}

/// How a desktop is shown, and how long it is waited for.
///
/// ```
/// use sandboxer::Desktop;
/// use std::time::Duration;
///
/// let options = Desktop::new().theme("dark").public(true).vnc(true).wait_limit(Duration::from_secs(60));
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct Desktop {
    request: DesktopParams,
    limit: Option<Duration>,
}

impl Default for Desktop {
    fn default() -> Self {
        Self { request: DesktopParams::new().vnc(1), limit: None }
    }
}

impl Desktop {
    /// Shown by VNC, to whoever has its token, waited for 5 minutes at most.
    pub fn new() -> Self {
        Self::default()
    }

    /// How it looks: `light` or `dark`.
    pub fn theme(mut self, theme: impl Into<DesktopTheme>) -> Self {
        self.request = self.request.theme(theme);
        self
    }

    /// Whether everyone who has the URL sees it without signing in (default: no).
    pub fn public(mut self, public: bool) -> Self {
        self.request = self.request.public_access(public);
        self
    }

    /// Whether it has to be shown by VNC (the default) or by whatever is there.
    pub fn vnc(mut self, vnc: bool) -> Self {
        self.request = self.request.vnc(i64::from(vnc));
        self
    }

    /// How long to wait for it, 5 minutes unless set here or by the view's total limit.
    pub fn wait_limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }
}

impl AsyncSandbox {
    /// Makes a port, 1 to 65535, reachable from outside and answers with its URL, which carries its token. The program
    /// has to listen on all addresses, not on loopback alone.
    ///
    /// Doing it again gives the same URL.
    ///
    /// # Errors
    ///
    /// As [`host_with`](Self::host_with).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let url = sandbox.host(3000).await?;
    /// assert!(url.to_string().ends_with("/[redacted]")); // `expose` tells all of it
    /// # Ok(()) }
    /// ```
    pub async fn host(&self, port: u16) -> Result<SecretUrl> {
        self.host_with(port, Host::new()).await
    }

    /// Makes a port, 1 to 65535, reachable from outside as `options` say and answers with its URL.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](ErrorKind::InvalidInput) for port 0 or a title out of its limits, before anything is sent;
    /// `machine_not_running` of the service when it is stopped; [`Unexpected`](ErrorKind::Unexpected) with the code
    /// `invalid_url` when what the service gives out is no web address; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::Host;
    ///
    /// let url = sandbox.host_with(8080, Host::new().public(true).localhost(true)).await?;
    /// println!("anyone may look at {url}");
    /// # Ok(()) }
    /// ```
    pub async fn host_with(&self, port: u16, options: Host) -> Result<SecretUrl> {
        let mut request = HostPortRequest::new(port);
        request.public = options.public;
        request.localhost = options.localhost;
        request.title = options.title;
        let answer = self.api().host_port(self.id(), request).await?;
        self.url_of(&answer.url)
    }

    /// Takes the route to a port away; a port that has none is fine.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](ErrorKind::InvalidInput) for port 0, before anything is sent; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// sandbox.unhost(3000).await?;
    /// # Ok(()) }
    /// ```
    pub async fn unhost(&self, port: u16) -> Result<()> {
        // A port without a route is no error, so what is not found is the sandbox.
        self.api().unhost_port(self.id(), UnhostPortParams::new(port)).await.map(drop)
    }

    /// The ports that are reachable from outside, in ascending order.
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
    /// for hosted in sandbox.hosted_ports().await? {
    ///     println!("{} is reachable: {:?}", hosted.port, hosted.access);
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn hosted_ports(&self) -> Result<Vec<HostedPort>> {
        Ok(self.api().list_hosted_ports(self.id()).await?.ports)
    }

    /// Lets the owner of an SSH key in and answers with where to sign in, and the machine's own key to check it by.
    ///
    /// `public_key` is one line in OpenSSH form, as in a `.pub` file.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](ErrorKind::InvalidInput) for anything but a whole public key, private keys above all, before
    /// anything is sent; `ssh_host_key_unavailable` of the service when the machine has no key yet; and the failures of
    /// any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f me@example.org";
    /// let login = sandbox.ssh_key(key).await?;
    /// println!("ssh {}@{}", login.ssh_user.unwrap_or_default(), login.machine_ip.unwrap_or_default());
    ///
    /// let private = "-----BEGIN OPENSSH PRIVATE KEY-----";
    /// assert_eq!(sandbox.ssh_key(private).await.unwrap_err().kind(), sandboxer::ErrorKind::InvalidInput);
    /// # Ok(()) }
    /// ```
    pub async fn ssh_key(&self, public_key: &str) -> Result<SshKeyResponse> {
        let key = public_key::checked(public_key)?;
        self.api().ssh_key(self.id(), SshKeyRequest::new(key)).await
    }

    /// Waits until its desktop can be seen, for at most 5 minutes, and answers with the URL; whoever has it can use the
    /// desktop. It is asked for every 2 s.
    ///
    /// # Errors
    ///
    /// [`WaitTimeout`](ErrorKind::WaitTimeout) at the limit, a question in flight included;
    /// [`SandboxState`](ErrorKind::SandboxState) with the code `desktop_failed` when the service says that there will be
    /// none; [`Unexpected`](ErrorKind::Unexpected) with the code `invalid_url` when what it gives out is no web address;
    /// `machine_not_running` of the service when the sandbox is stopped; and the failures of any call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::Desktop;
    ///
    /// let url = sandbox.desktop(Desktop::new().theme("dark")).await?;
    /// assert!(!format!("{url} {url:?}").contains("_token"));
    /// # Ok(()) }
    /// ```
    pub async fn desktop(&self, options: Desktop) -> Result<SecretUrl> {
        let Desktop { request, limit } = options;
        given::filled("theme", request.theme.as_ref().map(DesktopTheme::as_str))?;
        given::wait_limit(limit)?;
        let (request, allowance) = (&request, &Allowance::of(self.api()));
        let limit = self.wait_limit(limit, DESKTOP_LIMIT);
        let expired = |state| {
            late("the desktop was not there", limit, state).with_sandbox_id(Some(self.id().to_owned()))
        };
        let look = async |_| {
            let answer = match self.within(allowance).api().desktop(self.id(), request.clone()).await {
                Ok(answer) => answer,
                Err(error) if error.code() == "browser_not_ready" => {
                    return Ok(Look::NotYet(error.code().to_owned()));
                }
                Err(error) => return Err(error),
            };
            if answer.provisioning == Some(true) || answer.kind == "desktop.provisioning" {
                return Ok(Look::NotYet("provisioning".to_owned()));
            }
            match answer.desktop_url.filter(|url| !url.is_empty()) {
                Some(url) => self.url_of(&url).map(Look::Found),
                None => {
                    let why = answer.message.map(|message| format!(": {message}")).unwrap_or_default();
                    let message = format!("the service has no desktop to show{why}");
                    Err(Error::new(ErrorKind::SandboxState, "desktop_failed", message)
                        .with_delivery(Delivery::Answered)
                        .with_sandbox_id(Some(self.id().to_owned())))
                }
            }
        };
        poll(&**self.api().clock(), Pace::steady(DESKTOP_PAUSE), limit, look, expired).await
    }

    fn url_of(&self, url: &Secret) -> Result<SecretUrl> {
        SecretUrl::parse(url.expose()).ok_or_else(|| {
            // What it was is not told: it may let somebody in.
            let message = "the service gave out something that is no http or https URL";
            Error::new(ErrorKind::Unexpected, "invalid_url", message)
                .with_delivery(Delivery::Answered)
                .with_sandbox_id(Some(self.id().to_owned()))
        })
    }
}
