//! Building a client.

use std::fmt;

use sandboxer::{ApiKey, Dialect, Limit, Result, Timeouts, clock::SharedClock};

use crate::Sandboxer;

/// Settings of a client that is about to be built.
///
/// What is not set comes from the environment: the key from `SANDBOXER_API_KEY`, then `SANDBOXER_TOKEN`; the base URL from
/// `SANDBOXER_API_URL`; the organisation from `SANDBOXER_ORG`; another [`dialect`](Self::dialect) has variables of its own
/// ([`DialectInfo`](crate::dialects::DialectInfo)). An empty value counts as unset. Proxies come from
/// `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, trusted certificates from the system or `SSL_CERT_FILE`.
///
/// ```
/// use sandboxer_blocking::{Dialect, Limit, Sandboxer, Timeouts};
/// use std::time::Duration;
///
/// let client = Sandboxer::builder()
///     .api_key("sbx_live_1")
///     .base_url("http://127.0.0.1:8080/api/v1")
///     .ignore_env() // only what is set here
///     .org("acme")
///     .timeouts(Timeouts::new().connect(Duration::from_secs(5)))
///     .connect(Duration::from_secs(3))
///     .attempt(Duration::from_secs(30))
///     .total(Duration::from_secs(120))
///     .idle(Limit::Off)
///     .retries(5)
///     .default_header("X-Team", "tools")
///     .user_agent_suffix("my-agent/1.0")
///     .clock(sandboxer_blocking::clock::SystemClock::shared())
///     .no_proxy()
///     .build()?;
/// assert_eq!(client.api().dialect(), Dialect::Sandboxer);
///
/// // A service of one's own: plain http beyond this machine has to be allowed.
/// let refused = Sandboxer::builder().api_key("key").base_url("http://sandboxes.internal").build();
/// assert!(refused.is_err());
/// Sandboxer::builder().api_key("key").base_url("http://sandboxes.internal").allow_plain_http().build()?;
/// # Ok::<(), sandboxer_blocking::Error>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
#[derive(Clone)]
pub struct Builder(sandboxer::Builder);

impl Builder {
    pub(crate) fn new() -> Self {
        Self(sandboxer::AsyncSandboxer::builder())
    }

    /// The API key.
    pub fn api_key(self, key: impl Into<ApiKey>) -> Self {
        Self(self.0.api_key(key))
    }

    /// Where the API is, for example `https://sandboxer.com/api/v1`, the default: scheme, host, port and path, nothing else.
    pub fn base_url(self, url: impl Into<String>) -> Self {
        Self(self.0.base_url(url))
    }

    /// Which service is spoken to (default [`Dialect::Sandboxer`]): where it is, how it calls headers and codes, and which
    /// variables of the environment are read. Operations and fields that it does not have are refused before anything is
    /// sent; codes come in the default dialect's spelling.
    ///
    /// ```
    /// use sandboxer_blocking::{Dialect, Sandboxer};
    ///
    /// let client = Sandboxer::builder().ignore_env().dialect(Dialect::Boat).api_key("boat_live_1").build()?;
    /// assert_eq!(client.api().base_url(), "https://boat.dev/api/v1");
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn dialect(self, dialect: Dialect) -> Self {
        Self(self.0.dialect(dialect))
    }

    /// The organisation that pays: its id, its name, or `personal`.
    pub fn org(self, org: impl Into<String>) -> Self {
        Self(self.0.org(org))
    }

    /// All time limits at once.
    pub fn timeouts(self, timeouts: Timeouts) -> Self {
        Self(self.0.timeouts(timeouts))
    }

    /// Limits the making of one connection (default 10 s).
    pub fn connect(self, limit: impl Into<Limit>) -> Self {
        Self(self.0.connect(limit))
    }

    /// Limits one try. See [`Timeouts`] for the defaults.
    pub fn attempt(self, limit: impl Into<Limit>) -> Self {
        Self(self.0.attempt(limit))
    }

    /// Limits all tries of a call and the waits between them.
    pub fn total(self, limit: impl Into<Limit>) -> Self {
        Self(self.0.total(limit))
    }

    /// Limits the silence between two pieces of a stream.
    pub fn idle(self, limit: impl Into<Limit>) -> Self {
        Self(self.0.idle(limit))
    }

    /// How many times a failed try may be followed by another (default 3); 0 for never.
    pub fn retries(self, retries: u32) -> Self {
        Self(self.0.retries(retries))
    }

    /// Adds a header to every request. Headers that the client fills in itself are refused by [`build`](Self::build).
    pub fn default_header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self(self.0.default_header(name, value))
    }

    /// Adds to the `User-Agent`, for example `my-agent/1.0`.
    pub fn user_agent_suffix(self, suffix: impl Into<String>) -> Self {
        Self(self.0.user_agent_suffix(suffix))
    }

    /// Uses this HTTP client for requests and their streams, with its own connections, certificates and proxies.
    ///
    /// It must be built with `redirect(reqwest::redirect::Policy::none())` (a redirect would carry the key to wherever the
    /// answer says), with `retry(reqwest::retry::never())` (hidden repeats break the promise that a command runs once), and
    /// without `timeout` or `read_timeout` (they would cut streams). `connect`, `add_root_certificate` and `no_proxy` of
    /// this builder do not reach it.
    ///
    /// ```
    /// use sandboxer_blocking::Sandboxer;
    ///
    /// let own = reqwest::Client::builder().pool_max_idle_per_host(2).build().unwrap();
    /// let client = Sandboxer::builder().api_key("key").http_client(own).build()?;
    /// # Ok::<(), sandboxer_blocking::Error>(())
    /// ```
    pub fn http_client(self, client: reqwest::Client) -> Self {
        Self(self.0.http_client(client))
    }

    /// Trusts the certificates of this PEM text as roots, besides the system's.
    ///
    /// ```
    /// use sandboxer_blocking::{ErrorKind, Sandboxer};
    ///
    /// let refused = Sandboxer::builder().api_key("key").add_root_certificate("no PEM").build().unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::Config);
    /// ```
    pub fn add_root_certificate(self, pem: impl AsRef<[u8]>) -> Self {
        Self(self.0.add_root_certificate(pem))
    }

    /// Connects directly, whatever the proxy variables say.
    pub fn no_proxy(self) -> Self {
        Self(self.0.no_proxy())
    }

    /// Takes the time from this clock: limits, waits and back-off follow it.
    pub fn clock(self, clock: SharedClock) -> Self {
        Self(self.0.clock(clock))
    }

    /// Lets plain http go beyond this machine. The key is then readable on the way.
    pub fn allow_plain_http(self) -> Self {
        Self(self.0.allow_plain_http())
    }

    /// Takes nothing from the variables that hold the key, the base URL and the organisation.
    pub fn ignore_env(self) -> Self {
        Self(self.0.ignore_env())
    }

    /// Builds the client. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](crate::ErrorKind::Config), naming the setting: no key, a key or base URL of a wrong form, plain
    /// http beyond this machine, a header this client fills in itself, a certificate that cannot be read, or no trusted
    /// certificates at all.
    ///
    /// ```
    /// use sandboxer_blocking::{ErrorKind, Sandboxer};
    ///
    /// assert!(Sandboxer::builder().api_key("key").build().is_ok());
    /// let refused = Sandboxer::builder().api_key("two words").build().unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::Config);
    /// ```
    pub fn build(self) -> Result<Sandboxer> {
        self.0.build().map(Sandboxer::from_async)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
