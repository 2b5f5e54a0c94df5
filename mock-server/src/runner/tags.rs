//! Marks on processes that their descendants inherit and cannot wash off: a namespace of their own for every command.

use std::{
    collections::HashSet,
    io,
    os::fd::OwnedFd,
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::fs::fstat;

use super::procfs::{ProcTable, ProcessDir};

/// How many marks of ended commands may pile up before the table is swept: each holds a file descriptor of the server.
const SWEEP_AT: usize = 8;

/// The marks of one sandbox: which namespaces belong to commands that this server started.
#[derive(Debug)]
pub(crate) struct Tags {
    kind: &'static str,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    tags: Vec<Tag>,
    /// So many marks of ended commands start the next sweep.
    sweep_at: usize,
}

#[derive(Debug)]
struct Tag {
    id: u64,
    // Keeps the number from being given to another namespace.
    _file: OwnedFd,
    main_ended: bool,
}

impl Tags {
    /// Marks are namespaces of that kind.
    pub(crate) fn new(kind: &'static str) -> Self {
        Self { kind, open: Mutex::new(Open { tags: Vec::new(), sweep_at: SWEEP_AT }) }
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// Takes note of the mark that `process` carries.
    pub(crate) fn register(&self, process: &ProcessDir) -> io::Result<u64> {
        let file = process.open_namespace(self.kind)?;
        let id = fstat(&file)?.st_ino;
        self.lock().tags.push(Tag { id, _file: file, main_ended: false });
        Ok(id)
    }

    /// The command's main process has ended; background children may still carry the mark.
    pub(crate) fn main_ended(&self, id: u64, table: &ProcTable) {
        let mut open = self.lock();
        open.tags.iter_mut().filter(|tag| tag.id == id).for_each(|tag| tag.main_ended = true);
        let ended = |open: &Open| open.tags.iter().filter(|tag| tag.main_ended).count();
        if ended(&open) < open.sweep_at {
            return;
        }
        let Ok(processes) = table.processes() else { return };
        let carried: HashSet<u64> =
            processes.iter().filter_map(|process| process.namespace(self.kind)).collect();
        open.tags.retain(|tag| !tag.main_ended || carried.contains(&tag.id));
        // Marks that live on in background children must not make every end a sweep.
        open.sweep_at = (2 * ended(&open)).max(SWEEP_AT);
    }

    /// Every mark that may still be carried.
    pub(crate) fn all(&self) -> HashSet<u64> {
        self.lock().tags.iter().map(|tag| tag.id).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
