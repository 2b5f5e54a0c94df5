//! Agents end to end: prompts, what they do in the sandbox, and their events in every way there is to follow them, with
//! both twins.

use std::{thread, time::Duration};

use sandboxer::{
    CallOptions, Create, ErrorKind, Event, EventMode, EventOptions, Prompt,
    models::{PromptRunStatus, SteerMode},
};
use sandboxer_blocking::Sandboxer;
use sandboxer_mock_server::{MockServer, faults::End};

const MODES: [EventMode; 3] = [EventMode::Auto, EventMode::Poll, EventMode::Sse];

/// Soon, so that polling costs no time.
const INTERVAL: Duration = Duration::from_millis(100);

/// A task that leaves a file and says what is in it.
const TASK: &str = "Please run this:\n```sh\necho hello > made; cat made\n```\n";

fn options(mode: EventMode) -> EventOptions {
    EventOptions::new().mode(mode).poll_interval(INTERVAL)
}

/// The last content of each event, by the order in which the events ended.
fn settled(events: Vec<Event>) -> Vec<Event> {
    let mut last: Vec<Event> = Vec::new();
    for event in events {
        last.retain(|earlier| earlier.id() != event.id());
        last.push(event);
    }
    last
}

#[track_caller]
fn check(events: Vec<Event>, prompt: &str, mode: EventMode) {
    assert!(events.iter().all(|event| event.task_id() == Some(prompt)), "{mode:?}: {events:?}");
    let events = settled(events);
    assert!(events.iter().all(|event| !event.is_streaming()), "{mode:?}: {events:?}");
    let ended = events.iter().find_map(Event::as_prompt).expect("the prompt");
    assert_eq!((ended.prompt, ended.status), (TASK, "finished"), "{mode:?}");
    let tools: Vec<_> =
        events.iter().filter_map(Event::as_response).flat_map(|response| response.tools.to_vec()).collect();
    assert_eq!(tools.len(), 1, "{mode:?}");
    assert_eq!(tools[0]["use"]["input"]["command"], "echo hello > made; cat made\n");
    assert_eq!(
        (&tools[0]["result"]["content"], &tools[0]["result"]["is_error"]),
        (&"hello\n".into(), &false.into())
    );
}

#[tokio::test]
async fn a_task_is_done_and_told_in_every_mode() {
    let server = MockServer::start();
    let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
    for mode in MODES {
        let run = sandbox.prompt(Prompt::new(TASK).new_conversation()).await.expect("queued");
        let mut following = run.events_with(options(mode)).expect("events");
        let mut events = Vec::new();
        while let Some(event) = following.next().await {
            events.push(event.expect("an event"));
        }
        check(events, run.prompt_id(), mode);
        assert_eq!(run.wait().await.expect("its end").status, PromptRunStatus::Finished);
        let text = run.text().await.expect("an answer");
        assert!(text.contains("I ran 1 block, 0 of which failed.") && text.contains("hello"), "{text}");
    }
    assert_eq!(sandbox.files().read("made").await.expect("the file"), "hello\n");
    let conversations = sandbox.conversations().await.expect("a list");
    assert_eq!((conversations.len(), conversations[0].current), (3, true));
}

#[test]
fn the_blocking_twin_follows_it_too() {
    let server = MockServer::start();
    let client = Sandboxer::from_async(server.client());
    let sandbox = client.create(Create::new()).expect("a sandbox");
    for mode in MODES {
        let run = sandbox.prompt(TASK).expect("queued");
        let events = run.events_with(options(mode)).expect("events");
        let events: Vec<Event> = events.map(|event| event.expect("an event")).collect();
        check(events, run.prompt_id(), mode);
        assert!(run.text().expect("an answer").contains("hello"));
    }
    assert_eq!(sandbox.conversations().expect("a list").len(), 1);
}

#[tokio::test]
async fn a_stream_goes_on_after_its_connection_was_cut() {
    let server = MockServer::start();
    for mode in [EventMode::Auto, EventMode::Sse] {
        let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
        let mut events = sandbox.events(options(mode)).expect("events");
        let first = sandbox.prompt("one").await.expect("queued");
        let ended = |event: &Event, id: &str| {
            event.id() == Some(id) && event.as_prompt().is_some_and(|prompt| prompt.is_done())
        };
        loop {
            let event = events.next().await.expect("goes on").expect("an event");
            if ended(&event, first.prompt_id()) {
                break;
            }
        }
        server.wire().end_all(End::Reset);
        let second = sandbox.prompt("two").await.expect("queued");
        loop {
            let event = events.next().await.expect("goes on").expect("an event");
            assert_ne!(event.task_id(), Some(first.prompt_id()), "nothing comes twice: {event:?}");
            if ended(&event, second.prompt_id()) {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_running_turn_is_spoken_to_and_stopped() {
    let server = MockServer::start();
    server.set_agent(|turn| async move {
        turn.say("ready").await;
        let message = turn.next_steer().await;
        turn.end_response();
        turn.say(format!("{}, but {message}", turn.prompt())).await;
        if message == "stay" {
            std::future::pending::<()>().await;
        }
        Ok(())
    });
    let sandbox = server.client().create(Create::new()).await.expect("a sandbox");
    let begun = async |run: &sandboxer::AsyncPromptRun| {
        while run.status().await.expect("a status").status != PromptRunStatus::Running {
            tokio::task::yield_now().await;
        }
    };
    let run = sandbox.prompt(Prompt::new("go").provider("claude-code")).await.expect("queued");
    begun(&run).await;
    let steered = run.steer("slowly").await.expect("delivered");
    assert_eq!((steered.native, steered.mode), (true, Some(SteerMode::Native)));
    assert_eq!(run.text().await.expect("an answer"), "go, but slowly");
    let late = run.steer("too late").await.expect_err("it has ended");
    assert_eq!((late.kind(), late.code()), (ErrorKind::Conflict, "no_running_turn"));
    let details = late.details().expect("details");
    assert_eq!(
        (&details["reason"], &details["lastTurn"]["status"]),
        (&"turn_ended".into(), &"finished".into())
    );

    let run = sandbox.prompt("go").await.expect("queued");
    begun(&run).await;
    run.steer("stay").await.expect("delivered");
    let still = run.wait_for(Duration::from_millis(50)).await.expect_err("it runs");
    assert_eq!(still.kind(), ErrorKind::WaitTimeout);
    let stopped = run.interrupt().await.expect("stopped");
    assert_eq!(stopped.conversation_id.as_deref(), run.conversation_id());
    let error = run.text().await.expect_err("no answer");
    assert_eq!((error.kind(), error.code()), (ErrorKind::CommandFailed, "prompt_interrupted"));
}

#[test]
fn a_follower_of_the_blocking_twin_hears_of_a_failure() {
    let server = MockServer::start();
    server.set_agent(|_| async { Err("no idea".into()) });
    let client = Sandboxer::from_async(server.client());
    let sandbox = client.create(Create::new()).expect("a sandbox");
    let run = sandbox.prompt("think").expect("queued");
    let follower = thread::spawn({
        let sandbox = sandbox.with(CallOptions::new());
        let id = run.prompt_id().to_owned();
        move || sandbox.prompt_run(id).events().expect("events").last().expect("an event").expect("fine")
    });
    let error = run.text().expect_err("it failed");
    assert_eq!((error.code(), error.message()), ("prompt_failed", "the prompt failed: no idea"));
    let last = follower.join().expect("the follower");
    assert_eq!(last.as_prompt().expect("the prompt").error, Some("no idea"));
}
