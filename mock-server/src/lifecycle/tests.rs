//! Orders of events that no client can bring about at will.

use super::{begin_delete, begin_stop, boot, deletions::RETRY};
use crate::{
    app::FIRST_COURSE,
    store::{StoreError, Table},
    testing::{Setting, guarded, until},
    world::{
        deletions::Deletion,
        sandboxes::{Sandbox, State},
        stops::{Stop, StopStatus, stop_key},
    },
};

#[tokio::test]
async fn a_stop_that_comes_before_the_boot_is_the_last_word() {
    let set = Setting::new();
    let sandbox = set.sandbox(State::Provisioning).await;
    // Its start is stored, and whoever stored it has not got to the boot yet.
    let (_, stop) = begin_stop(&set.app, &sandbox.id, false).unwrap();
    boot(&set.app, &sandbox, FIRST_COURSE);
    set.app.tasks.close();
    guarded(set.app.tasks.wait()).await;
    assert_eq!(set.get::<Sandbox>(&sandbox.id).unwrap().state, State::Archived);
    let stop: Stop = set.get(&stop_key(&sandbox.id, &stop.id)).unwrap();
    assert_eq!(stop.status, StopStatus::Completed);
}

#[tokio::test]
async fn a_deletion_is_completed_once_the_history_is_gone() {
    let set = Setting::new();
    let sandbox = set.sandbox(State::Ready).await;
    set.app.write::<_, StoreError>(|tx| tx.put(Table::Samples, &sandbox.id, b"{}")).unwrap();
    set.faults.set_removing(Some(Table::Samples));
    let deletion = begin_delete(&set.app, &sandbox, "acc_1").unwrap();
    let now = || set.get::<Deletion>(&deletion.id).unwrap();
    guarded(set.clock.wait_for_sleep_of(RETRY)).await;
    assert_eq!((now().completed_at, now().progress().1), (None, Some("retrying")));
    set.faults.set_removing(None);
    set.clock.advance(RETRY);
    until(|| now().completed_at.is_some()).await;
    let left = set.app.read::<_, StoreError>(|tx| tx.get(Table::Samples, &sandbox.id)).unwrap();
    assert_eq!(left, None);
}
