//! Snapshots that go while somebody asks for them, or somebody stops what they are made of.

use std::{fs, os::unix::fs::MetadataExt as _, sync::Weak, time::Duration};

use serde_json::{Value, json};

use super::{
    Kept, Rolling, begin_save, capture::capture_blocking, capture_now, capture_rolling, promise, thin,
};
use crate::{
    MockServer,
    app::lock,
    lifecycle::{self, begin_delete, begin_stop},
    runner::RunnerKind,
    space,
    store::{Reader, StoreError, typed},
    testing::{Setting, guarded, until},
    world::{
        deletions::Deletion,
        named_snapshots::{NamedSnapshot, Status},
        sandboxes::{Capture, CaptureStatus, Sandbox, State},
        snapshots::{GONE, Snapshot, latest, latest_rolling},
        stops::{Stop, StopStatus, stop_key},
    },
};

#[tokio::test]
async fn one_that_goes_while_it_is_asked_for_is_not_there() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).api_key("key").start().unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let created = http.post(format!("{}/sandboxes", server.url())).bearer_auth("key").json(&json!({}));
    let created: Value = guarded(async { created.send().await.unwrap().json().await.unwrap() }).await;
    let id = created["sandbox"]["id"].as_str().unwrap();
    until(|| server.world().state(id) == Some("ready")).await;
    let app = server.app();
    for what in ["tree", "files?path=/", "download"] {
        let snapshot = server.world().capture(id).unwrap();
        let alone = app.shelf.try_hold_alone(&snapshot).unwrap();
        let url = format!("{}/snapshots/{snapshot}/{what}", server.url());
        let asked = http.get(url).bearer_auth("key").send();
        let asked = tokio::spawn(async move { asked.await.unwrap().status().as_u16() });
        // The other one is whoever asks, and waits.
        until(|| lock(&app.shelf.locks).get(&snapshot).map_or(0, Weak::strong_count) == 2).await;
        space::remove_tree(app.shelf.folder(&snapshot)).await.unwrap();
        app.write::<_, StoreError>(|tx| typed::remove::<Snapshot>(tx, &snapshot)).unwrap();
        drop(alone);
        assert_eq!(guarded(asked).await.unwrap(), 404, "{what}");
    }
}

/// A sandbox that is up and has run something, with a note on its disk.
async fn up(set: &Setting, id: &str) {
    let sandbox =
        Sandbox { state: State::Ready, started_once: true, ..Sandbox::new(id, "acc_1", set.app.now()) };
    set.write(|tx| typed::put(tx, &sandbox));
    set.app.runner.prepare(&set.app.space(id)).await.unwrap();
    note(set, id, "one");
}

fn note(set: &Setting, id: &str, text: &str) {
    fs::write(set.app.space(id).root.join("home/user/note"), text).unwrap();
}

#[tokio::test]
async fn a_capture_that_goes_on_holds_up_neither_a_stop_nor_a_deletion() {
    let set = Setting::new();
    let app = set.app.clone();
    up(&set, "bx_1").await;
    up(&set, "bx_2").await;
    let now = |id: &str| set.get::<Sandbox>(id).unwrap();
    let status = |id: &str| now(id).capture.map(|capture| capture.status);
    let period = app.machines().capture_every().unwrap();
    app.tasks.spawn(lifecycle::keep_capturing(app.clone()));
    let next_round = async || {
        guarded(set.clock.wait_for_sleep_of(period)).await;
        set.clock.advance(period);
    };
    next_round().await;
    until(|| now("bx_1").snapshot_at.is_some() && now("bx_2").snapshot_at.is_some()).await;
    let rolling = |id: &str| app.read(|tx| latest_rolling(tx, id)).unwrap();
    let first = rolling("bx_1").unwrap();

    // It is to build on one whose files somebody keeps to himself.
    let alone = app.shelf.try_hold_alone(&first.id).unwrap();
    note(&set, "bx_2", "another");
    next_round().await;
    until(|| status("bx_1") == Some(CaptureStatus::InProgress)).await;
    assert_eq!(status("bx_2"), Some(CaptureStatus::Queued));

    let (_, stop) = begin_stop(&app, "bx_1", true).unwrap();
    until(|| now("bx_1").state == State::Archived).await;
    let stop: Stop = set.get(&stop_key("bx_1", &stop.id)).unwrap();
    assert_eq!(stop.status, StopStatus::Completed);
    assert_eq!(now("bx_1").restore_from, Some(first.id.clone()));
    let deletion = begin_delete(&app, &now("bx_2"), "acc_1").unwrap();
    until(|| set.get::<Deletion>(&deletion.id).unwrap().completed_at.is_some()).await;
    assert_eq!(status("bx_1"), Some(CaptureStatus::InProgress));

    // What comes of it is of no use to anybody.
    drop(alone);
    until(|| status("bx_1") == Some(CaptureStatus::Cancelled)).await;
    assert_eq!(rolling("bx_1").unwrap().id, first.id);
    until(|| fs::read_dir(app.shelf.root()).unwrap().count() == 1).await;
    app.closing.cancel();
    app.tasks.close();
    guarded(app.tasks.wait()).await;
}

