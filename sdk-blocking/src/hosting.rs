//! Ways into a sandbox: hosted ports, SSH and the desktop.

use sandboxer::{
    Desktop, Host, Result,
    models::{HostedPort, SshKeyResponse},
    wire::SecretUrl,
};

use crate::Sandbox;

impl Sandbox {
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
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let url = sandbox.host(3000)?;
    /// assert!(url.to_string().ends_with("/[redacted]")); // `expose` tells all of it
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn host(&self, port: u16) -> Result<SecretUrl> {
        self.call(|sandbox| async move { sandbox.host(port).await })
    }

    /// Makes a port, 1 to 65535, reachable from outside as `options` say and answers with its URL.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for port 0 or a title out of its limits, before anything is sent;
    /// `machine_not_running` of the service when it is stopped; [`Unexpected`](crate::ErrorKind::Unexpected) with the code
    /// `invalid_url` when what the service gives out is no web address; and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::Host;
    ///
    /// let url = sandbox.host_with(8080, Host::new().public(true).localhost(true))?;
    /// println!("anyone may look at {url}");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn host_with(&self, port: u16, options: Host) -> Result<SecretUrl> {
        self.call(|sandbox| async move { sandbox.host_with(port, options).await })
    }

    /// Takes the route to a port away; a port that has none is fine.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for port 0, before anything is sent; and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// sandbox.unhost(3000)?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn unhost(&self, port: u16) -> Result<()> {
        self.call(|sandbox| async move { sandbox.unhost(port).await })
    }

    /// The ports that are reachable from outside, in ascending order.
    ///
    /// # Errors
    ///
    /// The failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// for hosted in sandbox.hosted_ports()? {
    ///     println!("{} is reachable: {:?}", hosted.port, hosted.access);
    /// }
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn hosted_ports(&self) -> Result<Vec<HostedPort>> {
        self.call(|sandbox| async move { sandbox.hosted_ports().await })
    }

    /// Lets the owner of an SSH key in and answers with where to sign in, and the machine's own key to check it by.
    ///
    /// `public_key` is one line in OpenSSH form, as in a `.pub` file.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for anything but a whole public key, private keys above all, before
    /// anything is sent; `ssh_host_key_unavailable` of the service when the machine has no key yet; and the failures of
    /// any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f me@example.org";
    /// let login = sandbox.ssh_key(key)?;
    /// println!("ssh {}@{}", login.ssh_user.unwrap_or_default(), login.machine_ip.unwrap_or_default());
    ///
    /// let private = "-----BEGIN OPENSSH PRIVATE KEY-----";
    /// assert_eq!(sandbox.ssh_key(private).unwrap_err().kind(), sandboxer_blocking::ErrorKind::InvalidInput);
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn ssh_key(&self, public_key: &str) -> Result<SshKeyResponse> {
        let public_key = public_key.to_owned();
        self.call(|sandbox| async move { sandbox.ssh_key(&public_key).await })
    }

    /// Waits until its desktop can be seen, for at most 5 minutes, and answers with the URL; whoever has it can use the
    /// desktop. It is asked for every 2 s.
    ///
    /// # Errors
    ///
    /// [`WaitTimeout`](crate::ErrorKind::WaitTimeout) at the limit, a question in flight included;
    /// [`SandboxState`](crate::ErrorKind::SandboxState) with the code `desktop_failed` when the service says that there will be
    /// none; [`Unexpected`](crate::ErrorKind::Unexpected) with the code `invalid_url` when what it gives out is no web address;
    /// `machine_not_running` of the service when the sandbox is stopped; and the failures of any call.
    ///
    /// ```
    /// # use sandboxer_mock_server::MockServer;
    /// # let server = MockServer::start();
    /// # let client = sandboxer_blocking::Sandboxer::from_async(server.client());
    /// # let sandbox = client.create(sandboxer_blocking::Create::new())?;
    /// use sandboxer_blocking::Desktop;
    ///
    /// let url = sandbox.desktop(Desktop::new().theme("dark"))?;
    /// assert!(!format!("{url} {url:?}").contains("_token"));
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn desktop(&self, options: Desktop) -> Result<SecretUrl> {
        self.call(|sandbox| async move { sandbox.desktop(options).await })
    }
}
