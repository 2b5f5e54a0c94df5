//! How a server is to be started, and why it was not.

use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use sandboxer::clock::{SharedClock, SystemClock};

use crate::{
    agent::{Agent, AgentError, Turn},
    host::{self, Ready},
    runner::{Network, Runner, RunnerKind},
    server::MockServer,
    world::seed::{KeySeed, SessionSeed, WorldError, WorldSeed},
};

/// Why a server was not started. Displays as one line.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// The address cannot be listened on; it is in use, as a rule.
    Listen(SocketAddr, io::Error),
    /// The address is not of this machine alone, and that was not allowed.
    NotLoopback(SocketAddr),
    /// The world cannot be used.
    World(WorldError),
    /// Another server uses the data folder.
    DataInUse(PathBuf),
    /// The folder cannot be used.
    Folder(PathBuf, io::Error),
    /// What the folder holds cannot be used.
    Store(String),
    /// The runner that was asked for does not work here; says what is missing.
    Runner(String),
    /// The system refused a thread or a socket.
    Io(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Listen(address, error) => write!(f, "cannot listen on {address}: {error}"),
            StartError::NotLoopback(address) => {
                write!(
                    f,
                    "{address} can be reached from other machines; that must be allowed (--allow-remote)"
                )
            }
            StartError::World(error) => error.fmt(f),
            StartError::DataInUse(folder) => {
                write!(f, "the data folder {} is in use by another server", folder.display())
            }
            StartError::Folder(folder, error) => {
                write!(f, "cannot use the folder {}: {error}", folder.display())
            }
            StartError::Store(problem) => write!(f, "cannot use what the data folder holds: {problem}"),
            StartError::Runner(problem) => f.write_str(problem),
            StartError::Io(error) => write!(f, "the system refused: {error}"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartError::Listen(_, error) | StartError::Folder(_, error) | StartError::Io(error) => {
                Some(error)
            }
            StartError::World(error) => Some(error),
            _ => None,
        }
    }
}

/// How a server is to be started; see [`MockServer::builder`].
#[derive(Clone)]
pub struct MockServerBuilder {
    pub(crate) listen: SocketAddr,
    allow_remote: bool,
    api_keys: Vec<String>,
    sessions: Vec<String>,
    pub(crate) world: WorldSeed,
    pub(crate) runner: Choice,
    pub(crate) network: Network,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) loopback_targets: bool,
    pub(crate) clock: SharedClock,
    pub(crate) agent: Option<Agent>,
    pub(crate) page_hosts: Vec<String>,
}

/// Which runner runs commands.
#[derive(Clone)]
pub(crate) enum Choice {
    Kind(RunnerKind),
    Own(Arc<dyn Runner>),
}

impl fmt::Debug for MockServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockServerBuilder")
            .field("listen", &self.listen)
            .field("data_dir", &self.data_dir)
            .finish_non_exhaustive()
    }
}

impl Default for MockServerBuilder {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            allow_remote: false,
            api_keys: Vec::new(),
            sessions: Vec::new(),
            world: WorldSeed::default(),
            runner: Choice::Kind(RunnerKind::Auto),
            network: Network::None,
            data_dir: None,
            loopback_targets: false,
            clock: SystemClock::shared(),
            agent: None,
            page_hosts: Vec::new(),
        }
    }
}

