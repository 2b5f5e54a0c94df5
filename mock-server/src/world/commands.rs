//! The history of commands and the output that is kept of them.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::time::{self, Millis};
use crate::store::{
    Order, Reader, StoreError, Table, Writer,
    typed::{self, Derived, Record},
};

/// The most of a command's text that the history keeps, in bytes.
pub(crate) const TEXT_LIMIT: usize = 64 << 10;

/// The most of each output stream that is kept, in bytes.
pub(crate) const OUTPUT_LIMIT: usize = 8 << 20;

/// How long the history keeps a command after its end, in milliseconds.
const KEPT_FOR: Millis = 90 * time::DAY;

/// How long it keeps a process that no command stands for.
const PROCESS_KEPT_FOR: Millis = 72 * time::HOUR;

/// The most output of all commands of a sandbox that is kept, in bytes; beyond it the oldest goes.
pub(crate) const OUTPUT_OF_SANDBOX_LIMIT: u64 = 128 << 20;

/// Kept output is written in pieces of this many bytes.
const PIECE: usize = 64 << 10;

/// How a command was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    Sync,
    Stream,
    Detached,
    /// It was not: a process that no command stands for.
    Process,
}

impl Mode {
    /// The mode as the service writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Mode::Sync => "sync",
            Mode::Stream => "stream",
            Mode::Detached => "detached",
            Mode::Process => "process",
        }
    }
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Running,
    Exited,
    TimedOut,
    Failed,
    Killed,
    Lost,
}

impl Status {
    /// The status as the service writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Status::Running => "running",
            Status::Exited => "exited",
            Status::TimedOut => "timed_out",
            Status::Failed => "failed",
            Status::Killed => "killed",
            Status::Lost => "lost",
        }
    }
}

/// One of a command's two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    /// The stream as the service writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}

/// A command in the history.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Command {
    pub(crate) id: String,
    pub(crate) sandbox: String,
    /// The shell line, cut to [`TEXT_LIMIT`].
    pub(crate) text: String,
    pub(crate) cwd: String,
    pub(crate) mode: Mode,
    #[serde(default)]
    pub(crate) process_id: Option<u64>,
    #[serde(default)]
    pub(crate) pid: Option<u32>,
    /// When a process that no command stands for began, by the machine's own clock.
    #[serde(default)]
    pub(crate) process_start: Option<Millis>,
    pub(crate) status: Status,
    #[serde(default)]
    pub(crate) exit_code: Option<i32>,
    #[serde(default)]
    pub(crate) signal: Option<i32>,
    #[serde(default)]
    pub(crate) oom_killed: bool,
    #[serde(default)]
    pub(crate) stdout: Kept,
    #[serde(default)]
    pub(crate) stderr: Kept,
    /// How far the history has its standard output and standard error, if its account had no room for more in that hour.
    #[serde(default)]
    pub(crate) history_ends: Option<[u64; 2]>,
    pub(crate) started_at: Millis,
    #[serde(default)]
    pub(crate) finished_at: Option<Millis>,
}

/// How much of a stream there was and what is kept of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The first byte that is kept.
    pub(crate) start: u64,
    /// One past the last byte that is kept.
    pub(crate) end: u64,
    /// How many bytes were written.
    pub(crate) written: u64,
}

impl Kept {
    /// How many bytes are kept.
    pub(crate) fn size(self) -> u64 {
        self.end - self.start
    }

    /// Whether not everything that was written is kept.
    pub(crate) fn is_cut(self) -> bool {
        self.start > 0 || self.end < self.written
    }
}

/// The key of a command.
pub(crate) fn command_key(sandbox: &str, command: &str) -> String {
    format!("{sandbox}/{command}")
}

/// Rows of the index that lead to the commands that run.
pub(crate) const RUNNING: &str = "running/";

/// Rows of the index that lead to the ended processes of a sandbox that no command stood for.
pub(crate) const STRAYS: &str = "strays/";

/// Rows of the index that lead to the ended commands of a sandbox of which output is kept.
fn with_output(sandbox: &str) -> String {
    format!("output/{sandbox}/")
}

