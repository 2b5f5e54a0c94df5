//! Prompts, conversations, steering and interrupting: as answers, and as what comes of them.

use std::{sync::Arc, time::Duration};

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{
    AgentsSeed, MockServer,
    agent::{Attachment, Citation, PersonPrompt},
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::{
    binary,
    http::{Api, until},
};

pub(crate) async fn prompt(api: &Api, id: &str, body: Value) -> (String, String) {
    let queued = api.post(&format!("/sandboxes/{id}/prompt"), body).await.succeeds(202, "prompt.queued");
    let text = |name: &str| queued[name].as_str().expect("a text").to_owned();
    assert_eq!((text("id"), text("status")), (id.to_owned(), "queued".to_owned()));
    assert_eq!(queued["promptRun"]["id"], queued["promptId"]);
    (text("promptId"), text("conversationId"))
}

pub(crate) async fn run(api: &Api, id: &str, prompt: &str) -> Value {
    let answer = api.get(&format!("/sandboxes/{id}/prompts/{prompt}")).await.succeeds(200, "prompt.run");
    answer["promptRun"].clone()
}

pub(crate) async fn ends(api: &Api, id: &str, prompt: &str, status: &str) {
    until(async || run(api, id, prompt).await["done"] == true).await;
    assert_eq!(run(api, id, prompt).await["status"], status);
}

pub(crate) async fn is(api: &Api, id: &str, prompt: &str, status: &str) {
    until(async || run(api, id, prompt).await["status"] == status).await;
}

/// All events, the oldest first.
pub(crate) async fn events(api: &Api, id: &str, more: &str) -> Vec<Value> {
    let page = api.get(&format!("/sandboxes/{id}/events?sort=asc&limit=200{more}")).await;
    page.succeeds(200, "events.list")["events"].as_array().expect("a list").clone()
}

/// An agent that works until it is let go.
pub(crate) fn held(server: &MockServer) -> Arc<Semaphore> {
    let gate = Arc::new(Semaphore::new(0));
    let held = gate.clone();
    server.set_agent(move |turn| {
        let held = held.clone();
        async move {
            turn.say(format!("working on: {}", turn.prompt())).await;
            held.acquire().await.map_err(|error| error.to_string())?.forget();
            Ok(())
        }
    });
    gate
}

#[tokio::test]
async fn the_agent_that_is_built_in_runs_the_blocks_of_a_prompt_and_tells_of_it() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    assert!(events(&api, &id, "").await.is_empty());
    let text = "Please:\n```sh\necho hello > note; cat note\n```\nand\n```bash\necho bad >&2; exit 3\n```";
    let (prompted, conversation) = prompt(&api, &id, json!({"prompt": text, "model": "own-model"})).await;
    ends(&api, &id, &prompted, "finished").await;
    assert_eq!(api.exec(&id, "cat note").await["stdout"], "hello\n");
    until(async || api.state(&id).await == "idle").await;

    let events = events(&api, &id, "").await;
    for event in &events {
        assert_eq!((&event["taskId"], &event["conversationId"]), (&json!(prompted), &json!(conversation)));
        assert!(event["data"].get("is_streaming").is_none_or(|streams| streams == false), "{event}");
    }
    let times: Vec<i64> = events.iter().map(|event| event["timestamp"].as_i64().expect("a time")).collect();
    assert!(times.is_sorted_by(|a, b| a < b), "{times:?}");
    let last = events.last().expect("the prompt");
    assert_eq!((&last["id"], &last["type"]), (&json!(prompted), &json!("prompt")));
    assert_eq!(last["data"], json!({"prompt": text, "status": "finished"}));
    let tools: Vec<&Value> =
        events.iter().filter_map(|event| event["data"]["tools"].as_array()).flatten().collect();
    assert_eq!(tools.len(), 2);
    assert_eq!(tools[0]["use"]["input"]["command"], "echo hello > note; cat note\n");
    assert_eq!(tools[0]["result"]["content"], "hello\n");
    assert_eq!(tools[0]["result"]["tool_use_id"], tools[0]["use"]["id"]);
    assert_eq!(
        (&tools[0]["result"]["is_error"], &tools[1]["result"]["is_error"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(tools[1]["result"]["content"], "bad\nexit code 3");
    for event in events.iter().filter(|event| event["data"]["tools"].is_array()) {
        let response = event["id"].as_str().and_then(|id| id.strip_suffix("-tools")).expect("a batch");
        assert!(events.iter().any(|event| event["id"] == response), "{event}");
        assert_eq!(event["data"]["content"], "");
    }
    let answer = &events[events.len() - 2]["data"];
    assert_eq!(answer["model"], "own-model");
    let said = answer["content"].as_str().expect("an answer");
    assert!(
        said.contains("I ran 2 blocks, 1 of which failed.") && said.contains("Block 2 exited with 3."),
        "{said}"
    );
    // They are in the history like every command.
    assert_eq!(server.world().commands(&id).len(), 3);

    let (bare, same) = prompt(&api, &id, json!({"prompt": "hello"})).await;
    assert_eq!(same, conversation);
    ends(&api, &id, &bare, "finished").await;
    let events = self::events(&api, &id, "&type=response").await;
    assert!(
        events.last().expect("an answer")["data"]["content"].as_str().expect("text").contains("has none")
    );
}

#[tokio::test]
async fn conversations_are_listed_and_chosen() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let gate = held(&server);
    let (first, one) = prompt(&api, &id, json!({"prompt": "é".repeat(100), "provider": "claude"})).await;
    let (second, two) = prompt(&api, &id, json!({"prompt": "two", "provider": "codex", "new": true})).await;
    assert_ne!(one, two);
    is(&api, &id, &first, "running").await;
    is(&api, &id, &second, "running").await;
    assert_eq!(api.state(&id).await, "running");
    let list = async || {
        let answer = api.get(&format!("/sandboxes/{id}/conversations")).await;
        answer.succeeds(200, "conversation.list")["conversations"].as_array().expect("a list").clone()
    };
    let listed = list().await;
    assert_eq!((&listed[0]["id"], &listed[0]["current"]), (&json!(two), &json!(true)));
    assert_eq!((&listed[1]["id"], &listed[1]["current"]), (&json!(one), &json!(false)));
    assert_eq!(listed[1]["lastPromptPreview"], "é".repeat(80));
    assert_eq!((&listed[1]["lastHarness"], &listed[0]["lastHarness"]), (&json!("claude"), &json!("codex")));
    assert_eq!((&listed[0]["lastModel"], &listed[0]["running"]), (&json!("gpt-5-codex"), &json!(true)));

    // The small machine's two are at work: a third conversation waits, and so does a second prompt of one.
    let (third, three) = prompt(&api, &id, json!({"prompt": "three", "new": true})).await;
    let (again, same) = prompt(&api, &id, json!({"prompt": "more", "conversationId": one})).await;
    assert_eq!(same, one);
    assert_eq!(run(&api, &id, &third).await["status"], "queued");
    gate.add_permits(1);
    until(async || {
        let all = [&first, &second].map(|prompt| run(&api, &id, prompt));
        futures_util::future::join_all(all).await.iter().filter(|run| run["done"] == true).count() == 1
    })
    .await;
    is(&api, &id, &third, "running").await;
    gate.add_permits(3);
    for prompt in [&first, &second, &third, &again] {
        ends(&api, &id, prompt, "finished").await;
    }
    until(async || api.state(&id).await == "idle").await;
    let listed = list().await;
    assert_eq!((&listed[0]["id"], &listed[0]["prompts"]), (&json!(one), &json!(2)));
    assert_eq!((&listed[1]["id"], &listed[1]["running"]), (&json!(three), &json!(false)));
    // Without a name the one that was prompted last goes on, with its agent.
    let queued = api.post(&format!("/sandboxes/{id}/prompt"), json!({"prompt": "x"})).await;
    gate.add_permits(1);
    assert_eq!(
        (&queued.body["conversationId"], &queued.body["provider"]),
        (&json!(one), &json!("claude-code"))
    );
}

#[tokio::test]
async fn what_cannot_be_prompted_is_refused_and_changes_nothing() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let path = format!("/sandboxes/{id}/prompt");
    let try_prompt = async |body: Value| api.post(&path, body).await;
    try_prompt(json!({"prompt": ""})).await.fails(400, "invalid_request");
    try_prompt(json!({"prompt": "a\0b"})).await.fails(400, "invalid_request");
    try_prompt(json!({"prompt": "x", "provider": "nobody"})).await.fails(400, "invalid_request");
    let both = try_prompt(json!({"prompt": "x", "new": true, "conversationId": "c"})).await;
    assert_eq!(both.fails(400, "invalid_request")["field"], "conversationId");
    try_prompt(json!({"prompt": "x", "conversationId": "none"})).await.fails(404, "not_found");
    let slow = json!({"prompt": "x", "provider": "codex", "model": "gpt-5", "fast": true});
    assert_eq!(try_prompt(slow).await.fails(400, "fast_mode_not_supported")["model"], "gpt-5");
    api.get(&format!("/sandboxes/{id}/prompts/none")).await.fails(404, "not_found");
    let seed: AgentsSeed = serde_json::from_value(json!({"signed_in": ["codex"]})).expect("a seed");
    server.world().set_agents(seed).expect("set");
    let refused = try_prompt(json!({"prompt": "x", "provider": "claude"})).await;
    let details = refused.fails(409, "provider_not_configured");
    assert_eq!(details["provider"], "claude-code");
    assert!(details["setupUrl"].as_str().is_some_and(|url| url.ends_with("claude-code")));
    api.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&id, "archived").await;
    // Said even of one that is stopped, before its state is.
    try_prompt(json!({"prompt": "x", "provider": "pi"})).await.fails(409, "provider_not_configured");
    try_prompt(json!({"prompt": "x"})).await.fails(409, "sandbox_not_ready");
    let interrupted = api.post(&format!("/sandboxes/{id}/interrupt"), json!({})).await;
    interrupted.fails(409, "sandbox_not_ready");
    let steered = api.post(&format!("/sandboxes/{id}/steer"), json!({"message": "x"})).await;
    assert_eq!(steered.fails(409, "no_running_turn")["reason"], "not_running");
    assert!(events(&api, &id, "").await.is_empty());
    let none = api.get(&format!("/sandboxes/{id}/conversations")).await;
    assert_eq!(none.succeeds(200, "conversation.list")["conversations"], json!([]));
}

