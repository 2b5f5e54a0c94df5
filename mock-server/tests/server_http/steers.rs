//! Messages into turns, and turns that are stopped.

use std::{sync::Arc, time::Duration};

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, RunnerKind, Scenario};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    http::{Api, until},
    prompts::{ends, events, held, is, prompt, run},
};

async fn steer(api: &Api, id: &str, body: Value) -> Value {
    api.post(&format!("/sandboxes/{id}/steer"), body).await.succeeds(200, "prompt.steered")
}

#[tokio::test]
async fn an_interrupted_turn_ends_with_everything_it_runs() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let (one, first) = prompt(&api, &id, json!({"prompt": "```sh\nsleep 86203\n```"})).await;
    let (two, _) = prompt(&api, &id, json!({"prompt": "```sh\nsleep 86204\n```", "new": true})).await;
    let (waits, _) = prompt(&api, &id, json!({"prompt": "later", "conversationId": first})).await;
    let sleeps = async |seconds: u32| {
        let found = api.exec(&id, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '").await;
        found["stdout"].as_str().expect("text").contains(&format!("sleep {seconds} "))
    };
    until(async || sleeps(86203).await && sleeps(86204).await).await;
    api.post(&format!("/sandboxes/{id}/interrupt?conversation=none"), json!({}))
        .await
        .fails(404, "not_found");
    let path = format!("/sandboxes/{id}/interrupt?conversation={first}");
    let answer = api.post(&path, json!({})).await.succeeds(200, "sandbox.interrupted");
    assert_eq!((&answer["status"], &answer["conversationId"]), (&json!("interrupted"), &json!(first)));
    assert_eq!(run(&api, &id, &one).await["status"], "interrupted");
    assert_eq!(run(&api, &id, &waits).await["status"], "interrupted", "what waits is not begun");
    assert!(!sleeps(86203).await && sleeps(86204).await);
    assert_eq!(
        (run(&api, &id, &two).await["status"].as_str(), api.state(&id).await.as_str()),
        (Some("running"), "running")
    );
    api.post(&format!("/sandboxes/{id}/interrupt"), json!({})).await.succeeds(200, "sandbox.interrupted");
    assert_eq!(run(&api, &id, &two).await["status"], "interrupted");
    assert!(!sleeps(86204).await);
    assert_eq!(api.state(&id).await, "idle");
    for event in events(&api, &id, "").await {
        assert!(event["data"].get("is_streaming").is_none(), "{event}");
        for tool in event["data"]["tools"].as_array().into_iter().flatten() {
            assert_eq!(tool["result"]["is_error"], true);
        }
    }
    // Once more changes nothing.
    api.post(&format!("/sandboxes/{id}/interrupt"), json!({})).await.succeeds(200, "sandbox.interrupted");
}