#[tokio::test]
async fn a_capture_of_a_killed_server_is_given_up() {
    let set = Setting::new();
    up(&set, "bx_1").await;
    let mut sandbox = set.get::<Sandbox>("bx_1").unwrap();
    sandbox.hydrated = true;
    sandbox.capture = Some(Capture { at: 7, status: CaptureStatus::InProgress });
    set.write(|tx| typed::put(tx, &sandbox));
    lifecycle::take_up(&set.app).unwrap();
    let capture = set.get::<Sandbox>("bx_1").unwrap().capture;
    assert_eq!(capture, Some(Capture { at: 7, status: CaptureStatus::Cancelled }));
}

#[tokio::test]
async fn a_capture_that_need_not_go_on_leaves_nothing() {
    let set = Setting::new();
    up(&set, "bx_1").await;
    let disk = set.app.space("bx_1").root;
    let left = std::cell::Cell::new(0_u32);
    // However far it is by then.
    for steps in 0.. {
        left.set(steps);
        let goes_on = || left.replace(left.get().saturating_sub(1)) > 0;
        match capture_blocking(&set.app.shelf, &disk, None, 0, &goes_on) {
            Ok(_) => break,
            Err(_) => assert_eq!(fs::read_dir(set.app.shelf.root()).unwrap().count(), 0, "{steps} steps"),
        }
    }
    assert!(left.get() == 0 && fs::read_dir(set.app.shelf.root()).unwrap().count() == 1);
}

/// The disk of a sandbox that is up, as it is now.
fn disk_of(set: &Setting, id: &str) -> Rolling {
    let sandbox = set.get::<Sandbox>(id).unwrap();
    let live = set.app.live(&sandbox);
    Rolling { course: live.course(), sandbox, live }
}

/// How many snapshots there are on the disk, those that are being made included.
fn on_disk(set: &Setting) -> usize {
    fs::read_dir(set.app.shelf.root()).unwrap().count()
}

#[tokio::test]
async fn what_has_not_changed_is_captured_once() {
    let set = Setting::new();
    up(&set, "bx_1").await;
    let big = set.app.space("bx_1").root.join("home/user/big");
    fs::write(&big, "unchanged").unwrap();
    let number = |id: &str, name: &str| {
        let file = set.app.shelf.disk(id).join("home/user").join(name);
        fs::metadata(file).unwrap().ino()
    };
    let mut before: Option<String> = None;
    // The first copies may be of the moment in which the file was written, as far as its time tells.
    for round in 0.. {
        assert!(round < 1000, "never");
        note(&set, "bx_1", &format!("round {round}"));
        assert_ne!(capture_rolling(&set.app, &disk_of(&set, "bx_1")).await.unwrap(), Kept::Nothing);
        set.clock.advance(Duration::from_secs(1));
        let now = set.app.read(|tx| latest_rolling(tx, "bx_1")).unwrap().unwrap();
        // Where a chain begins, everything is copied once.
        if let Some(before) = before.replace(now.id.clone()).filter(|_| now.previous.is_some()) {
            assert_ne!(number(&before, "note"), number(&now.id, "note"));
            if number(&before, "big") == number(&now.id, "big") {
                break;
            }
        }
    }
}