#[tokio::test]
async fn who_cannot_pay_prompts_nobody() {
    let world = r#"
        [[accounts]]
        login = "poor"
        [[keys]]
        secret = "sbx_live_poor"
        account = "poor"
    "#;
    let seed = |text: &str| sandboxer_mock_server::WorldSeed::from_toml(text).expect("a world");
    let server = MockServer::builder().world(seed(world)).start().expect("a server");
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    server.world().plant(&seed(&world.replace("login", "blocked = true\nlogin"))).expect("planted");
    let refused = api.post(&format!("/sandboxes/{id}/prompt"), json!({"prompt": "x"})).await;
    assert!(refused.fails(402, "billing_required")["billingUrl"].is_string());
    api.post(&format!("/sandboxes/{id}/steer"), json!({"message": "x"})).await.fails(402, "billing_required");
}

#[tokio::test]
async fn a_prompt_that_fails_says_why_and_the_next_one_runs() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    server.set_agent(|turn| async move {
        turn.say("half").await;
        match turn.prompt() {
            "fail" => Err("the model is asleep".into()),
            "panic" => panic!("an agent of a test"),
            _ => Ok(()),
        }
    });
    let (failed, _) = prompt(&api, &id, json!({"prompt": "fail"})).await;
    let (panicked, _) = prompt(&api, &id, json!({"prompt": "panic"})).await;
    let (fine, _) = prompt(&api, &id, json!({"prompt": "fine"})).await;
    ends(&api, &id, &failed, "failed").await;
    ends(&api, &id, &panicked, "failed").await;
    ends(&api, &id, &fine, "finished").await;
    let events = events(&api, &id, "&type=prompt").await;
    let errors: Vec<&Value> = events.iter().map(|event| &event["data"]["error"]).collect();
    assert_eq!(errors, [&json!("the model is asleep"), &json!("the agent panicked"), &Value::Null]);
    server.reset_agent();
    let (own, _) = prompt(&api, &id, json!({"prompt": "```sh\ntrue\n```"})).await;
    ends(&api, &id, &own, "finished").await;
}

