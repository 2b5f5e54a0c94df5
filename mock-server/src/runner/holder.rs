//! A sandbox's holder: one small process that keeps the sandbox's namespaces and mounts while commands come and go.
//!
//! The flags and the reasons for them are in `docs/adr/0003-isolated-runner.md`.

use std::{
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Mutex, PoisonError},
};

use rustix::{
    fs::{CWD, Gid, Mode, OFlags, Uid, fchown, openat},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
    pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{ChildStdin, Command},
    sync::watch,
};

use super::{
    Owner, PtySize, RunnerError, Space, account::Accounts, keeper::Keeper, procfs::ProcTable, tags::Tags,
    terminal::Terminal,
};

/// Host folders of which a sandbox sees nothing.
const HIDDEN: [&str; 5] = ["/home", "/root", "/run", "/tmp", "/var/tmp"];
/// Process 1 of a sandbox. It ignores the end of its children, so that the kernel reaps them, and ends with its input,
/// that is, with the server.
const INIT: &str = r#"echo ready >&2; exec "$1" --ignore-signal=CHLD cat >/dev/null 2>&1"#;
const READY: &[u8] = b"ready\n";
/// Far more than either of the holder's start messages.
const MESSAGE_LIMIT: usize = 16 * 1024;

/// How holders are started.
#[derive(Debug)]
pub(crate) struct HolderOptions {
    pub(crate) bwrap: PathBuf,
    pub(crate) env: PathBuf,
    pub(crate) sh: PathBuf,
    pub(crate) accounts: Accounts,
    /// Further host folders to hide.
    pub(crate) hide: Vec<PathBuf>,
    /// The server is an ordinary user and needs a user namespace to build anything.
    pub(crate) user_namespace: bool,
    pub(crate) share_network: bool,
}