#[tokio::test]
async fn nothing_is_kept_of_a_disk_whose_secret_files_change_during_the_capture() {
    let set = Setting::new();
    up(&set, "bx_1").await;
    assert_eq!(capture_rolling(&set.app, &disk_of(&set, "bx_1")).await.unwrap(), Kept::It);
    let first = set.app.read(|tx| latest_rolling(tx, "bx_1")).unwrap().unwrap();
    let captured = async |change: fn(&mut Sandbox)| {
        let disk = disk_of(&set, "bx_1");
        let alone = set.app.shelf.try_hold_alone(&first.id).unwrap();
        let app = set.app.clone();
        let capturing = tokio::spawn(async move { capture_rolling(&app, &disk).await.unwrap() });
        until(|| lock(&set.app.shelf.locks).get(&first.id).map_or(0, Weak::strong_count) == 2).await;
        let mut sandbox = set.get::<Sandbox>("bx_1").unwrap();
        change(&mut sandbox);
        set.write(|tx| typed::put(tx, &sandbox));
        drop(alone);
        guarded(capturing).await.unwrap()
    };
    let pushed = |sandbox: &mut Sandbox| sandbox.secret_files.push("key".into());
    assert_eq!(captured(pushed).await, Kept::Nothing);
    let pinned = |sandbox: &mut Sandbox| {
        sandbox.environment = Some("base".into());
        (sandbox.environment_id, sandbox.environment_version) = (Some("env_1".into()), Some(2));
    };
    assert_eq!(captured(pinned).await, Kept::Nothing);
    assert_eq!(on_disk(&set), 1);
    assert_eq!(captured(|sandbox| sandbox.name = "other".into()).await, Kept::It);
    assert_eq!(set.app.read(|tx| latest_rolling(tx, "bx_1")).unwrap().unwrap().secret_files, ["key"]);
}

#[tokio::test]
async fn a_round_changes_the_store_for_what_it_captures_and_no_more() {
    const MANY: usize = 50;
    let set = Setting::new();
    for number in 0..MANY {
        let id = format!("bx_{number}");
        up(&set, &id).await;
        // As many as are kept, in a chain of which the next one is no part.
        let mut previous = None;
        for generation in 0..5 {
            let snapshot = Snapshot {
                generation,
                previous: previous.clone(),
                is_rolling: true,
                ..snapshot(&format!("{id}-{generation}"), &id)
            };
            set.write(|tx| typed::put(tx, &snapshot));
            previous = Some(snapshot.id);
        }
    }
    let period = set.app.machines().capture_every().unwrap();
    set.app.tasks.spawn(lifecycle::keep_capturing(set.app.clone()));
    guarded(set.clock.wait_for_sleep_of(period)).await;
    let before = set.faults.writes();
    set.clock.advance(period);
    guarded(set.clock.wait_for_sleep_of(period)).await;
    let gone = |tx: &dyn Reader| typed::rows_with_prefix(tx, GONE, usize::MAX);
    assert_eq!((set.app.read(gone).unwrap().len(), on_disk(&set)), (MANY, MANY));
    // That all are to be captured; and of each that it is, and what has come of it.
    assert_eq!(set.faults.writes() - before, 1 + 2 * MANY);
    set.app.closing.cancel();
    set.app.tasks.close();
    guarded(set.app.tasks.wait()).await;
}

fn snapshot(id: &str, sandbox: &str) -> Snapshot {
    let snapshot = json!({
        "id": id, "sandbox": sandbox, "account": "acc_1", "created_at": 1, "completed_at": 1, "chain": sandbox,
        "generation": 0, "type": "small", "files": 0, "bytes": 0, "added_bytes": 0,
    });
    serde_json::from_value(snapshot).unwrap()
}

#[tokio::test]
async fn when_the_next_capture_comes_is_a_matter_of_the_clock_alone() {
    let set = Setting::new();
    up(&set, "bx_1").await;
    // No round is over so soon that nothing of it would be seen in the pause.
    let period = Duration::from_millis(1);
    lock(&set.app.machines).capture_every_ms = Some(1);
    set.app.tasks.spawn(lifecycle::keep_capturing(set.app.clone()));
    for text in ["two", "three"] {
        guarded(set.clock.wait_for_sleep_of(period)).await;
        note(&set, "bx_1", text);
        set.clock.advance(period);
    }
    guarded(set.clock.wait_for_sleep_of(period)).await;
    assert_eq!(on_disk(&set), 2);
    set.app.closing.cancel();
    set.app.tasks.close();
    guarded(set.app.tasks.wait()).await;
}

