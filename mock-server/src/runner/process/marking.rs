//! How the processes of a command are recognised without a fence around them.

#[cfg(target_os = "linux")]
use std::io;
use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    process::Stdio,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use uuid::Uuid;

use super::table::Row;
use crate::runner::tools;
#[cfg(target_os = "linux")]
use crate::runner::{procfs::ProcTable, tags::Tags};

const VARIABLE: &str = "SANDBOXER_PROCESS_MARK";

/// What marks a command's processes on this machine.
#[derive(Clone, Debug)]
pub(super) enum Marking {
    /// A namespace of the command's own, made by `unshare`: every descendant carries it.
    Namespace { kind: &'static str, chain: Vec<String> },
    /// A variable: a process with a cleared environment loses it.
    Variable,
}

impl Marking {
    /// The best one that works here.
    pub(super) async fn detect() -> Self {
        let Some(unshare) = cfg!(target_os = "linux").then(|| tools::find("unshare")).flatten() else {
            return Self::Variable;
        };
        for (kind, flags) in [("cgroup", &["--cgroup"][..]), ("user", &["--user", "--map-current-user"])] {
            let chain = Self::chain(&unshare, flags);
            if Self::works(&chain).await {
                return Self::Namespace { kind, chain };
            }
        }
        Self::Variable
    }

    fn chain(unshare: &std::path::Path, flags: &[&str]) -> Vec<String> {
        let words = std::iter::once(unshare.to_string_lossy().into_owned());
        words.chain(flags.iter().chain(&["--"]).map(|word| (*word).to_owned())).collect()
    }

    async fn works(chain: &[String]) -> bool {
        let Some((program, arguments)) = chain.split_first() else { return false };
        let mut command = tokio::process::Command::new(program);
        command.args(arguments).arg("true").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().await.is_ok_and(|status| status.success())
    }
}

/// One command's mark.
#[derive(Clone, Debug)]
pub(super) enum Mark {
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "namespaces are Linux's"))]
    Namespace {
        kind: &'static str,
        id: u64,
    },
    Variable(String),
}

impl Mark {
    pub(super) fn is_on(&self, row: &Row) -> bool {
        match self {
            Self::Namespace { kind, id } => row.namespace(kind) == Some(*id),
            Self::Variable(entry) => row.environment_has(entry),
        }
    }
}

/// All marks of one sandbox at one moment.
pub(super) enum SeenMarks {
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "namespaces are Linux's"))]
    Namespaces {
        kind: &'static str,
        ids: HashSet<u64>,
    },
    Variable(String),
}

impl SeenMarks {
    pub(super) fn is_on(&self, row: &Row) -> bool {
        match self {
            Self::Namespaces { kind, ids } => row.namespace(kind).is_some_and(|id| ids.contains(&id)),
            Self::Variable(prefix) => row.environment_has(prefix),
        }
    }
}

/// The marks of one sandbox.
#[derive(Debug)]
pub(super) struct SpaceMarks {
    #[cfg(target_os = "linux")]
    tags: Option<Tags>,
    prefix: String,
    next: AtomicU64,
    mains: Mutex<HashMap<u32, usize>>,
}

impl SpaceMarks {
    #[cfg_attr(
        not(target_os = "linux"),
        expect(unused_variables, reason = "there is only one way to mark there")
    )]
    pub(super) fn new(marking: &Marking) -> Self {
        Self {
            #[cfg(target_os = "linux")]
            tags: match marking {
                Marking::Namespace { kind, .. } => Some(Tags::new(kind)),
                Marking::Variable => None,
            },
            prefix: format!("{VARIABLE}={}.", Uuid::new_v4().simple()),
            next: AtomicU64::new(0),
            mains: Mutex::default(),
        }
    }

    /// A fresh value for the marking variable: its name, its value, and the entry that is looked for.
    pub(super) fn variable(&self) -> (String, String, Mark) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let entry = format!("{}{number}.", self.prefix);
        let value = entry[VARIABLE.len() + 1..].to_owned();
        (VARIABLE.to_owned(), value, Mark::Variable(entry))
    }

    /// Reads the namespace mark of `main`, which waits to be let go.
    #[cfg(target_os = "linux")]
    pub(super) fn namespace_of(&self, main: u32) -> io::Result<Mark> {
        let Some(tags) = &self.tags else {
            return Err(io::Error::other("commands here are not marked by a namespace"));
        };
        let id = tags.register(&ProcTable::open("/proc")?.process(main)?)?;
        Ok(Mark::Namespace { kind: tags.kind(), id })
    }

    pub(super) fn main_started(&self, main: u32) {
        *self.mains.lock().unwrap_or_else(PoisonError::into_inner).entry(main).or_default() += 1;
    }

    pub(super) fn main_ended(&self, main: u32, mark: &Mark) {
        {
            let mut mains = self.mains.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(count) = mains.get_mut(&main) {
                *count -= 1;
                if *count == 0 {
                    mains.remove(&main);
                }
            }
        }
        #[cfg(target_os = "linux")]
        if let (Some(tags), Mark::Namespace { id, .. }, Ok(table)) =
            (&self.tags, mark, ProcTable::open("/proc"))
        {
            tags.main_ended(*id, &table);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = mark;
    }

    pub(super) fn living_mains(&self) -> Vec<u32> {
        self.mains.lock().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    pub(super) fn seen(&self) -> SeenMarks {
        #[cfg(target_os = "linux")]
        if let Some(tags) = &self.tags {
            return SeenMarks::Namespaces { kind: tags.kind(), ids: tags.all() };
        }
        SeenMarks::Variable(self.prefix.clone())
    }
}

/// The name of the server's own user, for process lists.
pub(super) fn own_user() -> String {
    let uid = rustix::process::geteuid().as_raw();
    let accounts = std::fs::read_to_string(PathBuf::from("/etc/passwd")).unwrap_or_default();
    let mut lines = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let own = uid.to_string();
    let found = lines.find(|fields| fields.get(2) == Some(&own.as_str())).map(|fields| fields[0].to_owned());
    found.unwrap_or(own)
}
