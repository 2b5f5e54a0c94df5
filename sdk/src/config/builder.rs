//! Building a client.

use super::{ApiKey, base_url::BaseUrl, headers};
use crate::{
    call::{CallOptions, Limit, Timeouts},
    clock::{SharedClock, SystemClock},
    error::{Error, ErrorKind, Result},
    generated::dialects::Dialect,
    sandboxer::AsyncSandboxer,
    transport::{Shared, connect::Recipe},
};
use http::{HeaderMap, HeaderValue};
use std::fmt;

/// Settings of a client that is about to be built.
///
/// What is not set comes from the environment: the key from `SANDBOXER_API_KEY`, then `SANDBOXER_TOKEN`; the base URL from
/// `SANDBOXER_API_URL`; the organisation from `SANDBOXER_ORG`; another [`dialect`](Self::dialect) has variables of its own
/// ([`DialectInfo`](crate::dialects::DialectInfo)). An empty value counts as unset. Proxies come from
/// `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, trusted certificates from the system or `SSL_CERT_FILE`. Plain
/// http on this machine goes through no proxy, so that the key does not leave it.
///
/// ```
/// use sandboxer::{AsyncSandboxer, Dialect, Limit, Timeouts, clock::SystemClock};
/// use std::time::Duration;
///
/// let client = AsyncSandboxer::builder()
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
///     .clock(SystemClock::shared())
///     .no_proxy()
///     .build()?;
/// assert_eq!(client.api().dialect(), Dialect::Sandboxer);
///
/// // A service of one's own: plain http beyond this machine has to be allowed.
/// let refused = AsyncSandboxer::builder().api_key("key").base_url("http://sandboxes.internal").build();
/// assert!(refused.is_err());
/// AsyncSandboxer::builder().api_key("key").base_url("http://sandboxes.internal").allow_plain_http().build()?;
/// # Ok::<(), sandboxer::Error>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
#[derive(Clone)]
pub struct Builder {
    api_key: Option<ApiKey>,
    base_url: Option<String>,
    dialect: Dialect,
    org: Option<String>,
    timeouts: Timeouts,
    retries: u32,
    headers: Vec<(String, String)>,
    user_agent_suffix: Option<String>,
    http: Option<reqwest::Client>,
    root_certificates: Vec<Vec<u8>>,
    proxies: bool,
    clock: Option<SharedClock>,
    allow_plain_http: bool,
    environment: fn(&str) -> Option<String>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            api_key: None,
            base_url: None,
            dialect: Dialect::default(),
            org: None,
            timeouts: Timeouts::default(),
            retries: 3,
            headers: Vec::new(),
            user_agent_suffix: None,
            http: None,
            root_certificates: Vec::new(),
            proxies: true,
            clock: None,
            allow_plain_http: false,
            environment: |name| std::env::var(name).ok(),
        }
    }

    /// The API key.
    pub fn api_key(mut self, key: impl Into<ApiKey>) -> Self {
        self.api_key = Some(key.into());
        self
    }

    /// Where the API is, for example `https://sandboxer.com/api/v1`, the default: scheme, host, port and path, nothing else.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Which service is spoken to (default [`Dialect::Sandboxer`]): where it is, how it calls headers and codes, and which
    /// variables of the environment are read. Operations and fields that it does not have are refused before anything is
    /// sent; codes come in the default dialect's spelling.
    ///
    /// ```
    /// use sandboxer::{AsyncSandboxer, Dialect};
    ///
    /// let client = AsyncSandboxer::builder().ignore_env().dialect(Dialect::Boat).api_key("boat_live_1").build()?;
    /// assert_eq!(client.api().base_url(), "https://boat.dev/api/v1");
    /// # Ok::<(), sandboxer::Error>(())
    /// ```
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// The organisation that pays: its id, its name, or `personal`.
    pub fn org(mut self, org: impl Into<String>) -> Self {
        self.org = Some(org.into());
        self
    }

    /// All time limits at once.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Limits the making of one connection (default 10 s).
    pub fn connect(mut self, limit: impl Into<Limit>) -> Self {
        self.timeouts.connect = limit.into();
        self
    }

    /// Limits one try. See [`Timeouts`] for the defaults.
    pub fn attempt(mut self, limit: impl Into<Limit>) -> Self {
        self.timeouts.attempt = limit.into();
        self
    }

    /// Limits all tries of a call and the waits between them.
    pub fn total(mut self, limit: impl Into<Limit>) -> Self {
        self.timeouts.total = limit.into();
        self
    }

    /// Limits the silence between two pieces of a stream.
    pub fn idle(mut self, limit: impl Into<Limit>) -> Self {
        self.timeouts.idle = limit.into();
        self
    }

    /// How many times a failed try may be followed by another (default 3); 0 for never.
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Adds a header to every request. Headers that the client fills in itself are refused by [`build`](Self::build).
    pub fn default_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Adds to the `User-Agent`, for example `my-agent/1.0`.
    pub fn user_agent_suffix(mut self, suffix: impl Into<String>) -> Self {
        self.user_agent_suffix = Some(suffix.into());
        self
    }

    /// Uses this HTTP client for requests and their streams, with its own connections, certificates and proxies.
    ///
    /// It must be built with `redirect(reqwest::redirect::Policy::none())` (a redirect would carry the key to wherever the
    /// answer says), with `retry(reqwest::retry::never())` (hidden repeats break the promise that a command runs once), and
    /// without `timeout` or `read_timeout` (they would cut streams). `connect`, `add_root_certificate` and `no_proxy` of
    /// this builder do not reach it.
    ///
    /// ```
    /// use sandboxer::AsyncSandboxer;
    ///
    /// let own = reqwest::Client::builder().pool_max_idle_per_host(2).build().unwrap();
    /// let client = AsyncSandboxer::builder().api_key("key").http_client(own).build()?;
    /// # Ok::<(), sandboxer::Error>(())
    /// ```
    pub fn http_client(mut self, client: reqwest::Client) -> Self {
        self.http = Some(client);
        self
    }

    /// Trusts the certificates of this PEM text as roots, besides the system's.
    ///
    /// ```
    /// use sandboxer::{AsyncSandboxer, ErrorKind};
    ///
    /// let refused = AsyncSandboxer::builder().api_key("key").add_root_certificate("no PEM").build().unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::Config);
    /// ```
    pub fn add_root_certificate(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.root_certificates.push(pem.as_ref().to_vec());
        self
    }

    /// Connects directly, whatever the proxy variables say.
    pub fn no_proxy(mut self) -> Self {
        self.proxies = false;
        self
    }

    /// Takes the time from this clock: limits, waits and back-off follow it.
    pub fn clock(mut self, clock: SharedClock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Lets plain http go beyond this machine. The key is then readable on the way.
    pub fn allow_plain_http(mut self) -> Self {
        self.allow_plain_http = true;
        self
    }

    /// Takes nothing from the variables that hold the key, the base URL and the organisation.
    pub fn ignore_env(mut self) -> Self {
        self.environment = |_| None;
        self
    }

    #[cfg(test)]
    pub(crate) fn environment(mut self, environment: fn(&str) -> Option<String>) -> Self {
        self.environment = environment;
        self
    }

    /// Builds the client. Nothing is sent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`], naming the setting: no key, a key or base URL of a wrong form, plain http beyond this machine,
    /// a header this client fills in itself, a certificate that cannot be read, or no trusted certificates at all.
    ///
    /// ```
    /// use sandboxer::{AsyncSandboxer, ErrorKind};
    ///
    /// assert!(AsyncSandboxer::builder().api_key("key").build().is_ok());
    /// let refused = AsyncSandboxer::builder().api_key("two words").build().unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::Config);
    /// ```
    pub fn build(self) -> Result<AsyncSandboxer> {
        let set = |value: Option<String>, name: &str| {
            value.filter(|v| !v.is_empty()).or_else(|| (self.environment)(name).filter(|v| !v.is_empty()))
        };
        let service = self.dialect.info();
        let given = self.api_key.map(|key| key.expose().to_owned()).filter(|key| !key.is_empty());
        let key = given
            .or_else(|| service.key_variables.iter().find_map(|name| set(None, name)))
            .map(ApiKey::from)
            .ok_or_else(|| {
                let names = service.key_variables.join(" and ");
                let problem = format!("api_key: no key was given, and {names} are not set");
                Error::new(ErrorKind::Config, "missing_api_key", problem)
            })?;
        let url = set(self.base_url, service.url_variable).unwrap_or_else(|| service.base_url.to_owned());
        let base = BaseUrl::parse(&url, self.allow_plain_http)?;
        let org = set(self.org, service.org_variable);
        let as_config = |error: Error| error.with_kind(ErrorKind::Config);
        if let Some(org) = &org {
            headers::org(org).map_err(as_config)?;
        }
        self.timeouts.check().and_then(|()| self.timeouts.total.check("total")).map_err(as_config)?;
        let mut default_headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let (name, value) = headers::checked(name, value).map_err(as_config)?;
            default_headers.insert(name, value);
        }
        let clock = self.clock.unwrap_or_else(SystemClock::shared);
        let http = match self.http {
            Some(client) => client,
            None => Recipe::new(
                &base,
                self.timeouts.connect,
                self.proxies,
                clock.clone(),
                &self.root_certificates,
            )?
            .rest()?,
        };
        let options = CallOptions {
            timeouts: self.timeouts,
            retries: Some(self.retries),
            org,
            ..CallOptions::default()
        };
        let user_agent = user_agent(self.user_agent_suffix.as_deref())?;
        let shared = Shared::new(base, self.dialect, key, http, clock, default_headers, user_agent)?;
        Ok(AsyncSandboxer::from_parts(shared, options))
    }
}

fn user_agent(suffix: Option<&str>) -> Result<HeaderValue> {
    let own = concat!("sandboxer-rust/", env!("CARGO_PKG_VERSION"));
    let text =
        suffix.filter(|s| !s.is_empty()).map_or_else(|| own.to_owned(), |suffix| format!("{own} {suffix}"));
    HeaderValue::from_str(&text)
        .map_err(|error| Error::config("user_agent_suffix", "visible characters only").with_source(error))
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The base URL is left out: it is checked for secrets only by `build`.
        f.debug_struct("Builder")
            .field("api_key", &self.api_key)
            .field("org", &self.org)
            .field("timeouts", &self.timeouts)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}