#[tokio::test]
async fn what_is_out_of_sight_is_promised_to_nobody() {
    let set = Setting::new();
    let app = &set.app;
    for id in ["sn_1", "sn_2"] {
        set.write(|tx| {
            typed::put(tx, &Snapshot { is_rolling: true, chain: id.into(), ..snapshot(id, "bx_1") })
        });
    }
    let until = app.now() + 1000;
    assert!(promise(app, "sn_1", until).unwrap());
    assert!(app.write(|tx| thin(&app.shelf, tx, "bx_1", 0, app.now())).unwrap());
    assert!(!promise(app, "sn_2", until).unwrap() && !app.shelf.is_promised("sn_2", app.now()));
    let now = |id: &str| set.get::<Snapshot>(id).unwrap().deleted_at;
    assert_eq!((now("sn_1"), now("sn_2")), (None, Some(app.now())));
}

/// A sandbox whose disk was saved, and a stop of it that is about to save it again once `alone` is dropped.
async fn stopping(set: &Setting) -> (String, tokio::sync::OwnedRwLockWriteGuard<()>, Stop) {
    up(set, "bx_1").await;
    let first = capture_now(&set.app, "bx_1").unwrap();
    note(set, "bx_1", "lost");
    let alone = set.app.shelf.try_hold_alone(&first).unwrap();
    let (_, stop) = begin_stop(&set.app, "bx_1", false).unwrap();
    until(|| lock(&set.app.shelf.locks).get(&first).map_or(0, Weak::strong_count) == 2).await;
    (first, alone, stop)
}

#[tokio::test]
async fn a_save_that_goes_on_is_given_up_for_a_stop_that_is_forced() {
    let set = Setting::new();
    let (first, alone, stop) = stopping(&set).await;
    begin_stop(&set.app, "bx_1", true).unwrap();
    drop(alone);
    until(|| set.get::<Sandbox>("bx_1").unwrap().state == State::Archived).await;
    assert_eq!(set.get::<Sandbox>("bx_1").unwrap().restore_from, Some(first.clone()));
    let stop: Stop = set.get(&stop_key("bx_1", &stop.id)).unwrap();
    assert_eq!((stop.status, stop.error), (StopStatus::Completed, None));
    assert_eq!(set.app.read(|tx| latest(tx, "bx_1")).unwrap().unwrap().id, first);
    assert_eq!(on_disk(&set), 1);
}

#[tokio::test]
async fn a_save_that_goes_on_is_given_up_when_the_server_ends() {
    let set = Setting::new();
    let (_, alone, stop) = stopping(&set).await;
    set.app.closing.cancel();
    drop(alone);
    set.app.tasks.close();
    guarded(set.app.tasks.wait()).await;
    assert_eq!(on_disk(&set), 1);
    // The next server takes it up as it was.
    let stop: Stop = set.get(&stop_key("bx_1", &stop.id)).unwrap();
    assert_eq!((stop.status, stop.error), (StopStatus::Pending, None));
    assert_eq!(set.get::<Sandbox>("bx_1").unwrap().save_failed_at, None);
}

#[tokio::test]
async fn a_save_waits_until_the_secret_files_are_what_they_are_said_to_be() {
    let set = Setting::new();
    up(&set, "bx_1").await;
    let live = set.app.live(&set.get::<Sandbox>("bx_1").unwrap());
    let named = NamedSnapshot {
        wallet: "account/acc_1".into(),
        name: "saved".into(),
        account: "acc_1".into(),
        status: Status::Saving,
        error: None,
        source: "bx_1".into(),
        kind: "small".into(),
        created_at: 1,
        snapshot: None,
        bytes: None,
    };
    let key = typed::Record::key(&named);
    set.write(|tx| typed::put(tx, &named));
    // Somebody puts one there.
    let placing = live.placing.lock().await;
    assert_eq!(capture_now(&set.app, "bx_1").unwrap_err(), "its secret files are being replaced");
    begin_save(&set.app, key.clone());
    until(|| live.saves.try_write().is_err()).await;
    fs::write(set.app.space("bx_1").root.join("home/user/key"), "hush").unwrap();
    let mut sandbox = set.get::<Sandbox>("bx_1").unwrap();
    sandbox.secret_files = vec!["key".into()];
    set.write(|tx| typed::put(tx, &sandbox));
    drop(placing);
    until(|| set.get::<NamedSnapshot>(&key).unwrap().status == Status::Ready).await;
    let saved = set.get::<NamedSnapshot>(&key).unwrap().snapshot.unwrap();
    assert_eq!(set.get::<Snapshot>(&saved).unwrap().secret_files, ["key"]);
    assert!(set.app.shelf.disk(&saved).join("home/user/key").exists());
}