impl MockServerBuilder {
    /// Listens on this address; `127.0.0.1` and a free port unless set.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = address;
        self
    }

    /// Allows addresses that other machines can reach.
    #[must_use]
    pub fn allow_remote(mut self, allowed: bool) -> Self {
        self.allow_remote = allowed;
        self
    }

    /// Adds a key that may do everything for the default account. Without any key, one is made up.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.api_keys.push(key.into());
        self
    }

    /// Adds a person who is signed in to the default account: with this token, sent like a key, goes what no API key may do.
    #[must_use]
    pub fn session(mut self, token: impl Into<String>) -> Self {
        self.sessions.push(token.into());
        self
    }

    /// Starts with these accounts, organisations, keys, plans and machines.
    #[must_use]
    pub fn world(mut self, seed: WorldSeed) -> Self {
        self.world = seed;
        self
    }

    /// How long sandboxes stay in `provisioning`; not at all unless set.
    #[must_use]
    pub fn boot_delay(mut self, delay: Duration) -> Self {
        self.world.machines.boot_delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// How long stops stay pending; not at all unless set.
    #[must_use]
    pub fn stop_delay(mut self, delay: Duration) -> Self {
        self.world.machines.stop_delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// How often the disks of sandboxes that are up are captured, for a forced stop to go back to; about once a minute unless
    /// set, and never with zero.
    #[must_use]
    pub fn capture_every(mut self, period: Duration) -> Self {
        self.world.machines.capture_every_ms = Some(u64::try_from(period.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Runs commands this way; the best way that works here unless set.
    #[must_use]
    pub fn runner(mut self, kind: RunnerKind) -> Self {
        self.runner = Choice::Kind(kind);
        self
    }

    /// Runs commands with a runner of one's own, such as a scripted one.
    #[must_use]
    pub fn own_runner(mut self, runner: Arc<dyn Runner>) -> Self {
        self.runner = Choice::Own(runner);
        self
    }

    /// What network isolated commands have; none but their own loopback unless set.
    #[must_use]
    pub fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// Keeps everything in this folder, which outlives the server; in memory and a temporary folder unless set.
    #[must_use]
    pub fn data_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(folder.into());
        self
    }

    /// Also sends webhook deliveries and telemetry to this machine itself, over `http` and to any port: for receivers and
    /// collectors that a test runs. Otherwise only public `https` addresses will do, as with the service.
    #[must_use]
    pub fn allow_loopback_targets(mut self) -> Self {
        self.loopback_targets = true;
        self
    }

    /// Answers prompts with this closure, which is given each turn, instead of the agent that is built in; see
    /// [`agent`](crate::agent).
    #[must_use]
    pub fn agent<F, W>(mut self, agent: F) -> Self
    where
        F: Fn(Turn) -> W + Send + Sync + 'static,
        W: Future<Output = Result<(), AgentError>> + Send + 'static,
    {
        self.agent = Some(Agent::new(agent));
        self
    }

    /// Shows the page for people also where it is asked for by this name, without a port: the server is otherwise known as
    /// `localhost` and by its loopback addresses alone, so that no page elsewhere can pass for it.
    #[must_use]
    pub fn page_host(mut self, name: impl Into<String>) -> Self {
        self.page_hosts.push(name.into());
        self
    }

    /// Takes the time from this clock.
    #[must_use]
    pub fn clock(mut self, clock: SharedClock) -> Self {
        self.clock = clock;
        self
    }

    /// Starts the server; it accepts connections when this returns.
    ///
    /// # Errors
    ///
    /// See [`StartError`].
    pub fn start(mut self) -> Result<MockServer, StartError> {
        if !self.listen.ip().is_loopback() && !self.allow_remote {
            return Err(StartError::NotLoopback(self.listen));
        }
        if self.api_keys.is_empty() && self.world.keys.is_empty() {
            self.api_keys.push(format!("sbx_live_{}", uuid::Uuid::new_v4().simple()));
        }
        // Given keys come first: the first of all is the one that the server's own clients use.
        let given = self.api_keys.iter().map(KeySeed::new);
        self.world.keys = given.chain(self.world.keys).collect();
        self.world.sessions.extend(self.sessions.drain(..).map(SessionSeed::new));
        self.world = self.world.check().map_err(StartError::World)?;
        let api_key = self.world.keys.first().map(|key| key.secret.clone()).unwrap_or_default();
        let clock = self.clock.clone();
        let (Ready { service, address, notice }, thread) = host::launch(self)?;
        Ok(MockServer::new(service, address, notice, api_key, clock, thread))
    }
}
