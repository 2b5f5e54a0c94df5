//! The `isolated` runner: a bubblewrap holder per sandbox, commands that enter it without a single privilege.
//!
//! What is fenced off, how, and what is not is in `docs/adr/0003-isolated-runner.md`.

mod tree;

use std::{
    collections::HashMap,
    fmt, fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::{BoxFuture, join_all};
use rustix::process::{Pid, PidfdFlags, geteuid, pidfd_open};
use sandboxer::clock::{Clock as _, SharedClock, SystemClock};
use tokio::{net::TcpStream, sync::Mutex as AsyncMutex};

use self::tree::CommandTree;
use super::{
    CommandSpec, Exit, MemoryShare, Network, Output, Owner, ProcessSample, Runner, RunnerError,
    RunnerOptions, Running, Space,
    account::{Accounts, SANDBOX_ID},
    confine::forbid_keyrings,
    env_program::EnvProgram,
    holder::{Holder, HolderOptions},
    keeper::Keeper,
    launch::command as command_line,
    procfs::Boot,
    reach,
    running::Shared,
    sample, sockets,
    streams::Streams,
    supervise::{pump, supervise},
    tools,
    tree::{TreeControl, end_tree},
};

/// Real time that entering a sandbox may take before something must be wrong; normal are a few milliseconds.
const ENTERING: Duration = Duration::from_secs(30);

/// How many processes and threads the sandboxes' one user may have, so that one that forks without end does not take
/// the whole machine. As an ordinary user every command has that many to itself.
const PROCESSES: u32 = 4096;

type Slot = Arc<AsyncMutex<Option<Arc<Holder>>>>;

/// Runs commands in namespaces of their sandbox's own. Linux with bubblewrap and util-linux only.
pub struct IsolatedRunner {
    holders: HolderOptions,
    entering: Entering,
    keeper: Keeper,
    /// Starts the commands, which inherit its filter.
    starter: Keeper,
    keyrings_are_closed: bool,
    clock: SharedClock,
    slots: Mutex<HashMap<String, Slot>>,
    closed: AtomicBool,
}

impl fmt::Debug for IsolatedRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IsolatedRunner").field("holders", &self.holders).finish_non_exhaustive()
    }
}

/// The programs that a command passes through on its way in.
#[derive(Debug)]
struct Entering {
    nsenter: PathBuf,
    unshare: PathBuf,
    setsid: PathBuf,
    setpriv: PathBuf,
    env: EnvProgram,
}

impl IsolatedRunner {
    /// Sets the runner up and tries the whole recipe once.
    ///
    /// # Errors
    /// [`RunnerError::Unavailable`] with what is missing, or with what the tools said.
    pub async fn new(options: &RunnerOptions) -> Result<Self, RunnerError> {
        let [bwrap, nsenter, unshare, setsid, setpriv, env, sh] =
            tools::find_all(["bwrap", "nsenter", "unshare", "setsid", "setpriv", "env", "sh"])?;
        let entering_env = EnvProgram::new(env.clone()).await;
        let (starter, closed) = Keeper::start_with("sandbox-starter", forbid_keyrings)?;
        if let Err(error) = &closed {
            tracing::warn!(%error, "the kernel's keyrings stay open to commands");
        }
        let runner = Self {
            holders: HolderOptions {
                bwrap,
                env,
                sh,
                accounts: Accounts::create(options.scratch_folder("sandboxer-accounts-")?)?,
                hide: options.hide.clone(),
                user_namespace: !geteuid().is_root(),
                share_network: options.network == Network::Host,
            },
            entering: Entering { nsenter, unshare, setsid, setpriv, env: entering_env },
            keeper: Keeper::start()?,
            starter,
            keyrings_are_closed: closed.is_ok(),
            clock: options.clock.clone(),
            slots: Mutex::default(),
            closed: AtomicBool::new(false),
        };
        runner.try_out(options).await?;
        Ok(runner)
    }

