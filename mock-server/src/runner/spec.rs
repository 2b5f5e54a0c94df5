//! What a runner is asked for and what it answers: plain values.

use std::{
    fmt, io,
    path::PathBuf,
    time::{Duration, SystemTime},
};

/// How many bytes of each stream are kept unless a command says otherwise: 8 MiB.
pub const DEFAULT_OUTPUT_LIMIT: usize = 8 * 1024 * 1024;

/// The folders of one sandbox on the host: `root/home/user` and `root/tmp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// The sandbox's id.
    pub id: String,
    /// The folder that holds the sandbox's files.
    pub root: PathBuf,
}

impl Space {
    /// The sandbox `id` with its files below `root`.
    pub fn new(id: impl Into<String>, root: impl Into<PathBuf>) -> Self {
        Self { id: id.into(), root: root.into() }
    }

    /// Where the sandbox's `/home/user` is on the host.
    pub fn home(&self) -> PathBuf {
        self.root.join("home/user")
    }

    /// Where the sandbox's `/tmp` is on the host.
    pub fn tmp(&self) -> PathBuf {
        self.root.join("tmp")
    }
}

/// The user and group that own a sandbox's files on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Numeric user id.
    pub uid: u32,
    /// Numeric group id.
    pub gid: u32,
}

/// What happens to output that nobody has read yet once a stream's limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputMode {
    /// The first bytes are kept, the rest is read and thrown away.
    KeepFirst,
    /// Reading from the command pauses until the [`Consumer`](super::Consumer) has caught up.
    Backpressure,
    /// The latest bytes are kept.
    KeepLast,
}

/// A terminal's size in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PtySize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub cols: u16,
}

/// A command to run.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    /// Program and arguments; not empty, no NUL bytes.
    pub argv: Vec<String>,
    /// Working folder as the sandbox sees it: absolute, `/home/user` or `/tmp` or below.
    pub cwd: String,
    /// The whole environment; nothing is inherited from the server.
    pub env: Vec<(String, String)>,
    /// Run on a terminal of that size; standard error then arrives on standard output.
    pub pty: Option<PtySize>,
    /// Whether input will be written; if not, the command reads an empty input.
    pub stdin: bool,
    /// What happens at the limit.
    pub output: OutputMode,
    /// How many bytes of each stream are kept.
    pub output_limit: usize,
}

impl CommandSpec {
    /// `argv` in `/home/user` with no environment, no input, and the first 8 MiB of each stream kept.
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: "/home/user".to_owned(),
            env: Vec::new(),
            pty: None,
            stdin: false,
            output: OutputMode::KeepFirst,
            output_limit: DEFAULT_OUTPUT_LIMIT,
        }
    }

    pub(crate) fn check(&self) -> Result<(), RunnerError> {
        let invalid = |what: &str| Err(RunnerError::Invalid(what.to_owned()));
        if self.argv.is_empty() {
            return invalid("the command is empty");
        }
        let texts = self
            .argv
            .iter()
            .chain([&self.cwd])
            .chain(self.env.iter().flat_map(|(name, value)| [name, value]));
        if texts.into_iter().any(|text| text.contains('\0')) {
            return invalid("a command, folder or variable contains a NUL byte");
        }
        if self.env.iter().any(|(name, _)| name.is_empty() || name.contains('=')) {
            return invalid("the name of a variable is empty or contains '='");
        }
        if self.argv[0].is_empty() || self.argv[0].starts_with('-') {
            return Err(RunnerError::NotFound(self.argv[0].clone()));
        }
        let inside = ["/home/user", "/tmp"].iter().any(|root| {
            self.cwd.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        if !inside || self.cwd.split('/').any(|part| part == "..") {
            return Err(RunnerError::BadCwd(self.cwd.clone()));
        }
        Ok(())
    }
}

/// How a command's main process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The exit code, if it ended by itself.
    pub code: Option<i32>,
    /// The signal, if one ended it.
    pub signal: Option<i32>,
    /// It was ended for lack of memory. Only set when known: by a [`Script`](super::Script), no other runner here knows it.
    pub oom_killed: bool,
}

impl Exit {
    /// Ended by itself with `code`.
    pub fn with_code(code: i32) -> Self {
        Self { code: Some(code), signal: None, oom_killed: false }
    }

    /// Ended by `signal`.
    pub fn with_signal(signal: i32) -> Self {
        Self { code: None, signal: Some(signal), oom_killed: false }
    }

    pub(crate) fn from_status(status: std::process::ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt as _;
        Self { code: status.code(), signal: status.signal(), oom_killed: false }
    }
}

/// One process of a sandbox.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessSample {
    /// Process id as the sandbox sees it (`process`: the host's).
    pub pid: u32,
    /// Parent's process id; 0 when the parent is outside the sandbox.
    pub parent: u32,
    /// Name of the user it runs as.
    pub user: String,
    /// When it started.
    pub started_at: SystemTime,
    /// Share of one processor since it started, in percent.
    pub cpu_percent: f64,
    /// Resident memory in MiB.
    pub memory_mb: f64,
    /// Command line, arguments joined by spaces.
    pub command: String,
    /// Processor time it has used since it started.
    pub cpu_time: Duration,
    /// Bytes it has read from and written to disks since it started; 0 where that is not known.
    pub io_bytes: u64,
}

/// What a process holds of its sandbox's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShare {
    /// Its process id, as in [`ProcessSample`].
    pub pid: u32,
    /// Its parent's process id; 0 when the parent is outside the sandbox.
    pub parent: u32,
    /// Bytes that it holds.
    pub bytes: u64,
}

/// Why a command could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunnerError {
    /// There is no such program.
    NotFound(String),
    /// The working folder does not exist, cannot be entered, or lies outside `/home/user` and `/tmp`.
    BadCwd(String),
    /// The command itself is malformed.
    Invalid(String),
    /// This runner cannot work on this machine; says what is missing.
    Unavailable(String),
    /// The sandbox or the process could not be set up.
    Io(io::Error),
}

impl fmt::Display for RunnerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(program) => write!(f, "no such program: {program}"),
            Self::BadCwd(folder) => write!(f, "cannot use the working folder {folder}"),
            Self::Invalid(what) => write!(f, "invalid command: {what}"),
            Self::Unavailable(what) => write!(f, "this runner is not available here: {what}"),
            Self::Io(error) => write!(f, "the command could not be started: {error}"),
        }
    }
}

impl std::error::Error for RunnerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for RunnerError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