#[tokio::test]
async fn prompts_wait_for_a_sandbox_that_starts_and_end_with_one_that_stops() {
    let clock = ManualClock::new();
    let server =
        MockServer::builder().clock(clock.shared()).boot_delay(Duration::from_secs(9)).start().expect("it");
    let api = Api::of(&server);
    let created = api.post("/sandboxes", json!({"ttlSeconds": 60})).await.succeeds(202, "sandbox.created");
    let id = created["sandbox"]["id"].as_str().expect("an id").to_owned();
    let gate = held(&server);
    let (prompted, _) = prompt(&api, &id, json!({"prompt": "x"})).await;
    assert_eq!(run(&api, &id, &prompted).await["status"], "sending");
    until(async || {
        clock.advance(Duration::from_secs(1));
        run(&api, &id, &prompted).await["status"] == "running"
    })
    .await;
    // An agent at work keeps it up.
    for _ in 0..5 {
        clock.advance(Duration::from_secs(50));
        tokio::task::yield_now().await;
        assert_eq!(api.state(&id).await, "running");
    }
    let (queued, _) = prompt(&api, &id, json!({"prompt": "y"})).await;
    api.post(&format!("/sandboxes/{id}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    for prompt in [&prompted, &queued] {
        assert_eq!(run(&api, &id, prompt).await["status"], "interrupted");
    }
    api.wait_for(&id, "archived").await;
    server.world().set_boot_delay(Duration::ZERO);
    api.post(&format!("/sandboxes/{id}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    api.wait_for(&id, "ready").await;
    // Its conversations are still there, and nothing of them runs.
    assert_eq!(events(&api, &id, "&type=prompt").await.len(), 2);
    let (last, _) = prompt(&api, &id, json!({"prompt": "z"})).await;
    gate.add_permits(1);
    ends(&api, &id, &last, "finished").await;
    // Then it may stop by itself.
    until(async || api.state(&id).await == "idle").await;
    clock.advance(Duration::from_secs(61));
    api.wait_for(&id, "archived").await;

    server.world().set_machines(Some(0));
    let created = api.post("/sandboxes", json!({})).await.succeeds(202, "sandbox.created");
    let none = created["sandbox"]["id"].as_str().expect("an id").to_owned();
    let (lost, _) = prompt(&api, &none, json!({"prompt": "x"})).await;
    assert_eq!(run(&api, &none, &lost).await["status"], "sending");
}

#[tokio::test]
async fn files_and_citations_of_a_person_come_with_the_prompt() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    server.set_agent(|turn| async move {
        let (files, cited) = (turn.attachments(), turn.citations());
        let text = String::from_utf8_lossy(&files[0].content).into_owned();
        turn.tool("look_up", json!({"for": cited[0].text}), "found", false).await;
        turn.event("compaction_complete", json!({"tokens": 5})).await;
        turn.event("no kind", json!({})).await;
        turn.say(format!("{} says {text}", files[0].filename)).await;
        Ok(())
    });
    let asked = PersonPrompt::new("read this")
        .attach(Attachment::new("note.txt", "text/plain", "hi"))
        .cite(Citation::new("e1", "response", "agent", "as I said"));
    let prompted = server.world().prompt(&id, asked).expect("prompted");
    ends(&api, &id, &prompted, "finished").await;
    let events = events(&api, &id, "").await;
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().expect("a kind")).collect();
    assert_eq!(kinds, ["response", "compaction_complete", "response", "prompt"]);
    assert_eq!(events[0]["data"]["tools"][0]["use"]["input"], json!({"for": "as I said"}));
    assert_eq!(
        (&events[1]["data"], &events[2]["data"]["content"]),
        (&json!({"tokens": 5}), &json!("note.txt says hi"))
    );
    let data = &events[3]["data"];
    assert_eq!(
        data["attachments"],
        json!([{"filename": "note.txt", "mimeType": "text/plain", "base64Data": "aGk="}])
    );
    let cited = json!([{"eventId": "e1", "type": "response", "author": "agent", "text": "as I said"}]);
    assert_eq!(data["citations"], cited);
    let refused = server.world().prompt(&id, PersonPrompt::new("x").conversation("none")).unwrap_err();
    assert!(refused.to_string().contains("not_found"), "{refused}");
}

#[tokio::test]
async fn foreign_sandboxes_and_prompts_are_not_there() {
    let server = MockServer::builder().api_key("sbx_live_one").start().expect("a server");
    let world = "[[accounts]]\nlogin = \"bob\"\n[[keys]]\nsecret = \"sbx_live_bob\"\naccount = \"bob\"\n";
    let seed = sandboxer_mock_server::WorldSeed::from_toml(world).expect("a world");
    server.world().plant(&seed).expect("planted");
    let (api, bob) = (Api::of(&server), Api::with_key(&server.url(), "sbx_live_bob"));
    let (id, his) = (api.sandbox(json!({})).await, bob.sandbox(json!({})).await);
    let (prompted, conversation) = prompt(&api, &id, json!({"prompt": "x"})).await;
    let (his_prompt, _) = prompt(&bob, &his, json!({"prompt": "x"})).await;
    for path in ["events", "conversations", &format!("prompts/{prompted}")] {
        bob.get(&format!("/sandboxes/{id}/{path}")).await.fails(404, "not_found");
    }
    for (path, body) in
        [("prompt", json!({"prompt": "x"})), ("steer", json!({"message": "x"})), ("interrupt", json!({}))]
    {
        bob.post(&format!("/sandboxes/{id}/{path}"), body).await.fails(404, "not_found");
    }
    api.get(&format!("/sandboxes/{id}/prompts/{his_prompt}")).await.fails(404, "not_found");
    let mixed = json!({"prompt": "x", "conversationId": conversation});
    bob.post(&format!("/sandboxes/{his}/prompt"), mixed).await.fails(404, "not_found");
    assert!(events(&bob, &his, &format!("&conversation={conversation}")).await.is_empty());
}

#[tokio::test]
async fn what_was_prompted_outlives_the_server() {
    let folder = tempfile::tempdir().expect("a folder");
    let start =
        || MockServer::builder().api_key("sbx_live_kept").data_dir(folder.path()).start().expect("a server");
    let server = start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let (done, conversation) = prompt(&api, &id, json!({"prompt": "hello"})).await;
    ends(&api, &id, &done, "finished").await;
    let _gate = held(&server);
    let (runs, _) = prompt(&api, &id, json!({"prompt": "work"})).await;
    is(&api, &id, &runs, "running").await;
    let (waits, _) = prompt(&api, &id, json!({"prompt": "```sh\necho later\n```"})).await;
    let before = events(&api, &id, "&type=response").await;
    server.shutdown();

    let server = start();
    let api = Api::of(&server);
    assert_eq!(run(&api, &id, &runs).await["status"], "interrupted");
    // What had not begun begins now.
    ends(&api, &id, &waits, "finished").await;
    until(async || api.state(&id).await == "idle").await;
    let after = events(&api, &id, "&type=response").await;
    assert_eq!(after[0], before[0]);
    assert!(after.iter().all(|event| event["data"].get("is_streaming").is_none()), "{after:?}");
    let listed = api.get(&format!("/sandboxes/{id}/conversations")).await.body;
    assert_eq!(listed["conversations"][0]["id"], conversation);
    assert_eq!(
        (&listed["conversations"][0]["prompts"], &listed["conversations"][0]["running"]),
        (&json!(3), &json!(false))
    );
}

#[tokio::test]
async fn the_catalogue_names_every_agent() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let catalogue = api.get("/provider-models").await.succeeds(200, "provider.models");
    let providers = catalogue["providers"].as_array().expect("a list");
    let names: Vec<&str> = providers.iter().map(|it| it["provider"].as_str().expect("a name")).collect();
    assert_eq!(names, ["claude-code", "codex", "pi", "opencode", "prime-agent", "kimi", "mistral"]);
    for provider in providers {
        let models = provider["models"].as_array().expect("models");
        assert!(models.iter().any(|model| model["id"] == provider["defaultModel"]), "{provider}");
        assert!(models.iter().all(|model| model["fastMode"].is_boolean()), "{provider}");
    }
}