#[tokio::test]
async fn an_agent_sees_that_it_is_interrupted() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let (seen, begun) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (saw, begins) = (seen.clone(), begun.clone());
    server.set_agent(move |turn| {
        let (saw, begins) = (saw.clone(), begins.clone());
        async move {
            begins.notify_one();
            turn.interrupted().await;
            assert!(turn.is_interrupted());
            turn.say("too late").await;
            saw.notify_one();
            Ok(())
        }
    });
    let (prompted, _) = prompt(&api, &id, json!({"prompt": "x"})).await;
    begun.notified().await;
    api.post(&format!("/sandboxes/{id}/interrupt"), json!({})).await.succeeds(200, "sandbox.interrupted");
    seen.notified().await;
    assert_eq!(run(&api, &id, &prompted).await["status"], "interrupted");
    assert_eq!(events(&api, &id, "&type=response").await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_message_goes_into_the_turn_in_every_way_there_is() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let nothing = api.post(&format!("/sandboxes/{id}/steer"), json!({"message": "x"})).await;
    assert_eq!(nothing.fails(409, "no_running_turn")["reason"], "no_turn");
    let steer_fails = async |body: Value| api.post(&format!("/sandboxes/{id}/steer"), body).await;
    steer_fails(json!({"message": ""})).await.fails(400, "invalid_request");
    steer_fails(json!({"message": "x", "conversation": "none"})).await.fails(404, "not_found");
    let mode_of = async |steered: &Value| {
        let events = events(&api, &id, "&type=steer").await;
        let event =
            events.into_iter().find(|event| event["taskId"] == steered["promptId"]).expect("its event");
        event["data"]["mode"].as_str().expect("a mode").to_owned()
    };

    // Native: the agent takes it while it works.
    server.set_agent(|turn| async move {
        assert!(!turn.is_continuation());
        turn.say("waiting").await;
        let message = turn.next_steer().await;
        turn.end_response();
        turn.say(format!("{} then {message}", turn.prompt())).await;
        Ok(())
    });
    let (prompted, conversation) = prompt(&api, &id, json!({"prompt": "one", "provider": "pi"})).await;
    is(&api, &id, &prompted, "running").await;
    let native = steer(&api, &id, json!({"message": "two"})).await;
    assert_eq!((&native["native"], &native["mode"]), (&json!(true), &json!("native")));
    assert_eq!(native["conversationId"], conversation);
    ends(&api, &id, &prompted, "finished").await;
    assert_eq!(mode_of(&native).await, "native");
    assert_eq!(
        events(&api, &id, "&type=response").await.last().expect("it")["data"]["content"],
        "one then two"
    );
    let record = native["promptId"].as_str().expect("an id");
    api.get(&format!("/sandboxes/{id}/prompts/{record}")).await.fails(404, "not_found");

    // Native-continued: nobody had taken it when the agent came to its end.
    let gate = held(&server);
    let (prompted, _) = prompt(&api, &id, json!({"prompt": "three"})).await;
    is(&api, &id, &prompted, "running").await;
    let continued = steer(&api, &id, json!({"message": "four", "conversation": conversation})).await;
    gate.add_permits(2);
    ends(&api, &id, &prompted, "finished").await;
    assert_eq!(mode_of(&continued).await, "native-continued");
    assert_eq!(
        events(&api, &id, "&type=response").await.last().expect("it")["data"]["content"],
        "working on: four"
    );

    // Fallback: the agent is interrupted and goes on with it.
    let (prompted, other) =
        prompt(&api, &id, json!({"prompt": "five", "provider": "opencode", "new": true})).await;
    is(&api, &id, &prompted, "running").await;
    let fallback = steer(&api, &id, json!({"message": "six"})).await;
    assert_eq!((&fallback["native"], &fallback["mode"]), (&json!(false), &json!("fallback")));
    assert_eq!(fallback["conversationId"], other);
    until(async || {
        let last = events(&api, &id, "&type=response").await.pop();
        last.is_some_and(|event| event["data"]["content"] == "working on: six")
    })
    .await;
    gate.add_permits(1);
    ends(&api, &id, &prompted, "finished").await;

    // Ended: refused with what became of it, or late.
    let ended = steer_fails(json!({"message": "seven"})).await;
    let details = ended.fails(409, "no_running_turn");
    assert_eq!(
        (&details["reason"], &details["lastTurn"]["status"]),
        (&json!("turn_ended"), &json!("finished"))
    );
    let seed = json!({"late_steer_ms": 600_000});
    server.world().set_agents(serde_json::from_value(seed).expect("a seed")).expect("set");
    let late = steer(&api, &id, json!({"message": "eight"})).await;
    assert_eq!((&late["native"], &late["mode"]), (&json!(false), &json!("late")));
    let record = late["promptId"].as_str().expect("an id");
    api.get(&format!("/sandboxes/{id}/prompts/{record}")).await.fails(404, "not_found");
    gate.add_permits(1);
    until(async || {
        let last = events(&api, &id, "&type=response").await.pop();
        last.is_some_and(|event| {
            let is_whole = event["data"].get("is_streaming").is_none();
            event["taskId"] == record && event["data"]["content"] == "working on: eight" && is_whole
        })
    })
    .await;
}

