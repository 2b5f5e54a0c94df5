//! Who is at work, so that nothing is done twice at once.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::sync::Notify;

use crate::{
    app::{App, lock},
    store::StoreError,
    world::time::Millis,
};

/// How long a lane rests when the store fails.
pub(crate) const REST: Duration = Duration::from_secs(1);

/// The names of the lanes in which somebody is at work.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    busy: Mutex<HashSet<String>>,
    left: Notify,
}

/// One's place in a lane, until it is dropped.
#[derive(Debug)]
pub(crate) struct Busy {
    lanes: Arc<Lanes>,
    name: String,
}

impl Lanes {
    /// Takes a lane, unless somebody is in it.
    pub(crate) fn enter(self: &Arc<Self>, name: &str) -> Option<Busy> {
        let is_free = lock(&self.busy).insert(name.to_owned());
        is_free.then(|| Busy { lanes: self.clone(), name: name.to_owned() })
    }

    /// Has `begin` start what is due, for as long as the server runs: now, whenever something happens, `changed` is told or a
    /// lane is left (what came for it while it was taken is to be looked for then), and at the time that it hands back.
    pub(crate) async fn keep_filled(
        &self,
        app: &App,
        changed: &Notify,
        mut begin: impl FnMut() -> Result<Option<Millis>, StoreError>,
    ) {
        loop {
            let happened = app.happened.notified();
            tokio::pin!(happened);
            happened.as_mut().enable();
            let next = begin().unwrap_or_else(|error| {
                tracing::error!(%error, "what is due could not be looked for");
                Some(app.now().saturating_add(1_000))
            });
            tokio::select! {
                () = happened => {}
                () = changed.notified() => {}
                () = self.left.notified() => {}
                () = app.closing.cancelled() => return,
                () = app.wait_until(next) => {}
            }
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        lock(&self.lanes.busy).remove(&self.name);
        self.lanes.left.notify_one();
    }
}
