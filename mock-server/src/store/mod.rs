//! Where the server keeps its state: tables of text keys and bytes, read and written in transactions.
//!
//! The server speaks to the [`Store`] trait alone, so that the embedded store behind it can be exchanged. Everything
//! above this module works with typed records ([`typed`]).

mod redb_store;
mod together;
pub(crate) mod typed;

use std::{fmt, ops::ControlFlow};

pub(crate) use redb_store::RedbStore;

/// Declares the tables with their names in the store.
macro_rules! tables {
    ($($table:ident => $name:literal,)*) => {
        /// The tables there are.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Table {
            $($table,)*
        }

        impl Table {
            /// Every table, so that a new store can make them all.
            pub(crate) const ALL: &[Table] = &[$(Table::$table,)*];

            /// The table's name in the store.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Table::$table => $name,)*
                }
            }
        }
    };
}

tables! {
    Accounts => "accounts",
    Organisations => "organisations",
    Keys => "keys",
    KeyUses => "key_uses",
    MachineKeys => "machine_keys",
    Plans => "plans",
    Retention => "retention",
    Sandboxes => "sandboxes",
    Stops => "stops",
    Deletions => "deletions",
    Commands => "commands",
    Processes => "processes",
    Outputs => "outputs",
    OutputHours => "output_hours",
    Samples => "samples",
    Metrics => "metrics",
    Idempotency => "idempotency",
    GivenFiles => "given_files",
    Starts => "starts",
    Usage => "usage",
    Happenings => "happenings",
    Endpoints => "endpoints",
    Deliveries => "deliveries",
    Telemetry => "telemetry",
    Exports => "exports",
    Environments => "environments",
    EnvironmentVersions => "environment_versions",
    Repositories => "repositories",
    Snapshots => "snapshots",
    NamedSnapshots => "named_snapshots",
    Shares => "shares",
    Conversations => "conversations",
    Prompts => "prompts",
    Events => "events",
    Hosted => "hosted",
    SshKeys => "ssh_keys",
    Desktops => "desktops",
    Planted => "planted",
    Meta => "meta",
    Index => "index",
    Sums => "sums",
}

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Ascending,
    Descending,
}

/// Whether a transaction must be on disk when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// On disk when the transaction returns.
    Now,
    /// On disk with the next transaction that must be.
    Later,
}

/// What a store can fail with.
#[derive(Debug)]
pub(crate) enum StoreError {
    /// Another process has the store open.
    InUse,
    /// The store could not be read or written.
    Failed(String),
    /// A record is not what it should be.
    Corrupt { table: &'static str, key: String, problem: String },
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::InUse => f.write_str("the store is in use by another process"),
            StoreError::Failed(problem) => write!(f, "the store failed: {problem}"),
            StoreError::Corrupt { table, key, problem } => {
                write!(f, "the record {key} of {table} cannot be read: {problem}")
            }
        }
    }
}

impl std::error::Error for StoreError {}

/// A range of a table's keys: from `from` (included) up to `to` (excluded; to the end if `None`), in this order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'a> {
    pub(crate) table: Table,
    pub(crate) from: &'a str,
    pub(crate) to: Option<&'a str>,
    pub(crate) order: Order,
}

/// What is done with the keys and values of a range until it says to stop.
pub(crate) type Visit<'a> = dyn FnMut(&str, &[u8]) -> ControlFlow<()> + 'a;

/// What is done in a transaction; it says whether that is to be kept.
pub(crate) type Work<'a> = dyn FnMut(&mut dyn Writer) -> bool + 'a;

/// A look at the tables as they were when the transaction began.
pub(crate) trait Reader {
    /// The value under a key.
    fn get(&self, table: Table, key: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Visits the keys of a range in order until told to stop.
    fn walk(&self, span: Span<'_>, visit: &mut Visit<'_>) -> Result<(), StoreError>;

    /// [`walk`](Self::walk) with the range in parts.
    fn scan(
        &self,
        table: Table,
        from: &str,
        to: Option<&str>,
        order: Order,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        self.walk(Span { table, from, to, order }, visit)
    }
}

/// A transaction that may change the tables.
pub(crate) trait Writer: Reader {
    /// Sets the value under a key.
    fn put(&mut self, table: Table, key: &str, value: &[u8]) -> Result<(), StoreError>;

    /// Takes a key away; it need not be there.
    fn remove(&mut self, table: Table, key: &str) -> Result<(), StoreError>;
}

/// A transactional store. Writers come one after the other; readers never wait.
pub(crate) trait Store: Send + Sync + 'static {
    /// Whether it outlives the process.
    fn is_kept(&self) -> bool;

    /// Runs `body` on a snapshot of the tables.
    fn read(&self, body: &mut dyn FnMut(&dyn Reader)) -> Result<(), StoreError>;

    /// Runs `body` in a transaction that is kept if it returns true and undone if not.
    fn write(&self, durability: Durability, body: &mut Work<'_>) -> Result<(), StoreError>;
}