#[tokio::test]
async fn what_ran_in_a_killed_server_has_failed_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().to_str().expect("a path").to_owned();
    let arguments = ["--api-key", "k", "--runner", "process", "--data-dir", data.as_str()];
    let (mut child, url) = binary::start(&arguments);
    let api = Api::with_key(&url, "k");
    let id = api.sandbox(json!({})).await;
    // Of a killed server of this kind commands live on: this one not for long.
    let (runs, conversation) = prompt(&api, &id, json!({"prompt": "```sh\nsleep 30\n```"})).await;
    is(&api, &id, &runs, "running").await;
    let (waits, _) = prompt(&api, &id, json!({"prompt": "hello"})).await;
    child.kill().expect("killed");
    child.wait().expect("gone");

    let (_child, url) = binary::start(&arguments);
    let api = Api::with_key(&url, "k");
    ends(&api, &id, &runs, "failed").await;
    ends(&api, &id, &waits, "finished").await;
    until(async || api.state(&id).await == "idle").await;
    let events = events(&api, &id, "").await;
    let failed = events.iter().find(|event| event["id"] == runs).expect("its event");
    assert_eq!(failed["data"]["error"], "the server was ended while it ran");
    assert_eq!(failed["conversationId"], conversation);
    for event in &events {
        assert!(event["data"].get("is_streaming").is_none(), "{event}");
    }
}
