//! What is captured of sandboxes that are up, from time to time.

use std::{fs, path::PathBuf, time::Duration};

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, Scenario, SessionSeed, WorldSeed, runner::RunnerKind};
use serde_json::{Value, json};

use crate::http::{Api, guarded, until};

const PERIOD: Duration = Duration::from_secs(70);

struct Setting {
    server: MockServer,
    api: Api,
    clock: ManualClock,
}

impl Setting {
    fn new(period: Duration) -> Self {
        let clock = ManualClock::new();
        let mut world = WorldSeed::default();
        world.sessions.push(SessionSeed::new("somebody"));
        let server = MockServer::builder()
            .clock(clock.shared())
            .world(world)
            .api_key("key")
            .capture_every(period)
            .runner(RunnerKind::Scripted)
            .start()
            .unwrap();
        let api = Api::of(&server);
        Self { server, api, clock }
    }

    fn note(&self, id: &str) -> PathBuf {
        self.server.world().folder(id).join("home/user/note")
    }

    fn write(&self, id: &str, text: &str) {
        fs::write(self.note(id), text).unwrap();
    }

    /// Waits until the next round, and until that is over.
    async fn go_round(&self) {
        guarded(self.clock.wait_for_sleep_of(PERIOD)).await;
        self.clock.advance(PERIOD);
        guarded(self.clock.wait_for_sleep_of(PERIOD)).await;
    }

    async fn listed(&self, id: &str) -> Vec<Value> {
        let list = self.api.get(&format!("/sandboxes/{id}/snapshots")).await;
        list.succeeds(200, "snapshot.list")["snapshots"].as_array().unwrap().clone()
    }

    async fn shown(&self, id: &str) -> Value {
        self.api.get(&format!("/sandboxes/{id}")).await.succeeds(200, "sandbox.info")["sandbox"].clone()
    }

    async fn stop(&self, id: &str, body: Value) {
        let path = format!("/sandboxes/{id}/stop");
        self.api.post(&path, body).await.succeeds(202, "sandbox.stopping");
        self.api.wait_for(id, "archived").await;
    }

    /// How many snapshots are on the disk.
    fn kept(&self) -> usize {
        let folder = self.server.world().folder("bx_0");
        fs::read_dir(folder.parent().unwrap().with_file_name("snapshots")).unwrap().count()
    }
}