impl Record for Command {
    const TABLE: Table = Table::Commands;
    const DERIVES: bool = true;

    fn key(&self) -> String {
        command_key(&self.sandbox, &self.id)
    }

    fn derive(&self, derived: &mut Derived) {
        if self.status == Status::Running {
            derived.row(format!("{RUNNING}{}", self.key()), self.key());
            return;
        }
        let is_stray = self.mode == Mode::Process;
        let kept_for = if is_stray { PROCESS_KEPT_FOR } else { KEPT_FOR };
        derived.expires(self, self.finished_at.unwrap_or(self.started_at).saturating_add(kept_for));
        if is_stray {
            derived.row(format!("{STRAYS}{}", self.key()), self.key());
            derived.add(format!("{STRAYS}{}/", self.sandbox), 1);
        }
        if self.kept() > 0 {
            derived.row(format!("{}{}", with_output(&self.sandbox), self.id), self.key());
            derived.add(with_output(&self.sandbox), self.kept());
        }
    }
}

impl Command {
    /// Whether the history lacks some of its output.
    pub(crate) fn is_truncated(&self) -> bool {
        self.history_ends.is_some() || self.stdout.is_cut() || self.stderr.is_cut()
    }

    /// How many bytes of output are kept.
    fn kept(&self) -> u64 {
        self.stdout.size() + self.stderr.size()
    }
}

/// Which command a process id of a sandbox stands for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) sandbox: String,
    pub(crate) process_id: u64,
    pub(crate) command: String,
}

/// The key of a process.
pub(crate) fn process_key(sandbox: &str, process_id: u64) -> String {
    format!("{sandbox}/{process_id:020}")
}

impl Record for Process {
    const TABLE: Table = Table::Processes;
    fn key(&self) -> String {
        process_key(&self.sandbox, self.process_id)
    }
}

fn piece_key(command: &str, stream: Stream, offset: u64) -> String {
    format!("{command}/{}/{offset:020}", stream.as_str())
}

/// Keeps a part of a stream, from an offset up to which everything that is kept is there already. Pieces lie on a grid of
/// offsets: the last one is written again when it grows, and where the first byte that is kept is inside of a piece, what
/// is before it there does not count.
pub(crate) fn keep_output(
    tx: &mut dyn Writer,
    command: &str,
    stream: Stream,
    start: u64,
    bytes: &[u8],
) -> Result<(), StoreError> {
    let (mut at, inside) = on_grid(start);
    let mut rest = bytes;
    let mut piece = match inside {
        0 => Vec::new(),
        _ => tx.get(Table::Outputs, &piece_key(command, stream, at))?.unwrap_or_default(),
    };
    piece.resize(inside, 0);
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(PIECE - piece.len()));
        piece.extend_from_slice(now);
        tx.put(Table::Outputs, &piece_key(command, stream, at), &piece)?;
        at += PIECE as u64;
        rest = later;
        piece.clear();
    }
    Ok(())
}

/// The piece that an offset lies in, and how far inside.
fn on_grid(offset: u64) -> (u64, usize) {
    let inside = offset % PIECE as u64;
    (offset - inside, usize::try_from(inside).unwrap_or(0))
}

/// Takes away what is kept of a stream before an offset, as far as whole pieces go.
pub(crate) fn drop_output(
    tx: &mut dyn Writer,
    command: &str,
    stream: Stream,
    kept: Kept,
    until: u64,
) -> Result<(), StoreError> {
    let (mut at, _) = on_grid(kept.start);
    while at < kept.end && (at + PIECE as u64 <= until || kept.end <= until) {
        tx.remove(Table::Outputs, &piece_key(command, stream, at))?;
        at += PIECE as u64;
    }
    Ok(())
}

