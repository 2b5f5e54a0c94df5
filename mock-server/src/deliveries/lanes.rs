//! Who is at work, so that nothing is done twice at once.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
};

use tokio::sync::Notify;

use crate::app::lock;

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

    /// Waits until a lane is left. What came for it while it was taken is to be looked for then.
    pub(crate) async fn left(&self) {
        self.left.notified().await;
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        lock(&self.lanes.busy).remove(&self.name);
        self.lanes.left.notify_one();
    }
}
