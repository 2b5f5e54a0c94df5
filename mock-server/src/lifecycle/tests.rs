//! Orders of events that no client can bring about at will.

use super::{begin_delete, begin_stop, boot, deletions::RETRY};
use crate::{
    app::FIRST_COURSE,
    snapshots,
    store::{StoreError, Table, typed},
    testing::{Setting, guarded, until},
    world::{
        deletions::Deletion,
        retention::Retention,
        sandboxes::{Sandbox, State},
        snapshots::{GONE, latest},
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

#[tokio::test]
async fn what_an_account_does_not_keep_is_out_of_sight_once_it_is_stopped() {
    let set = Setting::new();
    let mut sandbox = set.sandbox(State::Ready).await;
    sandbox.started_once = true;
    set.write(|tx| typed::put(tx, &sandbox));
    let earlier = snapshots::capture_now(&set.app, &sandbox.id).unwrap();
    let kept_nothing =
        Retention { account: sandbox.account.clone(), zero_at: Some(1), ..Retention::default() };
    set.write(|tx| typed::put(tx, &kept_nothing));
    let live = set.app.live(&sandbox);
    // Somebody copies the disk, which cannot be erased meanwhile.
    let copying = live.disk.read().await;
    begin_stop(&set.app, &sandbox.id, false).unwrap();
    until(|| set.get::<Sandbox>(&sandbox.id).unwrap().state == State::Archived).await;
    let look = |tx: &dyn crate::store::Reader| {
        Ok::<_, StoreError>((latest(tx, &sandbox.id)?.is_some(), typed::rows_with_prefix(tx, GONE, 2)?))
    };
    assert_eq!(set.app.read(look).unwrap(), (false, vec![earlier]));
    assert!(set.app.space(&sandbox.id).root.exists());
    drop(copying);
    set.app.tasks.close();
    guarded(set.app.tasks.wait()).await;
    assert!(!set.app.space(&sandbox.id).root.exists());
    assert_eq!(set.app.read(look).unwrap(), (false, Vec::new()));
}
