//! Machines that stop answering while something reads from them, and readers who may not read on.

use std::{sync::Arc, time::Duration};

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{
    MockServer, RunnerKind, Scenario, SessionSeed, WorldSeed,
    runner::{Script, ScriptedRunner},
};
use serde_json::{Value, json};

use crate::{
    http::{Api, guarded, until},
    prompts::{ends, held, is, prompt, run},
    streams::Frames,
};

/// How much time there is between two samples.
const PERIOD: Duration = Duration::from_millis(30_001);

/// A server whose commands say one word and never end, and a person who is signed in there.
struct Case {
    clock: ManualClock,
    server: MockServer,
    person: Api,
    id: String,
    path: String,
}

impl Case {
    async fn new() -> Self {
        let clock = ManualClock::new();
        let runner = ScriptedRunner::new(clock.shared());
        runner.on("", Script::new().stdout("begun\n").never_end());
        let mut world = WorldSeed::default();
        world.sessions.push(SessionSeed::new("somebody"));
        let server = MockServer::builder().world(world).clock(clock.shared());
        let server = server.own_runner(Arc::new(runner)).start().unwrap();
        let person = Api::with_key(&server.url(), "somebody");
        let id = person.sandbox(json!({"ttlSeconds": null})).await;
        let path = format!("/sandboxes/{id}");
        Self { clock, server, person, id, path }
    }

    fn set(&self, scenario: Scenario, on: bool) {
        self.server.world().set_scenario_for(&self.id, scenario, on).unwrap();
    }

    fn command(&self, api: &Api, more: Value) -> reqwest::RequestBuilder {
        let mut body = json!({"command": "work", "timeoutSeconds": 600});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        api.request("POST", &format!("{}/commands", self.path)).json(&body)
    }

    /// A streaming command and a background one that is followed, up to their first words.
    async fn streams(&self, api: &Api) -> [Frames; 2] {
        let process = self.person.start(&self.id, "work").await["processId"].clone();
        let attached = api.request("GET", &format!("{}/commands/{process}/stream", self.path));
        let mut all =
            [Frames::open(self.command(api, json!({"stream": true}))).await, Frames::open(attached).await];
        for (frames, first) in all.iter_mut().zip(["started", "attached"]) {
            assert_eq!(frames.next().await.unwrap()["type"], first);
            assert_eq!(frames.next().await.unwrap()["data"], "begun\n");
        }
        all
    }
}

/// The code that streams end with, with nothing but heartbeats before it.
async fn end(streams: [Frames; 2]) -> Value {
    let [streamed, attached] = streams;
    let (streamed, mut attached) = (streamed.all().await, attached.all().await);
    attached.retain(|frame| frame["type"] != "heartbeat");
    assert_eq!((streamed.len(), attached.len()), (1, 1), "{streamed:?} {attached:?}");
    for last in [&streamed[0], &attached[0]] {
        assert_eq!(last["type"], "error");
        assert!(last["message"].is_string());
    }
    assert_eq!(streamed[0]["error"], attached[0]["error"]);
    // From there it can be gone on.
    assert_eq!((&attached[0]["stdoutOffset"], &attached[0]["stderrOffset"]), (&json!(6), &json!(0)));
    streamed[0]["error"].clone()
}

#[tokio::test]
async fn what_waits_for_a_machine_that_stops_answering_is_told_and_the_commands_run_on() {
    let case = Case::new().await;
    let streams = case.streams(&case.person).await;
    let waiting = case.person.send(case.command(&case.person, json!({})));
    let cut = async {
        until(async || case.server.world().commands(&case.id).len() == 3).await;
        case.set(Scenario::Unreachable, true);
    };
    let (waited, ()) = tokio::join!(waiting, cut);
    let details = waited.fails(502, "sandbox_direct_failed");
    assert_eq!(details.get("retryable"), None, "nothing is said about whether it runs");
    let command = details["commandId"].as_str().unwrap().to_owned();
    assert_eq!(end(streams).await, "sandbox_direct_failed");
    let history = case.person.get(&format!("{}/command-history", case.path)).await;
    let history = history.succeeds(200, "command.list")["commands"].as_array().unwrap().clone();
    assert!(history.iter().any(|it| it["commandId"] == command), "{history:?}");
    assert!(history.iter().all(|it| it["status"] == "running"), "{history:?}");

    // A disk that is still restored keeps nothing back of what runs already.
    case.set(Scenario::Unreachable, false);
    let [mut streamed, _] = case.streams(&case.person).await;
    case.set(Scenario::Restoring, true);
    case.set(Scenario::Restoring, false);
    let path = format!("{}/stop", case.path);
    case.person.post(&path, json!({"force": true})).await.succeeds(202, "sandbox.stopping");
    assert_eq!(streamed.next().await.unwrap()["message"], "the sandbox went away while the command ran");
}

