//! Which of the host's processes belong to a command, or to a sandbox.

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    marking::{Mark, SpaceMarks},
    table::{Row, rows},
};
use crate::runner::tree::{Member, Tree};

/// The processes of one command.
pub(super) struct CommandTree {
    pub(super) main: u32,
    pub(super) mark: Mark,
    pub(super) main_ended: AtomicBool,
    /// Who was found before, so that losing its parent does not hide a process in the middle of a kill.
    pub(super) known: Mutex<HashSet<(u32, u64)>>,
}

impl Tree for CommandTree {
    fn members(&self) -> io::Result<Vec<Box<dyn Member>>> {
        let rows = rows()?;
        let main_lives = !self.main_ended.load(Ordering::Acquire);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut chosen: HashSet<u32> = rows
            .iter()
            .filter(|row| {
                // Once the main process is reaped its number may be somebody else's.
                let related = main_lives && [row.pid, row.group, row.session].contains(&self.main);
                related || known.contains(&row.identity()) || self.mark.is_on(row)
            })
            .map(|row| row.pid)
            .collect();
        add_descendants(&rows, &mut chosen);
        let members: Vec<Row> = rows.into_iter().filter(|row| chosen.contains(&row.pid)).collect();
        known.extend(members.iter().map(Member::identity));
        Ok(boxed(members))
    }
}

/// The processes of one sandbox.
pub(super) struct SpaceTree(pub(super) Arc<SpaceMarks>);

impl SpaceTree {
    pub(super) fn rows(&self) -> io::Result<Vec<Row>> {
        let rows = rows()?;
        let marks = self.0.seen();
        let mut chosen: HashSet<u32> =
            rows.iter().filter(|row| marks.is_on(row)).map(|row| row.pid).collect();
        chosen.extend(self.0.living_mains());
        add_descendants(&rows, &mut chosen);
        Ok(rows.into_iter().filter(|row| chosen.contains(&row.pid)).collect())
    }
}

impl Tree for SpaceTree {
    fn members(&self) -> io::Result<Vec<Box<dyn Member>>> {
        Ok(boxed(self.rows()?))
    }
}

fn boxed(rows: Vec<Row>) -> Vec<Box<dyn Member>> {
    rows.into_iter().map(|row| Box::new(row) as Box<dyn Member>).collect()
}

fn add_descendants(rows: &[Row], chosen: &mut HashSet<u32>) {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for row in rows {
        children.entry(row.parent).or_default().push(row.pid);
    }
    let mut open: Vec<u32> = chosen.iter().copied().collect();
    while let Some(parent) = open.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            if chosen.insert(*child) {
                open.push(*child);
            }
        }
    }
}