impl HolderOptions {
    fn command(&self, space: &Space) -> Command {
        let mut command = Command::new(&self.bwrap);
        command.env_clear();
        if self.user_namespace {
            // As uid 0 of its own namespace bubblewrap needs no second, nested one, which nobody could enter.
            command.args(["--unshare-user", "--uid", "0", "--gid", "0"]);
        }
        command.args(["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", "sandbox"]);
        if !self.share_network {
            command.arg("--unshare-net");
        }
        command.args(["--die-with-parent", "--as-pid-1", "--cap-drop", "ALL"]);
        command.args(["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]);
        command.args(["--perms", "1777", "--tmpfs", "/dev/shm"]);
        let covers = self.covers();
        for cover in &covers {
            command.arg("--tmpfs").arg(cover);
        }
        if self.share_network {
            // Where the system's resolver configuration is a link into /run, names could not be looked up without this.
            command.args(["--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve"]);
        }
        for (file, place) in self.accounts.covers() {
            command.arg("--ro-bind").arg(file).arg(place);
        }
        command.arg("--bind").arg(space.home()).arg("/home/user");
        command.arg("--bind").arg(space.tmp()).arg("/tmp");
        for cover in covers.iter().filter(|cover| *cover != Path::new("/tmp")) {
            command.arg("--remount-ro").arg(cover);
        }
        command.args(["--remount-ro", "/dev", "--clearenv", "--chdir", "/", "--info-fd", "1", "--"]);
        command.arg(&self.sh).args(["-c", INIT, "sh"]).arg(&self.env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A Ctrl-C at the server's terminal is for the server.
        command.process_group(0).current_dir("/").kill_on_drop(true);
        command
    }

    /// The folders that are covered by an empty one: those that exist, by their real names, none below another.
    fn covers(&self) -> Vec<PathBuf> {
        let mut covers: Vec<PathBuf> = Vec::new();
        for folder in HIDDEN.iter().map(Path::new).chain(self.hide.iter().map(PathBuf::as_path)) {
            let Ok(real) = folder.canonicalize() else { continue };
            if real.is_dir() && real != Path::new("/") && !covers.iter().any(|cover| real.starts_with(cover))
            {
                covers.push(real);
            }
        }
        covers
    }
}

/// A running holder.
#[derive(Debug)]
pub(crate) struct Holder {
    /// Process 1 of the sandbox, in the host's numbering.
    pub(crate) init: u32,
    /// The sandbox's own `/proc`.
    pub(crate) table: ProcTable,
    /// The marks of its commands.
    pub(crate) tags: Tags,
    root: OwnedFd,
    init_fd: OwnedFd,
    // Open as long as the sandbox is to live.
    input: Mutex<Option<ChildStdin>>,
    ended: watch::Receiver<bool>,
}

impl Holder {
    /// Starts a holder for `space`, whose folders must exist, and waits until it can be entered.
    pub(crate) async fn start(
        options: &HolderOptions,
        keeper: &Keeper,
        space: &Space,
    ) -> Result<Self, RunnerError> {
        let mut child = keeper.spawn(options.command(space)).await?;
        let (input, Some(mut info), Some(mut messages)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("the holder has no pipes").into());
        };
        let said = read_until(&mut messages, READY).await?;
        if !said.ends_with(READY) {
            let said = String::from_utf8_lossy(&said).trim().to_owned();
            return Err(RunnerError::Unavailable(format!("bubblewrap could not build the sandbox: {said}")));
        }
        let info = read_until(&mut info, b"}").await?;
        let init = init_pid(&info).ok_or_else(|| io::Error::other("bubblewrap did not name its process"))?;
        let init_fd = pidfd_open(init, PidfdFlags::empty()).map_err(io::Error::from)?;
        let init = init.as_raw_nonzero().get() as u32;
        let (end, ended) = watch::channel(false);
        tokio::spawn(async move {
            // However it ended, it has ended.
            let _ = child.wait().await;
            end.send_replace(true);
        });
        let path = format!("/proc/{init}/root");
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = openat(CWD, path.as_str(), flags, Mode::empty()).map_err(io::Error::from)?;
        let table = ProcTable::open(format!("{path}/proc"))?;
        let input = Mutex::new(input);
        Ok(Self { init, table, tags: Tags::new("cgroup"), root, init_fd, input, ended })
    }

    /// Whether it still holds the sandbox.
    pub(crate) fn is_alive(&self) -> bool {
        !*self.ended.borrow()
    }

    /// Ends everything in the sandbox and returns when it is gone.
    pub(crate) async fn stop(&self) {
        self.kill();
        let mut ended = self.ended.clone();
        // An error means that the waiting task has gone with its runtime, which ends the holder too.
        let _ = ended.wait_for(|ended| *ended).await;
    }

    /// A terminal of the sandbox's own and the end for the command, which belongs to `owner`.
    pub(crate) fn open_terminal(
        &self,
        size: PtySize,
        owner: Option<Owner>,
    ) -> io::Result<(Terminal, OwnedFd)> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let master = openat(&self.root, "dev/pts/ptmx", flags, Mode::empty())?;
        unlockpt(&master)?;
        let slave =
            ioctl_tiocgptpeer(&master, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        if let Some(owner) = owner {
            fchown(&slave, Some(Uid::from_raw(owner.uid)), Some(Gid::from_raw(owner.gid)))?;
        }
        let terminal = Terminal::new(master)?;
        terminal.resize(size)?;
        Ok((terminal, slave))
    }

    fn kill(&self) {
        // Fails when it has ended already.
        let _ = pidfd_send_signal(&self.init_fd, Signal::KILL);
        self.input.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn read_until(source: &mut (impl AsyncRead + Unpin), end: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    while !text.ends_with(end) && text.len() < MESSAGE_LIMIT {
        match source.read_u8().await {
            Ok(byte) => text.push(byte),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        }
    }
    Ok(text)
}

fn init_pid(info: &[u8]) -> Option<Pid> {
    let info: serde_json::Value = serde_json::from_slice(info).ok()?;
    Pid::from_raw(i32::try_from(info.get("child-pid")?.as_i64()?).ok()?)
}