#[tokio::test]
async fn a_stream_ends_with_the_key_that_opened_it() {
    let case = Case::new().await;
    let own = case.streams(&case.person).await;
    for way in ["revoked", "rotated", "expired"] {
        let asked = json!({"preset": "full-sandbox", "ttl": "60"});
        let made = case.person.post("/api-keys/scoped", asked).await.succeeds(201, "api_key.created");
        let api = Api::with_key(&case.server.url(), made["secret"].as_str().unwrap());
        let streams = case.streams(&api).await;
        let path = format!("/api-keys/{}", made["apiKey"]["id"].as_str().unwrap());
        match way {
            "revoked" => {
                case.person.call("DELETE", &path, json!({})).await.succeeds(200, "api_key.revoked");
            }
            "rotated" => {
                let path = format!("{path}/rotate");
                case.person.post(&path, json!({})).await.succeeds(200, "api_key.rotated");
            }
            _ => case.clock.advance(Duration::from_secs(60)),
        }
        assert_eq!(end(streams).await, "unauthorized", "{way}");
    }
    // Others read on.
    let [streamed, attached] = own;
    case.set(Scenario::Unreachable, true);
    assert_eq!(streamed.all().await.pop().unwrap()["error"], "sandbox_direct_failed");
    assert_eq!(attached.all().await.pop().unwrap()["error"], "sandbox_direct_failed");
}

#[tokio::test]
async fn a_stream_goes_on_for_as_long_as_its_key_was_given_more_time() {
    let case = Case::new().await;
    let mut session = SessionSeed::new("brief");
    session.expires_in_seconds = Some(60);
    let mut world = WorldSeed::default();
    world.sessions.push(session);
    let plant = || case.server.world().plant(&world).unwrap();
    plant();
    let streams = case.streams(&Api::with_key(&case.server.url(), "brief")).await;
    case.clock.advance(Duration::from_secs(30));
    plant();
    case.clock.advance(Duration::from_secs(31));
    // Nobody is held up by the time that was given first, and nothing ends then.
    for _ in 0..3 {
        case.person.get(&case.path).await.succeeds(200, "sandbox.info");
    }
    case.clock.advance(Duration::from_secs(28));
    case.person.get(&case.path).await.succeeds(200, "sandbox.info");
    let mut ended = std::pin::pin!(end(streams));
    assert!(futures_util::poll!(&mut ended).is_pending());
    case.clock.advance(Duration::from_secs(1));
    assert_eq!(ended.await, "unauthorized");
}

#[tokio::test]
async fn a_member_who_leaves_reads_no_further() {
    let member = "[[accounts]]\nlogin = 'bob'\n[[accounts]]\nlogin = 'eve'\n\
        [[organisations]]\nname = 'Acme'\nid = 'team_1'\nmembers = [{ account = 'bob' }, { account = 'eve' }]\n\
        [[sessions]]\nsecret = 'bob'\naccount = 'bob'\n[[sessions]]\nsecret = 'eve'\naccount = 'eve'\n";
    let case = Case::new().await;
    let world = |text: &str| case.server.world().plant(&WorldSeed::from_toml(text).unwrap()).unwrap();
    world(member);
    let (bob, eve) = (Api::with_key(&case.server.url(), "bob"), Api::with_key(&case.server.url(), "eve"));
    let id = bob.sandbox(json!({"org": "Acme", "noEnv": true, "ttlSeconds": null})).await;
    let process = bob.start(&id, "work").await["processId"].clone();
    let attached = eve.request("GET", &format!("/sandboxes/{id}/commands/{process}/stream"));
    let mut frames = Frames::open(attached).await;
    assert_eq!(frames.next().await.unwrap()["type"], "attached");
    assert_eq!(frames.next().await.unwrap()["data"], "begun\n");
    world(&member.replace(", { account = 'eve' }", ""));
    let rest = frames.all().await;
    assert_eq!((rest.len(), &rest[0]["error"]), (1, &json!("not_found")), "{rest:?}");
}

