//! What an account's sandboxes are like right now.

use std::ops::ControlFlow;

use crate::{
    app::App,
    store::{Order, Reader, StoreError, typed},
    world::sandboxes::{Sandbox, State, listed},
};

/// How many sandboxes are measured one by one: those that were created last.
const MOST_MEASURED: usize = 100;

/// The gauges of an account.
#[derive(Debug, Default)]
pub(super) struct Gauges {
    /// How many sandboxes there are in each state.
    pub(super) states: Vec<(State, u64)>,
    pub(super) sandboxes: Vec<Measured>,
}

/// One sandbox that is up, measured.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) processes: u64,
    pub(super) cpu_percent: f64,
    pub(super) memory_mb: f64,
}

/// Measures. Sandboxes with monitoring off are counted and not measured.
pub(super) async fn measure(app: &App, account: &str) -> Gauges {
    let looked = app.read(|tx| look(tx, account));
    let (states, up) = looked.unwrap_or_else(|error| {
        tracing::error!(%error, "sandboxes could not be counted");
        Default::default()
    });
    let mut sandboxes = Vec::new();
    for sandbox in up {
        // One whose processes cannot be seen just now is left out of this round.
        let Ok(processes) = app.runner.processes(&app.space(&sandbox.id)).await else { continue };
        sandboxes.push(Measured {
            id: sandbox.id,
            name: sandbox.name,
            kind: sandbox.kind,
            processes: processes.len() as u64,
            cpu_percent: processes.iter().map(|process| process.cpu_percent).sum(),
            memory_mb: processes.iter().map(|process| process.memory_mb).sum(),
        });
    }
    Gauges { states, sandboxes }
}

type Look = (Vec<(State, u64)>, Vec<Sandbox>);

fn look(tx: &dyn Reader, account: &str) -> Result<Look, StoreError> {
    let (mut states, mut up) = (Vec::new(), Vec::new());
    for state in State::ALL.into_iter().filter(|state| *state != State::Cancelled) {
        let rows = listed(&format!("account/{account}"), Some(state));
        let mut ids = Vec::new();
        let mut count = 0;
        typed::rows(tx, &rows, typed::after_prefix(&rows).as_deref(), Order::Descending, |_, id| {
            count += 1;
            if state.is_up() && ids.len() < MOST_MEASURED {
                ids.push(id.to_owned());
            }
            ControlFlow::Continue(())
        })?;
        states.push((state, count));
        for id in ids {
            up.extend(typed::get::<Sandbox>(tx, &id)?.filter(|sandbox| sandbox.monitoring));
        }
    }
    up.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
    up.truncate(MOST_MEASURED);
    Ok((states, up))
}