    /// Runs one command in a sandbox made for that.
    async fn try_out(&self, options: &RunnerOptions) -> Result<(), RunnerError> {
        let folder = options.scratch_folder("sandboxer-try-")?;
        let space = Space::new("try-out", folder.path());
        self.prepare(&space).await?;
        let mut spec = CommandSpec::new(["true"]);
        spec.env = vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())];
        let tried = async {
            let running = self.enter(&space, spec).await?;
            Ok(running.wait().await)
        };
        let tried: Result<Exit, RunnerError> = tried.await;
        self.stop_space(&space.id).await;
        match tried {
            Ok(Exit { code: Some(0), .. }) => Ok(()),
            Ok(other) => Err(RunnerError::Unavailable(format!("a trial command ended with {other:?}"))),
            Err(RunnerError::Unavailable(what)) => Err(RunnerError::Unavailable(what)),
            Err(other) => Err(RunnerError::Unavailable(other.to_string())),
        }
    }

    /// The program and arguments that lead from the server into the sandbox.
    fn chain(&self, holder: &Holder, terminal: bool) -> Vec<String> {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let id = SANDBOX_ID.to_string();
        let mut chain = vec![path(&self.entering.nsenter), "--target".into(), holder.init.to_string()];
        let mut add = |words: &[&str]| chain.extend(words.iter().map(|word| (*word).to_owned()));
        if self.holders.user_namespace {
            add(&["--user", "--preserve-credentials"]);
        }
        add(&["--mount", "--pid", "--ipc", "--uts"]);
        if !self.holders.share_network {
            add(&["--net"]);
        }
        add(&["--", &path(&self.entering.unshare), "--cgroup"]);
        if self.holders.user_namespace {
            let (user, group) = (format!("--map-user={id}"), format!("--map-group={id}"));
            add(&["--user", &user, &group, "--keep-caps"]);
        }
        add(&["--", &path(&self.entering.setsid)]);
        if terminal {
            add(&["--ctty"]);
        }
        add(&["--", &path(&self.entering.setpriv)]);
        if !self.holders.user_namespace {
            add(&["--reuid", &id, "--regid", &id, "--clear-groups"]);
        }
        add(&["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs", "--"]);
        chain
    }

    async fn enter(&self, space: &Space, spec: CommandSpec) -> Result<Running, RunnerError> {
        spec.check()?;
        let holder = self.holder(space).await?;
        let entered = self.enter_holder(&holder, &spec);
        let guard = SystemClock::new().sleep(ENTERING);
        tokio::select! {
            entered = entered => entered,
            () = guard => Err(io::Error::new(io::ErrorKind::TimedOut, "the sandbox could not be entered in time").into()),
        }
    }

    async fn enter_holder(&self, holder: &Arc<Holder>, spec: &CommandSpec) -> Result<Running, RunnerError> {
        let chain = self.chain(holder, spec.pty.is_some());
        let mut command = command_line(
            &chain,
            &self.holders.sh,
            &self.entering.env,
            spec,
            Path::new(&spec.cwd),
            Some(PROCESSES),
        );
        command.current_dir("/").process_group(0);
        let terminal = match spec.pty {
            None => None,
            Some(size) => {
                let (terminal, slave) = holder.open_terminal(size, self.owner())?;
                command.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(slave);
                Some(terminal)
            }
        };
        let mut child = self.starter.spawn(command).await?;
        let outer = child.id().and_then(|id| Pid::from_raw(id as i32)).ok_or_else(no_pipes)?;
        let outer = pidfd_open(outer, PidfdFlags::empty()).map_err(io::Error::from)?;
        let mut streams = match &terminal {
            Some(terminal) => Streams::of_terminal(terminal),
            None => Streams::of_pipes(&mut child).ok_or_else(no_pipes)?,
        };
        let pid = streams.greet(spec).await?;
        let tag = holder.tags.register(&holder.table.process(pid)?)?;
        streams.release(terminal.is_some()).await?;

        let tree = Arc::new(CommandTree { holder: holder.clone(), tag, outer });
        let control = Arc::new(TreeControl::new(tree.clone(), terminal, self.clock.clone()));
        let output = Output::for_spec(spec);
        let stdin = streams.take_input(spec);
        let mut pumps = vec![pump(streams.stdout, output.stdout().clone())];
        pumps.extend(streams.stderr.map(|stderr| pump(stderr, output.stderr().clone())));
        let shared = Shared::new(pid, output, stdin, control);
        let running = shared.running();
        let clock = self.clock.clone();
        supervise(child, shared, pumps, self.clock.clone(), move |exit| {
            Box::pin(async move {
                // If the process that watched the command from outside was killed, the command must not go on unwatched.
                if exit.signal.is_some() && tree.is_running(pid) {
                    end_tree(tree.clone(), Duration::ZERO, clock).await;
                }
                tree.holder.tags.main_ended(tree.tag, &tree.holder.table);
                exit
            })
        });
        Ok(running)
    }

    async fn holder(&self, space: &Space) -> Result<Arc<Holder>, RunnerError> {
        let slot = self.lock().entry(space.id.clone()).or_default().clone();
        let mut slot = slot.lock().await;
        if self.closed.load(Ordering::Acquire) {
            return Err(RunnerError::Unavailable("the server is shutting down".to_owned()));
        }
        match slot.as_ref().filter(|holder| holder.is_alive()) {
            Some(holder) => Ok(holder.clone()),
            None => {
                let started = Holder::start(&self.holders, &self.keeper, space);
                let guard = SystemClock::new().sleep(ENTERING);
                let holder = tokio::select! {
                    started = started => Arc::new(started?),
                    () = guard => {
                        return Err(io::Error::new(io::ErrorKind::TimedOut, "the sandbox did not start in time").into());
                    }
                };
                *slot = Some(holder.clone());
                Ok(holder)
            }
        }
    }

    /// The holder of a sandbox in which something has run.
    async fn known_holder(&self, id: &str) -> Option<Arc<Holder>> {
        let slot = self.lock().get(id).cloned()?;
        let holder = slot.lock().await.clone();
        holder.filter(|holder| holder.is_alive())
    }

    async fn reach(&self, space: &Space, port: u16, loopback: bool) -> io::Result<TcpStream> {
        let holder = self.known_holder(&space.id).await.ok_or_else(|| sockets::nobody(&[]))?;
        let (is_shared, init) = (self.holders.share_network, holder.init);
        let look = move || {
            let init = holder.table.process(1)?;
            let all = sockets::listening(&init, port)?;
            // A network that is the host's has others' as well: only what a process of this sandbox holds is the sandbox's.
            let processes = if is_shared { holder.table.processes()? } else { Vec::new() };
            let is_own = |inode| !is_shared || processes.iter().any(|process| process.holds_socket(&[inode]));
            let places = sockets::own_places(all, is_own, port, loopback)?;
            Ok::<_, io::Error>((places, init.open_namespace("net")?))
        };
        let (places, network) = tokio::task::spawn_blocking(look).await.map_err(io::Error::other)??;
        if is_shared {
            return reach::directly(&places).await;
        }
        if !self.holders.user_namespace {
            return reach::by_thread(network, places).await;
        }
        let no_bash =
            || io::Error::new(io::ErrorKind::Unsupported, "reaching a port as an ordinary user takes bash");
        let bash = tools::find("bash").ok_or_else(no_bash)?;
        reach::by_child(&self.entering.nsenter, &bash, init, &places).await
    }

    async fn stop_space(&self, id: &str) {
        let Some(slot) = self.lock().get(id).cloned() else { return };
        let holder = slot.lock().await.take();
        if let Some(holder) = holder {
            holder.stop().await;
        }
        let mut slots = self.lock();
        // Two: the table's and ours. A third would be a command that is about to use it.
        if slots.get(id).is_some_and(|slot| Arc::strong_count(slot) == 2) {
            slots.remove(id);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runner for IsolatedRunner {
    fn name(&self) -> &'static str {
        "isolated"
    }

    fn limitations(&self) -> Option<String> {
        let mut limits = Vec::new();
        if self.holders.share_network {
            limits.push("commands share the host's network");
        }
        if self.holders.user_namespace {
            limits.push("commands keep the server's supplementary groups for reading the read-only system");
        }
        if !self.keyrings_are_closed {
            limits.push("commands can reach the kernel's keyrings of the user they run as");
        }
        (!limits.is_empty()).then(|| limits.join("; "))
    }

    fn owner(&self) -> Option<Owner> {
        (!self.holders.user_namespace).then_some(Owner { uid: SANDBOX_ID, gid: SANDBOX_ID })
    }

    fn prepare<'a>(&'a self, space: &'a Space) -> BoxFuture<'a, io::Result<()>> {
        let (space, owner) = (space.clone(), self.owner());
        Box::pin(async move {
            tokio::task::spawn_blocking(move || prepare(&space, owner)).await.map_err(io::Error::other)?
        })
    }

    fn spawn<'a>(
        &'a self,
        space: &'a Space,
        spec: CommandSpec,
    ) -> BoxFuture<'a, Result<Running, RunnerError>> {
        Box::pin(self.enter(space, spec))
    }

    fn end_space<'a>(&'a self, space_id: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(self.stop_space(space_id))
    }

    fn processes<'a>(&'a self, space: &'a Space) -> BoxFuture<'a, io::Result<Vec<ProcessSample>>> {
        Box::pin(async move {
            let Some(holder) = self.known_holder(&space.id).await else { return Ok(Vec::new()) };
            let look = move || {
                let boot = Boot::read()?;
                let processes = holder.table.processes()?.into_iter().filter(|process| process.pid != 1);
                Ok(processes.filter_map(|process| sample::take(&process, &boot, "user")).collect())
            };
            tokio::task::spawn_blocking(look).await.map_err(io::Error::other)?
        })
    }

    fn watches_memory(&self) -> bool {
        true
    }

    fn memory_beyond<'a>(
        &'a self,
        space: &'a Space,
        limit: u64,
    ) -> BoxFuture<'a, io::Result<Option<Vec<MemoryShare>>>> {
        Box::pin(async move {
            let Some(holder) = self.known_holder(&space.id).await else { return Ok(None) };
            let look = move || sample::memory_beyond(&holder.table, limit);
            tokio::task::spawn_blocking(look).await.map_err(io::Error::other)?
        })
    }

    fn connect<'a>(
        &'a self,
        space: &'a Space,
        port: u16,
        loopback: bool,
    ) -> BoxFuture<'a, io::Result<TcpStream>> {
        Box::pin(self.reach(space, port, loopback))
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.closed.store(true, Ordering::Release);
            let ids: Vec<String> = self.lock().keys().cloned().collect();
            join_all(ids.iter().map(|id| self.stop_space(id))).await;
        })
    }
}

fn no_pipes() -> RunnerError {
    io::Error::other("the command has no pipes").into()
}

fn prepare(space: &Space, owner: Option<Owner>) -> io::Result<()> {
    for (folder, mode) in [(space.home(), 0o755), (space.tmp(), 0o1777)] {
        fs::create_dir_all(&folder)?;
        if let Some(owner) = owner {
            std::os::unix::fs::chown(&folder, Some(owner.uid), Some(owner.gid))?;
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode))?;
    }
    // Other users of the host have no business in here, whatever the sandbox does with its own modes.
    fs::set_permissions(&space.root, fs::Permissions::from_mode(0o700))
}