#[tokio::test]
async fn the_last_look_is_told_of_a_machine_that_does_not_answer() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Process).start().unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({"ttlSeconds": null})).await;
    let metrics =
        async || api.get(&format!("/sandboxes/{id}/metrics")).await.succeeds(200, "sandbox.metrics");
    let processes =
        async || api.get(&format!("/sandboxes/{id}/processes")).await.succeeds(200, "process.list");
    api.start(&id, "exec sleep 1000").await;
    guarded(clock.wait_for_sleep_of(PERIOD)).await;
    clock.advance(PERIOD);
    until(async || metrics().await["points"].as_array().unwrap().len() == 1).await;
    guarded(clock.wait_for_sleep_of(PERIOD)).await;
    clock.advance(Duration::from_secs(5));
    assert_eq!(processes().await["live"], true);

    server.world().set_scenario_for(&id, Scenario::Unreachable, true).unwrap();
    let told = processes().await;
    assert_eq!((&told["live"], &told["sampledAt"]), (&json!(false), &json!("2026-01-01T00:00:30.001Z")));
    assert_eq!(told["total"], 1);
    assert_eq!(metrics().await["current"]["t"], "2026-01-01T00:00:30.001Z");
    // Nor is it looked at meanwhile.
    clock.advance(PERIOD);
    guarded(clock.wait_for_sleep_of(PERIOD)).await;
    assert_eq!(metrics().await["points"].as_array().unwrap().len(), 1);

    server.world().set_scenario_for(&id, Scenario::Unreachable, false).unwrap();
    assert_eq!(processes().await["live"], true);
    assert_eq!(metrics().await["current"]["t"], "2026-01-01T00:01:05.002Z");
}

#[tokio::test]
async fn what_is_held_until_a_sandbox_is_up_does_not_reach_it_then_either() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted).start().unwrap();
    let (boot, hold) = (Duration::from_secs(10), Duration::from_secs(60));
    server.world().set_boot_delay(boot);
    // Captures would come every minute, too.
    server.world().set_capture_every(Duration::ZERO);
    let api = Api::of(&server);
    for (scenario, code) in
        [(Scenario::Restoring, "sandbox_direct_failed"), (Scenario::BoatRestoring, "boat_restoring")]
    {
        server.world().set_scenario(scenario, true).unwrap();
        for (method, path, body) in [
            ("POST", "commands", json!({"command": "true"})),
            ("GET", "files?path=a", json!({})),
            ("POST", "desktop", json!({})),
        ] {
            let created = api.post("/sandboxes", json!({})).await.succeeds(202, "sandbox.created");
            let path = format!("/sandboxes/{}/{path}", created["sandbox"]["id"].as_str().unwrap());
            let boots = async {
                guarded(clock.wait_for_sleep_of(boot)).await;
                guarded(clock.wait_for_sleep_of(hold)).await;
                clock.advance(boot);
            };
            let (answer, ()) = tokio::join!(api.call(method, &path, body), boots);
            assert_eq!((answer.code(), &answer.body["retryable"]), (code, &json!(true)), "{path}");
        }
        server.world().set_scenario(scenario, false).unwrap();
    }
}

#[tokio::test]
async fn a_prompt_is_on_its_way_until_its_machine_answers() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().unwrap();
    let (api, world) = (Api::of(&server), server.world());
    for way in ["answers again", "is restarted", "has another name"] {
        let id = api.sandbox(json!({})).await;
        let rename = async |name: &str| {
            let changed = api.call("PATCH", &format!("/sandboxes/{id}"), json!({"name": name})).await;
            changed.succeeds(200, "sandbox.updated");
        };
        rename(way).await;
        world.set_scenario_for(way, Scenario::Unreachable, true).unwrap();
        let (prompted, _) = prompt(&api, &id, json!({"prompt": "hello", "new": true})).await;
        let waits = run(&api, &id, &prompted).await;
        assert_eq!((&waits["status"], &waits["done"]), (&json!("sending"), &json!(false)), "{way}");
        match way {
            "answers again" => world.set_scenario_for(way, Scenario::Unreachable, false).unwrap(),
            "has another name" => rename("another").await,
            _ => {
                let recovered = api.post(&format!("/sandboxes/{id}/recover"), json!({})).await;
                recovered.succeeds(200, "sandbox.recovering");
            }
        }
        ends(&api, &id, &prompted, "finished").await;
    }
}

#[tokio::test]
async fn an_agent_at_work_reaches_its_machine_no_more_than_others() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let gate = held(&server);
    let held = gate.clone();
    server.set_agent(move |turn| {
        let held = held.clone();
        async move {
            held.acquire().await.map_err(|error| error.to_string())?.forget();
            turn.run("true").await?;
            Ok(())
        }
    });
    let (prompted, _) = prompt(&api, &id, json!({"prompt": "x"})).await;
    is(&api, &id, &prompted, "running").await;
    server.world().set_scenario_for(&id, Scenario::Unreachable, true).unwrap();
    gate.add_permits(1);
    ends(&api, &id, &prompted, "failed").await;
    let event = api.get(&format!("/sandboxes/{id}/events?type=prompt")).await;
    assert_eq!(event.body["events"][0]["data"]["error"], "the sandbox did not answer");
    assert!(server.world().commands(&id).is_empty());
}