/// Pieces did not lie on a grid once.
pub(crate) fn align_output(tx: &mut dyn Writer) -> Result<(), StoreError> {
    for command in typed::with_prefix::<Command>(&*tx, "")? {
        for (stream, kept) in [(Stream::Stdout, command.stdout), (Stream::Stderr, command.stderr)] {
            if on_grid(kept.start).1 == 0 {
                continue;
            }
            let prefix = format!("{}/{}/", command.id, stream.as_str());
            let mut bytes = Vec::new();
            let to = typed::after_prefix(&prefix);
            tx.scan(Table::Outputs, &prefix, to.as_deref(), Order::Ascending, &mut |_, piece| {
                bytes.extend_from_slice(piece);
                ControlFlow::Continue(())
            })?;
            typed::remove_prefix(tx, Table::Outputs, &prefix)?;
            keep_output(tx, &command.id, stream, kept.start, &bytes)?;
        }
    }
    Ok(())
}

/// Takes a command out of the history, with its output.
pub(crate) fn forget(tx: &mut dyn Writer, command: &Command) -> Result<(), StoreError> {
    typed::remove_prefix(tx, Table::Outputs, &format!("{}/", command.id))?;
    if let Some(process_id) = command.process_id {
        typed::remove::<Process>(tx, &process_key(&command.sandbox, process_id))?;
    }
    typed::remove::<Command>(tx, &command.key())
}

/// Drops the output of a sandbox's oldest commands until what is left fits `limit`; their records stay. One that runs is
/// left alone.
pub(crate) fn drop_oldest_output(tx: &mut dyn Writer, sandbox: &str, limit: u64) -> Result<(), StoreError> {
    let rows = with_output(sandbox);
    while typed::sum(&*tx, &rows)? > limit {
        let Some(oldest) = typed::rows_with_prefix(&*tx, &rows, 1)?.pop() else { break };
        let Some(mut command) = typed::get::<Command>(&*tx, &oldest)? else { break };
        for (stream, kept) in [(Stream::Stdout, &mut command.stdout), (Stream::Stderr, &mut command.stderr)] {
            drop_output(tx, &command.id, stream, *kept, kept.end)?;
            kept.start = kept.end;
        }
        typed::put(tx, &command)?;
    }
    Ok(())
}

/// A process id for a new background command: its own, unless an earlier command of the sandbox had that one.
pub(crate) fn claim_process_id(
    tx: &mut dyn Writer,
    sandbox: &str,
    pid: u32,
    command: &str,
) -> Result<u64, StoreError> {
    let mut process_id = u64::from(pid.max(1));
    if typed::get::<Process>(&*tx, &process_key(sandbox, process_id))?.is_some() {
        let prefix = format!("{sandbox}/");
        let to = typed::after_prefix(&prefix);
        typed::scan::<Process>(&*tx, &prefix, to.as_deref(), Order::Descending, |_, last| {
            process_id = last.process_id + 1;
            ControlFlow::Break(())
        })?;
    }
    typed::put(tx, &Process { sandbox: sandbox.to_owned(), process_id, command: command.to_owned() })?;
    Ok(process_id)
}

