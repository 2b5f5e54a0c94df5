//! Records whose life is over are taken away.

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use super::report;
use crate::{
    app::App,
    store::{Order, Reader, StoreError, Table, Writer, typed},
    world::{
        commands::{self, Command},
        deletions::Deletion,
        idempotency::UsedKey,
        key_uses,
        keys::Key,
        limits::Start,
        metrics::Curve,
        process_looks::ProcessLook,
        sandboxes::Sandbox,
        stops::Stop,
        time::Millis,
        usage::Span,
    },
};

/// The least and the most time between two rounds: what is read is judged by its own time, so none of it is urgent.
const PAUSE: (Duration, Duration) = (Duration::from_secs(61), Duration::from_secs(3661));

/// How many records are taken away in one transaction.
const AT_ONCE: usize = 500;

/// Keeps the store free of them for as long as the server runs.
pub(crate) async fn keep_up(app: Arc<App>) {
    loop {
        let now = app.now();
        let mut left = AT_ONCE;
        while left == AT_ONCE {
            left = app.write_later(|tx| take_away(tx, now)).unwrap_or_else(|error| {
                report::<()>(Err(error));
                0
            });
            tokio::task::yield_now().await;
        }
        let next = app.read(|tx| next_end(tx)).unwrap_or_default();
        let wait = next.map_or(PAUSE.1, |at| Duration::from_millis(u64::try_from(at - now).unwrap_or(0)));
        if !app.sleep(wait.clamp(PAUSE.0, PAUSE.1)).await {
            return;
        }
    }
}

/// When the life of the first record that has one ends.
fn next_end(tx: &dyn Reader) -> Result<Option<Millis>, StoreError> {
    let mut next = None;
    let to = typed::after_prefix(typed::EXPIRING);
    typed::rows(tx, typed::EXPIRING, to.as_deref(), Order::Ascending, |key, _| {
        next = key[typed::EXPIRING.len()..].split('/').next().and_then(|at| at.parse().ok());
        ControlFlow::Break(())
    })?;
    Ok(next)
}

/// Takes some of those away whose life is over, and says how many.
fn take_away(tx: &mut dyn Writer, now: Millis) -> Result<usize, StoreError> {
    let mut over: Vec<(String, String)> = Vec::new();
    let to = typed::expiring_at(now.saturating_add(1));
    typed::rows(&*tx, typed::EXPIRING, Some(&to), Order::Ascending, |row, record| {
        over.push((row.to_owned(), record.to_owned()));
        if over.len() < AT_ONCE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    for (row, record) in &over {
        if let Some((table, key)) = record.split_once('/') {
            remove(tx, table, key)?;
        }
        // One whose record is of no known table must not come up again and again.
        tx.remove(Table::Index, row)?;
    }
    Ok(over.len())
}

/// Takes one record away, and all that is kept because of it.
fn remove(tx: &mut dyn Writer, table: &str, key: &str) -> Result<(), StoreError> {
    match Table::ALL.iter().find(|known| known.name() == table) {
        Some(Table::Commands) => match typed::get::<Command>(&*tx, key)? {
            Some(command) => commands::forget(tx, &command),
            None => Ok(()),
        },
        Some(Table::Deletions) => typed::remove::<Deletion>(tx, key),
        Some(Table::Idempotency) => typed::remove::<UsedKey>(tx, key),
        Some(Table::KeyUses) => key_uses::forget(tx, key),
        Some(Table::Keys) => typed::remove::<Key>(tx, key),
        Some(Table::Metrics) => typed::remove::<Curve>(tx, key),
        Some(Table::Samples) => typed::remove::<ProcessLook>(tx, key),
        Some(Table::Starts) => typed::remove::<Start>(tx, key),
        Some(Table::Stops) => match typed::get::<Stop>(&*tx, key)? {
            Some(stop) if is_last(&*tx, &stop)? => Ok(()),
            _ => typed::remove::<Stop>(tx, key),
        },
        Some(Table::Usage) => typed::remove::<Span>(tx, key),
        Some(Table::Sandboxes) => typed::remove::<Sandbox>(tx, key),
        _ => {
            tracing::error!(table, "nobody takes the records of this table away");
            Ok(())
        }
    }
}

/// Whether it is the stop that its sandbox shows.
fn is_last(tx: &dyn Reader, stop: &Stop) -> Result<bool, StoreError> {
    let sandbox: Option<Sandbox> = typed::get(tx, &stop.sandbox)?;
    Ok(sandbox.is_some_and(|sandbox| sandbox.stop.as_ref() == Some(&stop.id)))
}
