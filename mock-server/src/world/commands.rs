//! The history of commands and the output that is kept of them.

use serde::{Deserialize, Serialize};

use super::time::Millis;
use crate::store::{
    Reader, StoreError, Table, Writer,
    typed::{self, Record},
};

/// The most of a command's text that the history keeps, in bytes.
pub(crate) const TEXT_LIMIT: usize = 64 << 10;

/// The most of each output stream that is kept, in bytes.
pub(crate) const OUTPUT_LIMIT: usize = 8 << 20;

/// The most output of all commands of a sandbox that is kept, in bytes; beyond it the oldest goes.
pub(crate) const OUTPUT_OF_SANDBOX_LIMIT: u64 = 32 << 20;

/// Kept output is written in pieces of this many bytes.
const PIECE: usize = 64 << 10;

/// How a command was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    Sync,
    Stream,
    Detached,
}

impl Mode {
    /// The mode as the service writes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Mode::Sync => "sync",
            Mode::Stream => "stream",
            Mode::Detached => "detached",
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

impl Record for Command {
    const TABLE: Table = Table::Commands;
    fn key(&self) -> String {
        command_key(&self.sandbox, &self.id)
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

/// Keeps the output of a stream that begins at `start`.
pub(crate) fn keep_output(
    tx: &mut dyn Writer,
    command: &str,
    stream: Stream,
    start: u64,
    bytes: &[u8],
) -> Result<(), StoreError> {
    let mut offset = start;
    for piece in bytes.chunks(PIECE) {
        tx.put(Table::Outputs, &piece_key(command, stream, offset), piece)?;
        offset += piece.len() as u64;
    }
    Ok(())
}

/// Drops the output of a sandbox's oldest commands until what is left fits `limit`; their records stay. Returns how many
/// bytes are left.
pub(crate) fn drop_oldest_output(tx: &mut dyn Writer, sandbox: &str, limit: u64) -> Result<u64, StoreError> {
    let mut commands = typed::with_prefix::<Command>(tx, &format!("{sandbox}/"))?;
    // One that runs has none in the store yet.
    commands.retain(|command| command.status != Status::Running);
    let size = |command: &Command| command.stdout.size() + command.stderr.size();
    let mut left: u64 = commands.iter().map(size).sum();
    for command in commands.iter_mut().filter(|command| size(command) > 0) {
        if left <= limit {
            break;
        }
        left -= size(command);
        for (stream, kept) in [(Stream::Stdout, &mut command.stdout), (Stream::Stderr, &mut command.stderr)] {
            for offset in (kept.start..kept.end).step_by(PIECE) {
                tx.remove(Table::Outputs, &piece_key(&command.id, stream, offset))?;
            }
            kept.start = kept.end;
        }
        typed::put(tx, command)?;
    }
    Ok(left)
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
    let mut bytes = Vec::new();
    // Pieces lie at fixed distances from the start of what is kept.
    let into = offset.saturating_sub(kept.start);
    let mut at = kept.start + into / PIECE as u64 * PIECE as u64;
    let mut skip = usize::try_from(offset.saturating_sub(at)).unwrap_or(0);
    while bytes.len() < max && at < kept.end {
        let Some(piece) = tx.get(Table::Outputs, &piece_key(command, stream, at))? else { break };
        let part = piece.get(skip..).unwrap_or_default();
        bytes.extend_from_slice(&part[..part.len().min(max - bytes.len())]);
        at += piece.len() as u64;
        skip = 0;
        if piece.is_empty() {
            break;
        }
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
        let left = typed::write::<_, StoreError>(&store, Durability::Now, |tx| {
            for number in 1..=3 {
                let command = ended(number, 100_000);
                keep_output(tx, &command.id, Stream::Stdout, 0, &[b'x'; 100_000])?;
                typed::put(tx, &command)?;
            }
            drop_oldest_output(tx, "bx_a", 200_000)
        });
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
