//! Processes that no command stands for, as the history shows them: what an agent or a setup script started, and what commands
//! that have ended left running.

use std::{
    collections::HashMap,
    time::{Duration, SystemTime},
};

use crate::{
    runner::ProcessSample,
    store::{Reader, StoreError, Writer, typed},
    text,
    world::{
        commands::{self, Command, Kept, Mode, RUNNING, STRAYS, Status, TEXT_LIMIT},
        ids,
        time::{self, Millis},
    },
};

/// A younger one may be a command that is not recorded yet, or one that is still to run its program. It may look a second older
/// than it is: the time when the machine was started is known in whole seconds.
const OLD_ENOUGH: Duration = Duration::from_secs(2);

/// How far apart two looks may see the start of the same process: the machine's clock may be set between them.
const SAME: Millis = 2000;

/// The most of a sandbox that are recorded as running, and the most that have ended; of those the oldest go.
const RUNNING_AT_ONCE: usize = 100;
const ENDED: u64 = 1000;

/// Which command a process belongs to: the one whose main process is the nearest above it.
pub(crate) struct Owners<'a> {
    parents: HashMap<u32, u32>,
    mains: HashMap<u32, &'a Command>,
}

impl<'a> Owners<'a> {
    /// The owners of these processes and their parents, by the commands that run.
    pub(crate) fn new(processes: impl Iterator<Item = (u32, u32)>, commands: &'a [Command]) -> Self {
        let mains = commands.iter().filter_map(|command| Some((command.pid?, command))).collect();
        Self { parents: processes.collect(), mains }
    }

    /// The owners of these processes.
    pub(crate) fn among(processes: &[ProcessSample], commands: &'a [Command]) -> Self {
        Self::new(processes.iter().map(|process| (process.pid, process.parent)), commands)
    }

    /// The one of a process.
    pub(crate) fn of(&self, pid: u32) -> Option<&'a Command> {
        let mut at = pid;
        // The bound only matters if parents changed while they were being read.
        for _ in 0..=self.parents.len() {
            if let Some(command) = self.mains.get(&at) {
                return Some(command);
            }
            at = *self.parents.get(&at)?;
        }
        None
    }
}

/// A process that no command stands for.
#[derive(Clone, Debug)]
pub(crate) struct Stray {
    pid: u32,
    /// When it started: as the machine has it, and on the server's clock.
    began: Millis,
    started_at: Millis,
    text: String,
}

/// Those among the processes of a sandbox, by the commands that run in it. It is `machine_time` by the machine, and `now` by
/// the server's clock.
pub(crate) fn among(
    processes: &[ProcessSample],
    commands: &[Command],
    machine_time: SystemTime,
    now: Millis,
) -> Vec<Stray> {
    let owners = Owners::among(processes, commands);
    let age = |process: &ProcessSample| machine_time.duration_since(process.started_at).unwrap_or_default();
    processes
        .iter()
        .filter(|process| age(process) >= OLD_ENOUGH && owners.of(process.pid).is_none())
        .map(|process| Stray {
            pid: process.pid,
            began: time::of(process.started_at),
            started_at: now
                .saturating_sub_unsigned(u64::try_from(age(process).as_millis()).unwrap_or(u64::MAX)),
            text: text::head(&process.command, TEXT_LIMIT).to_owned(),
        })
        .collect()
}

/// The records of those that run in a sandbox.
pub(crate) fn running(tx: &(impl Reader + ?Sized), sandbox: &str) -> Result<Vec<Command>, StoreError> {
    let keys = typed::rows_with_prefix(tx, &format!("{RUNNING}{sandbox}/"), usize::MAX)?;
    let mut records: Vec<Command> = typed::get_all(tx, &keys)?;
    records.retain(|record| record.mode == Mode::Process);
    Ok(records)
}

/// Whether a record is of the process of that number and start.
pub(crate) fn is_of(record: &Command, pid: u32, began: Millis) -> bool {
    record.pid == Some(pid) && record.process_start.is_some_and(|start| (start - began).abs() <= SAME)
}

/// Brings the history up to what was seen: those that are new are recorded, those that are gone have ended.
pub(crate) fn note(
    tx: &mut dyn Writer,
    sandbox: &str,
    seen: Vec<Stray>,
    now: Millis,
) -> Result<(), StoreError> {
    let mut gone = running(&*tx, sandbox)?;
    let mut room = RUNNING_AT_ONCE;
    let mut fresh = Vec::new();
    for stray in seen {
        match gone.iter().position(|record| is_of(record, stray.pid, stray.began)) {
            Some(at) => {
                gone.swap_remove(at);
                room = room.saturating_sub(1);
            }
            None => fresh.push(stray),
        }
    }
    end(tx, gone, Status::Exited, now)?;
    for stray in fresh.into_iter().take(room) {
        typed::put(tx, &record(sandbox, stray))?;
    }
    let ended = format!("{STRAYS}{sandbox}/");
    while typed::sum(&*tx, &ended)? > ENDED {
        let Some(oldest) = typed::rows_with_prefix(&*tx, &ended, 1)?.pop() else { break };
        let Some(oldest) = typed::get::<Command>(&*tx, &oldest)? else { break };
        commands::forget(tx, &oldest)?;
    }
    Ok(())
}

/// A sandbox has stopped, and with it all of them: how they ended is not known.
pub(crate) fn lose(tx: &mut dyn Writer, sandbox: &str, now: Millis) -> Result<(), StoreError> {
    let lost = running(&*tx, sandbox)?;
    end(tx, lost, Status::Lost, now)
}