/// Reads kept output from an offset that lies inside what is kept.
pub(crate) fn read_output(
    tx: &dyn Reader,
    command: &str,
    stream: Stream,
    kept: Kept,
    offset: u64,
    max: usize,
) -> Result<Vec<u8>, StoreError> {
    let offset = offset.max(kept.start);
    let max = max.min(usize::try_from(kept.end.saturating_sub(offset)).unwrap_or(usize::MAX));
    let mut bytes = Vec::new();
    let (mut at, mut skip) = on_grid(offset);
    while bytes.len() < max && at < kept.end {
        let Some(piece) = tx.get(Table::Outputs, &piece_key(command, stream, at))? else { break };
        let part = piece.get(skip..).unwrap_or_default();
        bytes.extend_from_slice(&part[..part.len().min(max - bytes.len())]);
        at += PIECE as u64;
        skip = 0;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, RedbStore};

    fn ended(number: u64, bytes: u64) -> Command {
        let kept = Kept { start: 0, end: bytes, written: bytes };
        let record = serde_json::json!({
            "id": format!("cmd_{number}"), "sandbox": "bx_a", "text": "x", "cwd": "/tmp", "mode": "sync",
            "status": "exited", "started_at": 0,
        });
        Command { stdout: kept, ..serde_json::from_value(record).unwrap() }
    }

    #[test]
    fn the_oldest_output_goes_first_and_its_record_says_so() {
        let store = RedbStore::in_memory().unwrap();
        typed::write::<_, StoreError>(&store, Durability::Now, |tx| {
            for number in 1..=3 {
                let command = ended(number, 100_000);
                keep_output(tx, &command.id, Stream::Stdout, 0, &[b'x'; 100_000])?;
                typed::put(tx, &command)?;
            }
            drop_oldest_output(tx, "bx_a", 200_000)
        })
        .unwrap();
        let left = typed::read::<_, StoreError>(&store, |tx| typed::sum(tx, &with_output("bx_a")));
        assert_eq!(left.unwrap(), 200_000);
        let (records, pieces) = typed::read::<_, StoreError>(&store, |tx| {
            let mut pieces = Vec::new();
            tx.scan(Table::Outputs, "", None, crate::store::Order::Ascending, &mut |key, _| {
                pieces.push(key[..5].to_owned());
                std::ops::ControlFlow::Continue(())
            })?;
            Ok((typed::with_prefix::<Command>(tx, "")?, pieces))
        })
        .unwrap();
        assert_eq!(records[0].stdout, Kept { start: 100_000, end: 100_000, written: 100_000 });
        assert!(records[0].stdout.is_cut() && !records[1].stdout.is_cut());
        assert_eq!(pieces, ["cmd_2", "cmd_2", "cmd_3", "cmd_3"]);
    }

    #[test]
    fn output_that_grows_is_kept_in_pieces_and_loses_its_beginning() {
        let store = RedbStore::in_memory().unwrap();
        let bytes: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
        let mut at = 0;
        for size in [1, 65_535, 3, 100_000, 0, 134_461] {
            let part = &bytes[at..at + size];
            typed::write(&store, Durability::Now, |tx| keep_output(tx, "c", Stream::Stdout, at as u64, part))
                .unwrap();
            at += size;
        }
        let kept = Kept { start: 140_000, end: 300_000, written: 300_000 };
        typed::write(&store, Durability::Now, |tx| {
            drop_output(tx, "c", Stream::Stdout, Kept { start: 0, ..kept }, 140_000)
        })
        .unwrap();
        let read = |offset, max| {
            typed::read(&store, |tx| read_output(tx, "c", Stream::Stdout, kept, offset, max)).unwrap()
        };
        assert_eq!(read(0, 1 << 20), bytes[140_000..]);
        assert_eq!(read(196_600, 50), bytes[196_600..196_650]);
        let pieces = typed::read::<_, StoreError>(&store, |tx| {
            let mut pieces = 0;
            tx.scan(Table::Outputs, "", None, Order::Ascending, &mut |_, _| {
                pieces += 1;
                ControlFlow::Continue(())
            })?;
            Ok(pieces)
        });
        assert_eq!(pieces.unwrap(), 3, "the two pieces before the first byte that is kept are gone");
    }

    #[test]
    fn kept_output_is_read_back_from_any_offset() {
        let store = RedbStore::in_memory().unwrap();
        let bytes: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
        let kept = Kept { start: 1000, end: 201_000, written: 201_000 };
        typed::write(&store, Durability::Now, |tx| keep_output(tx, "c", Stream::Stdout, 1000, &bytes))
            .unwrap();
        for (offset, max) in
            [(1000, 10), (1000 + 65_536, 5), (1000 + 65_530, 20), (200_990, 100), (1000, 1 << 20)]
        {
            let got =
                typed::read(&store, |tx| read_output(tx, "c", Stream::Stdout, kept, offset, max)).unwrap();
            let from = (offset - 1000) as usize;
            assert_eq!(got, bytes[from..(from + max).min(bytes.len())], "offset {offset}, max {max}");
        }
        let none = typed::read(&store, |tx| read_output(tx, "c", Stream::Stderr, kept, 1000, 10)).unwrap();
        assert_eq!(none, [0_u8; 0]);
    }
}