#[tokio::test]
async fn the_query_may_name_the_conversation_too() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let gate = held(&server);
    let (first, one) = prompt(&api, &id, json!({"prompt": "one"})).await;
    is(&api, &id, &first, "running").await;
    let (second, two) = prompt(&api, &id, json!({"prompt": "two", "new": true})).await;
    is(&api, &id, &second, "running").await;
    let path = |named: &str| format!("/sandboxes/{id}/steer?conversation={named}");
    let into = async |named: &str, body: Value| {
        let answer = api.post(&path(named), body).await.succeeds(200, "prompt.steered");
        answer["conversationId"].clone()
    };
    assert_eq!(into(&one, json!({"message": "x"})).await, one);
    assert_eq!(into(&two, json!({"message": "x"})).await, two);
    // What the body names counts first.
    assert_eq!(into("none", json!({"message": "x", "conversation": one})).await, one);
    for unknown in ["none", ""] {
        api.post(&path(unknown), json!({"message": "x"})).await.fails(404, "not_found");
    }
    gate.add_permits(10);
}

#[tokio::test]
async fn the_auto_stop_is_put_off_by_agents_at_work_and_by_nothing_else() {
    let clock = ManualClock::new();
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({"ttlSeconds": 3600})).await;
    let path = format!("/sandboxes/{id}/interrupt");
    let stops_at =
        async || api.get(&format!("/sandboxes/{id}")).await.body["sandbox"]["archiveAfter"].clone();
    clock.advance(Duration::from_secs(600));
    api.post(&path, json!({})).await.succeeds(200, "sandbox.interrupted");
    assert_eq!(
        (api.state(&id).await.as_str(), stops_at().await),
        ("ready", json!("2026-01-01T01:00:00.000Z"))
    );
    let _gate = held(&server);
    let (prompted, _) = prompt(&api, &id, json!({"prompt": "x"})).await;
    is(&api, &id, &prompted, "running").await;
    assert_eq!(stops_at().await, "2026-01-01T01:10:00.000Z");
    clock.advance(Duration::from_secs(60));
    api.post(&path, json!({})).await.succeeds(200, "sandbox.interrupted");
    assert_eq!(
        (api.state(&id).await.as_str(), stops_at().await),
        ("idle", json!("2026-01-01T01:11:00.000Z"))
    );
    clock.advance(Duration::from_secs(60));
    api.post(&path, json!({})).await.succeeds(200, "sandbox.interrupted");
    assert_eq!(stops_at().await, "2026-01-01T01:11:00.000Z");
}

#[tokio::test]
async fn a_turn_that_waits_or_cannot_be_reached_takes_no_message() {
    let server = MockServer::start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({"type": "small"})).await;
    let gate = held(&server);
    let (first, _) = prompt(&api, &id, json!({"prompt": "one"})).await;
    is(&api, &id, &first, "running").await;
    let (_, second) = prompt(&api, &id, json!({"prompt": "two", "new": true})).await;
    let early =
        api.post(&format!("/sandboxes/{id}/steer"), json!({"message": "x", "conversation": second})).await;
    let details = early.fails(409, "no_running_turn");
    assert_eq!((&details["reason"], &details["retryable"]), (&json!("turn_not_started"), &json!(true)));
    for scenario in [Scenario::Unreachable, Scenario::Restoring, Scenario::BoatRestoring] {
        server.world().set_scenario(scenario, true).expect("set");
        let lost = api.post(&format!("/sandboxes/{id}/steer"), json!({"message": "x"})).await;
        assert_eq!(lost.fails(409, "no_running_turn")["reason"], "delivery_failed");
        server.world().set_scenario(scenario, false).expect("set");
    }
    gate.add_permits(2);
}