#[tokio::test]
async fn a_forced_stop_goes_back_to_what_was_captured_last() {
    let set = Setting::new(PERIOD);
    let id = set.api.sandbox(json!({})).await;
    assert_eq!(set.shown(&id).await["lastSnapshotAttemptAt"], Value::Null);
    set.write(&id, "old");
    set.go_round().await;
    let shown = set.shown(&id).await;
    assert_eq!((&shown["state"], &shown["snapshotAvailable"]), (&json!("ready"), &json!(true)));
    assert_eq!(shown["lastSnapshotStatus"], "completed");
    for at in ["snapshotCompletedAt", "snapshotVerifiedAt", "lastSnapshotAttemptAt"] {
        assert_eq!(shown[at], "2026-01-01T00:01:10.000Z", "{at}");
    }
    let first = set.listed(&id).await;
    assert_eq!((first.len(), &first[0]["kind"], &first[0]["sizeBytes"]), (1, &json!("base"), &json!(3)));

    // What has not changed is not captured again.
    set.go_round().await;
    assert_eq!(set.listed(&id).await, first);
    assert_eq!(set.shown(&id).await["snapshotCompletedAt"], "2026-01-01T00:01:10.000Z");

    set.write(&id, "newer");
    set.go_round().await;
    let second = set.listed(&id).await;
    assert_eq!((second.len(), &second[1]), (2, &first[0]));
    assert_eq!((&second[0]["kind"], &second[0]["generation"]), (&json!("incremental"), &json!(1)));
    assert_eq!((&second[0]["sizeBytes"], &second[0]["chainId"]), (&json!(5), &first[0]["chainId"]));

    set.write(&id, "lost");
    set.stop(&id, json!({"force": true})).await;
    set.api.post(&format!("/sandboxes/{id}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    set.api.wait_for(&id, "ready").await;
    assert_eq!(fs::read_to_string(set.note(&id)).unwrap(), "newer");
}

#[tokio::test]
async fn the_newest_are_kept_until_a_stop_saves_the_disk() {
    let set = Setting::new(PERIOD);
    let id = set.api.sandbox(json!({})).await;
    let write_and_capture = async |count: usize| {
        for number in 0..count {
            set.write(&id, &"x".repeat(number + 1));
            set.go_round().await;
        }
    };
    write_and_capture(12).await;
    let generations = async || {
        let list = set.listed(&id).await;
        list.iter().map(|it| it["generation"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(generations().await, [1, 0, 4, 3, 2]);
    // The files of one go only with those that build on it.
    until(async || set.kept() == 7).await;
    let oldest = set.listed(&id).await[4]["id"].as_str().unwrap().to_owned();
    let manifest = set.api.get(&format!("/snapshots/{oldest}/download")).await;
    assert_eq!(manifest.succeeds(200, "snapshot.download")["chunks"].as_array().unwrap().len(), 3);

    // One whose addresses somebody has stays while they are good.
    write_and_capture(5).await;
    assert_eq!(generations().await, [1, 0, 4, 3, 2, 2]);
    assert_eq!(set.listed(&id).await[5]["id"], oldest);
    set.stop(&id, json!({})).await;
    let left = set.listed(&id).await;
    assert_eq!((left.len(), &left[0]["kind"], &left[1]["id"]), (2, &json!("base"), &json!(oldest)));
    // The one of the stop, and the three of the manifest.
    until(async || set.kept() == 4).await;
    set.clock.advance(Duration::from_secs(3600));
    set.api.post(&format!("/sandboxes/{id}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    set.api.wait_for(&id, "ready").await;
    set.stop(&id, json!({})).await;
    let left = set.listed(&id).await;
    let chain: Vec<&Value> = left.iter().map(|it| &it["generation"]).collect();
    assert_eq!(chain, [1, 0], "those of stops build on one another");
    until(async || set.kept() == 2).await;
}

#[tokio::test]
async fn a_disk_that_cannot_be_captured_is_tried_again() {
    let set = Setting::new(PERIOD);
    let id = set.api.sandbox(json!({})).await;
    set.server.world().set_scenario_for(&id, Scenario::BrokenDisk, true).unwrap();
    for at in ["2026-01-01T00:01:10.000Z", "2026-01-01T00:02:20.000Z"] {
        set.go_round().await;
        let shown = set.shown(&id).await;
        assert_eq!(
            (&shown["lastSnapshotStatus"], &shown["lastSnapshotAttemptAt"]),
            (&json!("failed"), &json!(at))
        );
        assert_eq!((&shown["snapshotCompletedAt"], &shown["state"]), (&Value::Null, &json!("ready")));
    }
    set.server.world().set_scenario_for(&id, Scenario::BrokenDisk, false).unwrap();
    set.go_round().await;
    assert_eq!(set.shown(&id).await["lastSnapshotStatus"], "completed");
    assert_eq!(set.listed(&id).await.len(), 1);

    // Nothing has to be saved of a disk that is as it was, even if that fails once.
    set.server.world().set_scenario_for(&id, Scenario::BrokenDisk, true).unwrap();
    set.go_round().await;
    assert_eq!(set.shown(&id).await["lastSnapshotStatus"], "failed");
    set.server.world().set_scenario_for(&id, Scenario::BrokenDisk, false).unwrap();
    set.go_round().await;
    let shown = set.shown(&id).await;
    assert_eq!(shown["lastSnapshotStatus"], "completed");
    assert_eq!(shown["lastSnapshotAttemptAt"], "2026-01-01T00:03:30.000Z");
}

#[tokio::test]
async fn what_keeps_no_snapshots_is_not_captured() {
    let set = Setting::new(PERIOD);
    let without = set.api.sandbox(json!({"snapshots": false})).await;
    let stopped = set.api.sandbox(json!({})).await;
    let up = set.api.sandbox(json!({})).await;
    set.stop(&stopped, json!({})).await;
    set.go_round().await;
    let counts = async || {
        let mut counts = Vec::new();
        for id in [&without, &stopped, &up] {
            counts.push(set.listed(id).await.len());
        }
        counts
    };
    assert_eq!(counts().await, [0, 1, 1]);
    // One that is young has to wait, though not for long.
    set.clock.advance(PERIOD * 3 / 4);
    let young = set.api.sandbox(json!({})).await;
    guarded(set.clock.wait_for_sleep_of(PERIOD / 4)).await;
    set.clock.advance(PERIOD / 4);
    guarded(set.clock.wait_for_sleep_of(PERIOD)).await;
    assert!(set.listed(&young).await.is_empty());
    set.go_round().await;
    assert_eq!(set.listed(&young).await.len(), 1);
    set.api.delete(&young).await.succeeds(202, "sandbox.deleting");
    // Nor is what an account keeps nothing of.
    let person = Api::with_key(&set.server.url(), "somebody");
    set.api.delete(&stopped).await.succeeds(202, "sandbox.deleting");
    let on = json!({"enabled": true, "confirmation": "delete archived sandbox data"});
    person.call("PATCH", "/account/data-retention", on).await.succeeds(200, "data_retention.updated");
    set.write(&up, "secret");
    set.go_round().await;
    assert_eq!(set.listed(&up).await.len(), 1);
    set.stop(&up, json!({})).await;
    assert!(set.listed(&up).await.is_empty());
    until(async || set.kept() == 0).await;
}

#[tokio::test]
async fn how_often_is_a_setting_of_the_world() {
    let set = Setting::new(Duration::ZERO);
    let id = set.api.sandbox(json!({})).await;
    set.write(&id, "x");
    set.clock.advance(Duration::from_secs(7200 / 4));
    set.server.world().set_capture_every(PERIOD);
    guarded(set.clock.wait_for_sleep_of(PERIOD)).await;
    assert!(set.listed(&id).await.is_empty());
    set.clock.advance(PERIOD / 2);
    assert!(set.listed(&id).await.is_empty());
    set.clock.advance(PERIOD / 2);
    until(async || set.listed(&id).await.len() == 1).await;
    let seed = WorldSeed::from_toml("[machines]\ncapture_every_ms = 0\n").unwrap();
    assert_eq!(seed.machines.capture_every_ms, Some(0));
    assert_eq!(WorldSeed::default().machines.capture_every_ms, None);
}
