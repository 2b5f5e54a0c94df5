//! The layout of a store, counted: an older one is brought up to date when it is opened, a newer one is refused.

use std::fmt;

use super::{
    accounts::Organisation,
    commands::{self, Command},
    conversations::Conversation,
    deletions::Deletion,
    deliveries::Delivery,
    environments::{Environment, Version},
    events::Event,
    happenings::Happening,
    idempotency::UsedKey,
    key_uses::Uses,
    keys::Key,
    limits::Start,
    metrics::Curve,
    named_snapshots::NamedSnapshot,
    planted,
    process_looks::ProcessLook,
    prompts::Prompt,
    sandboxes::Sandbox,
    shares::Share,
    snapshots::Snapshot,
    stops::Stop,
    telemetry::{Export, Telemetry},
    usage::Span,
};
use crate::store::{StoreError, Table, Writer, typed};

/// The layout that this version reads and writes. It goes up with every change that an older version would misread, and
/// with every change of what follows from records ([`typed::Record::derive`]).
const LAYOUT: u64 = 3;

/// Where a store keeps its layout.
const KEY: &str = "layout";

/// Why a store cannot be used.
#[derive(Debug)]
pub(crate) enum UpgradeError {
    /// It was written by a later version.
    Newer(u64),
    /// It could not be read or written.
    Store(StoreError),
}

impl fmt::Display for UpgradeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UpgradeError::Newer(layout) => write!(
                f,
                "a newer version of the server wrote it (layout {layout}; this version knows those up to {LAYOUT})"
            ),
            UpgradeError::Store(error) => error.fmt(f),
        }
    }
}

impl From<StoreError> for UpgradeError {
    fn from(error: StoreError) -> Self {
        UpgradeError::Store(error)
    }
}

/// Brings a store to the layout of this version, in the transaction that is given.
pub(crate) fn upgrade(tx: &mut dyn Writer) -> Result<(), UpgradeError> {
    let layout = match tx.get(Table::Meta, KEY)? {
        Some(bytes) => String::from_utf8_lossy(&bytes).parse().map_err(|_| StoreError::Corrupt {
            table: "meta",
            key: KEY.into(),
            problem: "is no number".into(),
        })?,
        // Versions that did not count yet.
        None => 0,
    };
    if layout > LAYOUT {
        return Err(UpgradeError::Newer(layout));
    }
    if layout < LAYOUT {
        if layout < 1 {
            number_starts(tx)?;
            commands::align_output(tx)?;
        }
        if layout < 3 {
            planted::adopt(tx)?;
        }
        derive_everything(tx)?;
        tx.put(Table::Meta, KEY, LAYOUT.to_string().as_bytes())?;
    }
    Ok(())
}

/// What follows from records, from nothing.
fn derive_everything(tx: &mut dyn Writer) -> Result<(), StoreError> {
    typed::clear(tx, Table::Index)?;
    typed::clear(tx, Table::Sums)?;
    DERIVING.iter().try_for_each(|derive| derive(tx))
}

/// Derives everything of one type anew.
type Derive = fn(&mut dyn Writer) -> Result<(), StoreError>;

/// Every type of record that derives.
const DERIVING: &[Derive] = &[
    typed::derive_again::<Command>,
    typed::derive_again::<Conversation>,
    typed::derive_again::<Curve>,
    typed::derive_again::<Deletion>,
    typed::derive_again::<Delivery>,
    typed::derive_again::<Environment>,
    typed::derive_again::<Event>,
    typed::derive_again::<Export>,
    typed::derive_again::<Happening>,
    typed::derive_again::<Key>,
    typed::derive_again::<NamedSnapshot>,
    typed::derive_again::<Organisation>,
    typed::derive_again::<ProcessLook>,
    typed::derive_again::<Prompt>,
    typed::derive_again::<Sandbox>,
    typed::derive_again::<Share>,
    typed::derive_again::<Snapshot>,
    typed::derive_again::<Span>,
    typed::derive_again::<Start>,
    typed::derive_again::<Stop>,
    typed::derive_again::<Telemetry>,
    typed::derive_again::<UsedKey>,
    typed::derive_again::<Uses>,
    typed::derive_again::<Version>,
];

/// Starts were not numbered once.
fn number_starts(tx: &mut dyn Writer) -> Result<(), StoreError> {
    let mut starts: Vec<Start> = typed::with_prefix(&*tx, "")?;
    typed::clear(tx, Table::Starts)?;
    let mut last: Option<(String, u64)> = None;
    for start in &mut starts {
        let before = last.filter(|(wallet, _)| *wallet == start.wallet);
        start.number = before.map_or(1, |(_, number)| number + 1);
        last = Some((start.wallet.clone(), start.number));
        typed::put(tx, start)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        store::{Durability, RedbStore},
        world::sandboxes::{State, active_sum, subdomain_row},
    };

    fn write<T>(store: &RedbStore, body: impl FnOnce(&mut dyn Writer) -> Result<T, UpgradeError>) -> T {
        typed::write(store, Durability::Now, body).unwrap()
    }

    #[test]
    fn an_older_store_gets_its_index_and_its_sums() {
        let store = RedbStore::in_memory().unwrap();
        write(&store, |tx| {
            for (id, at) in [("1", 10), ("2", 20)] {
                let start = serde_json::json!({"wallet": "account/a", "at": at, "id": id}).to_string();
                tx.put(Table::Starts, &format!("account/a/{at:016}/{id}"), start.as_bytes())?;
            }
            let sandbox =
                Sandbox { state: State::Ready, subdomain: "x".into(), ..Sandbox::new("bx_a", "a", 0) };
            tx.put(Table::Sandboxes, "bx_a", &serde_json::to_vec(&sandbox).unwrap())?;
            // Of another layout, and wrong.
            tx.put(Table::Index, "subdomain/y", b"bx_a")?;
            Ok(())
        });
        for _ in 0..2 {
            write(&store, upgrade);
            write(&store, |tx| {
                assert_eq!(typed::row(&*tx, &subdomain_row("x"))?.as_deref(), Some("bx_a"));
                assert_eq!(typed::row(&*tx, &subdomain_row("y"))?, None);
                assert_eq!(typed::sum(&*tx, &active_sum("account/a"))?, 1);
                let starts: Vec<Start> = typed::with_prefix(&*tx, "")?;
                assert_eq!(starts.iter().map(|start| start.number).collect::<Vec<_>>(), [1, 2]);
                Ok(())
            });
        }
    }

    /// The sources of the records.
    fn sources() -> String {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/world");
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        let modules = read("mod.rs");
        let names =
            modules.lines().filter_map(|line| line.strip_prefix("pub(crate) mod ")?.strip_suffix(';'));
        names.map(|name| read(&format!("{name}.rs"))).collect()
    }

    #[test]
    fn every_record_that_derives_is_derived_again() {
        let deriving = sources().matches(concat!("const DERIVES: bool", " = true;")).count();
        assert_eq!(DERIVING.len(), deriving, "DERIVING has every type that derives, and no other");
    }

    #[test]
    fn a_newer_store_is_refused_in_one_line() {
        let store = RedbStore::in_memory().unwrap();
        write(&store, |tx| Ok(tx.put(Table::Meta, KEY, b"7")?));
        let refusal = typed::write(&store, Durability::Now, upgrade).unwrap_err().to_string();
        assert!(refusal.contains("newer version") && refusal.contains("layout 7"), "{refusal}");
        assert_eq!(refusal.lines().count(), 1);
    }
}