fn end(tx: &mut dyn Writer, records: Vec<Command>, status: Status, now: Millis) -> Result<(), StoreError> {
    records
        .into_iter()
        .try_for_each(|record| typed::put(tx, &Command { status, finished_at: Some(now), ..record }))
}

fn record(sandbox: &str, stray: Stray) -> Command {
    Command {
        history_ends: None,
        id: ids::command(stray.started_at),
        sandbox: sandbox.to_owned(),
        text: stray.text,
        cwd: String::new(),
        mode: Mode::Process,
        process_id: None,
        pid: Some(stray.pid),
        process_start: Some(stray.began),
        status: Status::Running,
        exit_code: None,
        signal: None,
        oom_killed: false,
        stdout: Kept::default(),
        stderr: Kept::default(),
        started_at: stray.started_at,
        finished_at: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        store::{Durability, RedbStore},
        world::time::{DAY, HOUR},
    };

    const NOW: Millis = 1_000_000;

    fn process(pid: u32, parent: u32, age: u64) -> ProcessSample {
        ProcessSample {
            pid,
            parent,
            user: "user".into(),
            started_at: machine_time() - Duration::from_secs(age),
            cpu_percent: 0.0,
            memory_mb: 1.0,
            command: format!("program {pid}"),
            cpu_time: Duration::ZERO,
            io_bytes: 0,
        }
    }

    fn machine_time() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(500_000)
    }

    fn command(pid: u32) -> Command {
        let stray = Stray { pid, began: 0, started_at: NOW, text: "x".into() };
        Command { mode: Mode::Sync, ..record("bx_a", stray) }
    }

    #[test]
    fn a_process_belongs_to_the_nearest_command_above_it_or_is_a_stray() {
        let processes = [
            process(10, 0, 50),
            process(11, 10, 40),
            process(12, 11, 40),
            process(20, 1, 30),
            process(21, 20, 30),
            process(22, 20, 0),
            process(23, 20, 1),
        ];
        let commands = [command(10), command(11)];
        let owners = Owners::among(&processes, &commands);
        let owned = [10, 11, 12, 20, 99].map(|pid| owners.of(pid).and_then(|command| command.pid));
        assert_eq!(owned, [Some(10), Some(11), Some(11), None, None]);
        let strays = among(&processes, &commands, machine_time(), NOW);
        // The last two have just started.
        let shown: Vec<_> = strays.iter().map(|it| (it.pid, it.started_at, it.text.as_str())).collect();
        assert_eq!(shown, [(20, NOW - 30_000, "program 20"), (21, NOW - 30_000, "program 21")]);
    }

    fn write(store: &RedbStore, body: impl FnOnce(&mut dyn Writer) -> Result<(), StoreError>) {
        typed::write::<_, StoreError>(store, Durability::Now, body).unwrap();
    }

    fn records(store: &RedbStore) -> Vec<Command> {
        typed::read::<_, StoreError>(store, |tx| typed::with_prefix(tx, "bx_a/")).unwrap()
    }

    #[test]
    fn strays_are_recorded_once_and_end_when_they_are_gone() {
        let store = RedbStore::in_memory().unwrap();
        let stray = |pid, began| Stray { pid, began, started_at: began, text: format!("program {pid}") };
        write(&store, |tx| typed::put(tx, &command(7)));
        write(&store, |tx| note(tx, "bx_a", vec![stray(20, 1000), stray(21, 2000)], NOW));
        // The machine's clock was set meanwhile; the other number is another process's now.
        write(&store, |tx| note(tx, "bx_a", vec![stray(20, 1900), stray(21, 9000)], NOW + 1));
        let shown = |records: Vec<Command>| {
            let mut shown: Vec<_> = records
                .into_iter()
                .filter(|it| it.mode == Mode::Process)
                .map(|it| (it.started_at, it.status, it.finished_at))
                .collect();
            shown.sort_by_key(|it| it.0);
            shown
        };
        let expected = [
            (1000, Status::Running, None),
            (2000, Status::Exited, Some(NOW + 1)),
            (9000, Status::Running, None),
        ];
        assert_eq!(shown(records(&store)), expected);
        write(&store, |tx| lose(tx, "bx_a", NOW + 2));
        let lost = Some(NOW + 2);
        let expected =
            [(1000, Status::Lost, lost), (2000, Status::Exited, Some(NOW + 1)), (9000, Status::Lost, lost)];
        assert_eq!(shown(records(&store)), expected);
        let commands: Vec<_> = records(&store).into_iter().filter(|it| it.mode == Mode::Sync).collect();
        assert_eq!(commands[0].status, Status::Running);
        // They are kept for three days, not for ninety.
        let rows = typed::read::<_, StoreError>(&store, |tx| {
            typed::rows_with_prefix(tx, &typed::expiring_at(NOW + 1 + 72 * HOUR), 9)
        });
        assert_eq!(rows.unwrap().len(), 1);
        assert_eq!(72 * HOUR, 3 * DAY);
    }

    #[test]
    fn of_many_the_newest_are_kept() {
        let store = RedbStore::in_memory().unwrap();
        let most = RUNNING_AT_ONCE as u32 + 20;
        for round in 0..12 {
            let began = Millis::from(round) * 10_000;
            let seen = (1..=most).map(|pid| Stray { pid, began, started_at: began, text: "x".into() });
            write(&store, |tx| note(tx, "bx_a", seen.collect(), NOW));
        }
        let kept = records(&store);
        let running = kept.iter().filter(|it| it.status == Status::Running).count();
        assert_eq!((running, kept.len() - running), (RUNNING_AT_ONCE, 1000));
        assert_eq!(kept.iter().map(|it| it.started_at).min(), Some(10_000));
    }
}
