//! Commands that take more memory than their sandbox has.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{
    MockServer,
    runner::{
        CommandSpec, MemoryShare, ProcessSample, Runner, RunnerError, Running, Script, ScriptedRunner, Space,
    },
};
use serde_json::json;

use crate::http::{Api, until};

/// Scripts that are said to hold memory.
struct Hungry {
    scripts: ScriptedRunner,
    shares: Mutex<Option<Vec<MemoryShare>>>,
    looks: AtomicUsize,
}

impl Hungry {
    fn say(&self, shares: Option<Vec<MemoryShare>>) {
        *self.shares.lock().unwrap() = shares;
    }
}

impl Runner for Hungry {
    fn name(&self) -> &'static str {
        "hungry"
    }
    fn limitations(&self) -> Option<String> {
        None
    }
    fn prepare<'a>(&'a self, space: &'a Space) -> BoxFuture<'a, io::Result<()>> {
        self.scripts.prepare(space)
    }
    fn spawn<'a>(
        &'a self,
        space: &'a Space,
        spec: CommandSpec,
    ) -> BoxFuture<'a, Result<Running, RunnerError>> {
        self.scripts.spawn(space, spec)
    }
    fn end_space<'a>(&'a self, space_id: &'a str) -> BoxFuture<'a, ()> {
        self.scripts.end_space(space_id)
    }
    fn processes<'a>(&'a self, space: &'a Space) -> BoxFuture<'a, io::Result<Vec<ProcessSample>>> {
        self.scripts.processes(space)
    }
    fn watches_memory(&self) -> bool {
        true
    }
    fn memory_beyond<'a>(
        &'a self,
        _: &'a Space,
        limit: u64,
    ) -> BoxFuture<'a, io::Result<Option<Vec<MemoryShare>>>> {
        assert_eq!(limit, 2 << 30, "what a small machine has");
        self.looks.fetch_add(1, Ordering::SeqCst);
        let shares = self.shares.lock().unwrap().clone();
        Box::pin(async move { Ok(shares) })
    }
    fn shutdown(&self) -> BoxFuture<'_, ()> {
        self.scripts.shutdown()
    }
}

#[tokio::test]
async fn the_command_that_holds_the_most_is_ended_and_says_why() {
    let clock = ManualClock::new();
    let scripts = ScriptedRunner::new(clock.shared());
    scripts.on("", Script::new().never_end().ignore_term());
    let runner = Arc::new(Hungry { scripts, shares: Mutex::default(), looks: AtomicUsize::new(0) });
    let server = MockServer::builder().clock(clock.shared()).own_runner(runner.clone()).start().unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({"type": "small", "ttlSeconds": null})).await;
    let (modest, greedy) = (api.start(&id, "modest").await, api.start(&id, "greedy").await);
    let status = async |started: &serde_json::Value| {
        api.get(&format!("/sandboxes/{id}/commands/{}", started["processId"])).await.body
    };
    let pid = |started: &serde_json::Value| u32::try_from(started["pid"].as_u64().unwrap()).unwrap();
    let share = |pid, parent, mib: u64| MemoryShare { pid, parent, bytes: mib << 20 };
    let commands = [share(pid(&modest), 0, 900), share(pid(&greedy), 0, 100), share(77, pid(&greedy), 1100)];
    let looks = async |more: usize| {
        let wanted = runner.looks.load(Ordering::SeqCst) + more;
        until(async || runner.looks.load(Ordering::SeqCst) >= wanted).await;
    };
    // What no command stands for holds the most: none of them is to blame.
    runner.say(Some([&commands[..], &[share(99, 1, 5000)]].concat()));
    looks(2).await;
    assert_eq!(
        (&status(&modest).await["running"], &status(&greedy).await["running"]),
        (&json!(true), &json!(true))
    );
    runner.say(Some(commands.into()));
    until(async || status(&greedy).await["running"] == false).await;
    runner.say(None);
    let ended = status(&greedy).await;
    assert_eq!(
        (&ended["oomKilled"], &ended["signal"], &ended["exitCode"], &ended["status"]),
        (&json!(true), &json!("SIGKILL"), &json!(null), &json!("exited"))
    );
    let path = format!("/sandboxes/{id}/command-history/{}", greedy["commandId"].as_str().unwrap());
    assert_eq!(api.get(&path).await.body["command"]["status"], "killed");
    assert_eq!(status(&modest).await["running"], true);
    // One that is ended by its caller did not lack memory.
    let process = format!("/sandboxes/{id}/commands/{}", modest["processId"]);
    let stopping = tokio::spawn({
        let (api, process) = (api.clone(), process.clone());
        async move { api.call("DELETE", &process, json!({})).await.succeeds(200, "command.stopped") }
    });
    clock.wait_for_sleep_of(Duration::from_secs(5)).await;
    clock.advance(Duration::from_secs(5));
    assert_eq!(stopping.await.unwrap()["signaled"], true);
    assert_eq!(status(&modest).await["oomKilled"], false);
}
