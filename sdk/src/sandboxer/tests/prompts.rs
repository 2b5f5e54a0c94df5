//! Prompts, their runs, conversations and events.

use serde_json::{Value, json};

use super::service::{Reply, Request, Service, failure};
use crate::{
    AsyncPromptRun, AsyncSandbox, Error, ErrorKind, EventMode, EventOptions, Operation, Prompt, Result,
};

fn queued(conversation: Option<&str>) -> Reply {
    Reply::Json(
        202,
        json!({"ok": true, "type": "prompt.queued", "id": "bx_1", "promptId": "p1", "status": "queued",
        "conversationId": conversation, "provider": "codex"}),
    )
}

fn run(status: &str, conversation: Option<&str>) -> Reply {
    let done = matches!(status, "finished" | "failed" | "interrupted");
    Reply::Json(
        200,
        json!({"ok": true, "type": "prompt.run", "id": "bx_1", "promptRun": {"id": "p1", "promptId": "p1",
        "status": status, "done": done, "conversationId": conversation, "createdAt": "2026-01-01T00:10:00Z"}}),
    )
}

/// 2026-01-01T00:10:00Z, when the prompt of [`run`] was made.
const MADE: i64 = 1_767_226_200_000;

fn page(events: &[Value], next: Option<&str>) -> Reply {
    let info = json!({"nextCursor": next, "hasMore": next.is_some(), "limit": 50});
    Reply::Json(
        200,
        json!({"ok": true, "type": "events.list", "id": "bx_1", "events": events, "pageInfo": info}),
    )
}

fn response(id: &str, task: &str, data: Value) -> Value {
    json!({"id": id, "type": "response", "timestamp": MADE + 1, "taskId": task, "conversationId": "c1", "data": data})
}

fn prompt_event(id: &str, timestamp: i64, data: Value) -> Value {
    json!({"id": id, "type": "prompt", "timestamp": timestamp, "taskId": id, "conversationId": "c1", "data": data})
}

/// A service whose one prompt has this status, and these events, newest first.
fn answering(status: &'static str, events: Vec<Value>) -> Service {
    Service::start(move |request, _| match request.call.as_str() {
        "GET /sandboxes/bx_1/prompts/p1" => run(status, Some("c1")),
        _ => page(&events, None),
    })
}

fn handle(service: &Service) -> AsyncSandbox {
    service.client().sandbox("bx_1")
}

fn own(service: &Service) -> AsyncPromptRun {
    handle(service).prompt_run("p1")
}

fn query(request: &Request) -> Vec<(String, String)> {
    let path = request.call.split(' ').nth(1).unwrap_or_default();
    let url = url::Url::parse(&format!("http://x{path}")).unwrap();
    let mut pairs: Vec<_> = url.query_pairs().map(|(name, value)| (name.into(), value.into())).collect();
    pairs.sort();
    pairs
}

fn asks_for_stream(request: &Request) -> bool {
    request.header("accept").is_some_and(|accept| accept.contains("text/event-stream"))
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn every_option_of_a_prompt_is_sent() {
    let service = Service::start(|_, _| queued(Some("c1")));
    let sandbox = handle(&service);
    let prompt = Prompt::new("do it").provider("claude-code").model("m").reasoning_effort("high").fast(false);
    let run = sandbox.prompt(prompt.clone().conversation("c1")).await.unwrap();
    assert_eq!((run.prompt_id(), run.conversation_id()), ("p1", Some("c1")));
    assert_eq!(run.queued().unwrap().provider, "codex");
    sandbox.prompt(prompt.new_conversation()).await.unwrap();
    sandbox.prompt("plain").await.unwrap();
    let common = json!({"prompt": "do it", "provider": "claude-code", "model": "m", "reasoningEffort": "high",
        "fast": false});
    let with = |name: &str, value: Value| {
        let mut body = common.clone();
        body[name] = value;
        body
    };
    let bodies: Vec<Value> = service.requests().into_iter().map(|request| request.body).collect();
    let expected =
        [with("conversationId", json!("c1")), with("new", json!(true)), json!({"prompt": "plain"})];
    assert_eq!(bodies, expected);
    assert!(service.calls().iter().all(|call| call == "POST /sandboxes/bx_1/prompt"));
}

fn refused<T: std::fmt::Debug>(answer: Result<T>) {
    let error: Error = answer.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}

#[tokio::test]
async fn bad_input_is_refused_and_nothing_is_sent() {
    let service = Service::start(|_, _| failure(500, "unexpected"));
    let sandbox = handle(&service);
    let long = "x".repeat(1_048_577);
    for prompt in [
        Prompt::new(""),
        Prompt::new("a\0b"),
        Prompt::new(&*long),
        Prompt::new("x").provider(" "),
        Prompt::new("x").model(""),
        Prompt::new("x").reasoning_effort(""),
        Prompt::new("x").conversation(" "),
        Prompt::new("x").conversation("c1").new_conversation(),
    ] {
        refused(sandbox.prompt(prompt).await);
    }
    refused(sandbox.steer("", None).await);
    refused(sandbox.steer("a\0", Some("c1")).await);
    refused(sandbox.steer(&*long, None).await);
    refused(sandbox.steer("x", Some("")).await);
    refused(sandbox.interrupt("").await);
    refused(sandbox.interrupt("  ").await);
    refused(sandbox.prompt_run("..").status().await);
    refused(sandbox.prompt_run("").wait().await);
    refused(sandbox.events(EventOptions::new().kind("")));
    refused(sandbox.prompt_run("p1").events_with(EventOptions::new().cursor("")));
    for bad in ["", "..", "a\\b"] {
        let sandbox = service.client().sandbox(bad);
        refused(sandbox.prompt("x").await);
        refused(sandbox.conversations().await);
        refused(sandbox.interrupt_all().await);
        for mode in [EventMode::Poll, EventMode::Sse] {
            refused(sandbox.events(EventOptions::new().mode(mode)).unwrap().next().await.unwrap());
        }
    }
    assert_eq!(service.calls(), Vec::<String>::new());
}

#[tokio::test]
async fn conversations_steering_and_interrupting_are_sent_as_they_are_meant() {
    let service = Service::start(|request, _| {
        match request.call.split(['?', ' ']).nth(1).unwrap_or_default() {
            "/sandboxes/bx_1/conversations" => Reply::Json(
                200,
                json!({"ok": true, "type": "conversation.list",
            "id": "bx_1", "conversations": [{"id": "c2", "current": true, "new": 1}, {"id": "c1"}]}),
            ),
            "/sandboxes/bx_1/steer" => Reply::Json(
                200,
                json!({"ok": true, "type": "prompt.steered", "id": "bx_1",
            "conversationId": "c1", "promptId": "s1", "native": false, "mode": "new-mode", "status": "steered"}),
            ),
            "/provider-models" => Reply::Json(
                200,
                json!({"ok": true, "type": "provider.models",
            "providers": [{"provider": "new-agent", "models": []}], "more": 1}),
            ),
            _ => Reply::Json(
                200,
                json!({"ok": true, "type": "sandbox.interrupted", "id": "bx_1",
            "status": "interrupted"}),
            ),
        }
    });
    let (client, sandbox) = (service.client(), handle(&service));
    let conversations = sandbox.conversations().await.unwrap();
    assert_eq!(conversations.iter().map(|known| &*known.id).collect::<Vec<_>>(), ["c2", "c1"]);
    let steered = sandbox.steer("left", Some("c1")).await.unwrap();
    assert_eq!((&*steered.prompt_id, steered.mode.unwrap().as_str()), ("s1", "new-mode"));
    sandbox.steer("right", None).await.unwrap();
    sandbox.interrupt("c/1").await.unwrap();
    sandbox.interrupt_all().await.unwrap();
    assert_eq!(client.provider_models().await.unwrap().providers[0].provider.as_str(), "new-agent");
    assert_eq!(
        service.calls(),
        [
            "GET /sandboxes/bx_1/conversations",
            "POST /sandboxes/bx_1/steer",
            "POST /sandboxes/bx_1/steer",
            "POST /sandboxes/bx_1/interrupt?conversation=c%2F1",
            "POST /sandboxes/bx_1/interrupt",
            "GET /provider-models",
        ]
    );
    let requests = service.requests();
    assert_eq!(requests[1].body, json!({"message": "left", "conversation": "c1"}));
    assert_eq!(requests[2].body, json!({"message": "right"}));
}

#[tokio::test]
async fn a_run_touches_its_own_conversation_alone() {
    let service = Service::start(|request, _| match request.call.as_str() {
        "POST /sandboxes/bx_1/prompt" => queued(Some("c1")),
        "GET /sandboxes/bx_1/prompts/p1" => run("running", Some("c9")),
        "GET /sandboxes/bx_1/prompts/p2" => run("running", None),
        "POST /sandboxes/bx_1/steer" => Reply::Json(
            200,
            json!({"ok": true, "type": "prompt.steered", "id": "bx_1",
            "conversationId": "c1", "promptId": "s1", "native": true, "mode": "native", "status": "steered"}),
        ),
        _ => Reply::Json(
            200,
            json!({"ok": true, "type": "sandbox.interrupted", "id": "bx_1",
            "status": "interrupted"}),
        ),
    });
    let sandbox = handle(&service);
    let known = sandbox.prompt("x").await.unwrap();
    known.interrupt().await.unwrap();
    known.steer("on").await.unwrap();
    sandbox.prompt_run("p1").interrupt().await.unwrap();
    let error = sandbox.prompt_run("p2").interrupt().await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::InvalidInput, "conversation_unknown"));
    assert_eq!(error.sandbox_id(), Some("bx_1"));
    assert_eq!(sandbox.prompt_run("p2").steer("on").await.unwrap_err().code(), "conversation_unknown");
    assert_eq!(
        service.calls(),
        [
            "POST /sandboxes/bx_1/prompt",
            "POST /sandboxes/bx_1/interrupt?conversation=c1",
            "POST /sandboxes/bx_1/steer",
            "GET /sandboxes/bx_1/prompts/p1",
            "POST /sandboxes/bx_1/interrupt?conversation=c9",
            "GET /sandboxes/bx_1/prompts/p2",
            "GET /sandboxes/bx_1/prompts/p2",
        ]
    );
    assert_eq!(service.requests()[2].body, json!({"message": "on", "conversation": "c1"}));
}

#[tokio::test]
async fn the_text_is_the_final_answer_of_this_run_alone() {
    let service = answering(
        "finished",
        vec![
            response("r9", "p2", json!({"content": "another's"})),
            response("r6", "p1", json!({"content": "taken back", "is_reverted": true})),
            response("r5-tools", "p1", json!({"content": "", "tools": [{"use": {"name": "bash"}}]})),
            response("r5", "p1", json!({"content": "with tools", "tools": [{"use": {"name": "bash"}}]})),
            response("r4", "p1", json!({"content": "final"})),
            response("r4", "p1", json!({"content": "fin", "is_streaming": true})),
            response("r3", "p1", json!({"content": "let me look"})),
        ],
    );
    assert_eq!(own(&service).text().await.unwrap(), "final");
    let requests = service.requests();
    assert_eq!(requests.len(), 2);
    let expected =
        pairs(&[("conversation", "c1"), ("limit", "50"), ("sort", "desc"), ("type", "prompt,response")]);
    assert_eq!(query(&requests[1]), expected);
}

#[tokio::test]
async fn an_answer_that_was_taken_back_does_not_return_with_an_older_content() {
    let service = answering(
        "finished",
        vec![
            response("r2", "p1", json!({"content": "bad", "is_reverted": true})),
            response("r2", "p1", json!({"content": "bad"})),
            prompt_event("p1", MADE, json!({"prompt": "x", "status": "finished"})),
            response("r1", "p1", json!({"content": "from before it was asked"})),
        ],
    );
    assert_eq!(own(&service).text().await.unwrap(), "");
}

#[tokio::test]
async fn no_more_of_the_history_is_read_than_needed() {
    let service = Service::start(|request, _| match request.call.as_str() {
        "GET /sandboxes/bx_1/prompts/p1" => run("finished", Some("c1")),
        call if call.contains("cursor=a") => {
            page(&[response("r1", "p1", json!({"content": "found"}))], Some("b"))
        }
        _ => page(&[response("r9", "p2", json!({"content": "x"}))], Some("a")),
    });
    assert_eq!(own(&service).text().await.unwrap(), "found");
    assert_eq!(service.calls().len(), 3);

    // Without an answer it ends at the prompt, or at what is older than it.
    for last in [prompt_event("p1", MADE, json!({})), prompt_event("p0", MADE - 60_001, json!({}))] {
        let service = Service::start(move |request, _| match request.call.as_str() {
            "GET /sandboxes/bx_1/prompts/p1" => run("finished", Some("c1")),
            _ => page(std::slice::from_ref(&last), Some("a")),
        });
        assert_eq!(own(&service).text().await.unwrap(), "");
        assert_eq!(service.calls().len(), 2);
    }

    // A circle of pages is an error.
    let service = Service::start(|request, _| match request.call.as_str() {
        "GET /sandboxes/bx_1/prompts/p1" => run("finished", None),
        _ => page(&[], Some("a")),
    });
    let error = own(&service).text().await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Unexpected, "repeated_cursor"));
    assert!(!service.calls()[1].contains("conversation="));
}

#[tokio::test]
async fn the_text_of_a_run_that_did_not_finish_is_an_error() {
    let events = || {
        vec![
            response("r1", "p1", json!({"content": "half of it"})),
            prompt_event("p1", MADE, json!({"status": "failed", "error": "out of credit"})),
        ]
    };
    let error = own(&answering("failed", events())).text().await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::CommandFailed, "prompt_failed"));
    assert!(error.message().ends_with("failed: out of credit"), "{error}");
    assert_eq!(error.details().unwrap()["status"], "failed");
    let error = own(&answering("interrupted", vec![])).text().await.unwrap_err();
    assert_eq!((error.code(), error.message()), ("prompt_interrupted", "the prompt was interrupted"));

    // It is over, in a way that is not known or that is no end.
    for status in ["cancelled", "queued"] {
        let service = Service::start(move |request, _| match request.call.as_str() {
            "GET /sandboxes/bx_1/prompts/p1" => Reply::Json(
                200,
                json!({"ok": true, "type": "prompt.run", "id": "bx_1",
                "promptRun": {"id": "p1", "promptId": "p1", "status": status, "done": true}}),
            ),
            _ => page(&events(), None),
        });
        let error = own(&service).text().await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::CommandFailed, &*format!("prompt_{status}")));
        assert_eq!(error.details().unwrap()["status"], status);
        assert!(error.message().contains(status), "{error}");
    }

    // The reason cannot be had: the failure is told all the same.
    let service = Service::start(|request, _| match request.call.as_str() {
        "GET /sandboxes/bx_1/prompts/p1" => run("failed", Some("c1")),
        _ => failure(402, "billing_required"),
    });
    assert_eq!(own(&service).text().await.unwrap_err().code(), "prompt_failed");
}

#[tokio::test]
async fn every_option_of_events_is_sent_both_ways() {
    let options =
        || EventOptions::new().kind("prompt").kind("response").conversation("c1").conversation("c2");
    let service = Service::start(|request, _| match asks_for_stream(request) {
        true => Reply::Events(
            "id: n2\ndata: {\"id\":\"r2\",\"type\":\"response\",\"data\":{\"model\":null}}\n\n".into(),
        ),
        false => {
            page(&[json!({"id": "r1", "type": "response", "timestamp": 5, "data": {"model": null}})], None)
        }
    });
    let sandbox = handle(&service);
    let mut pages = sandbox.events(options().mode(EventMode::Poll).cursor("n1")).unwrap();
    let event = pages.next().await.unwrap().unwrap();
    assert_eq!(event.data(), &json!({"model": null}));
    let mut stream = sandbox.events(options().mode(EventMode::Sse).cursor("n1")).unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().id(), Some("r2"));
    assert_eq!(stream.cursor(), Some("n2"));
    let requests = service.requests();
    let filters = [("conversation", "c1,c2"), ("cursor", "n1")];
    assert_eq!(
        query(&requests[0]),
        pairs(&[filters[0], filters[1], ("limit", "100"), ("sort", "asc"), ("type", "prompt,response")])
    );
    assert!(requests[0].header("last-event-id").is_none());
    assert_eq!(
        query(&requests[1]),
        pairs(&[filters[0], filters[1], ("sort", "asc"), ("type", "prompt,response")])
    );
    assert_eq!(requests[1].header("last-event-id"), Some("n1"));
    assert!(requests.iter().all(|request| request.call.starts_with("GET /sandboxes/bx_1/events?")));
}

#[tokio::test]
async fn an_error_of_a_page_says_what_it_was_about() {
    let service = Service::start(|_, _| failure(404, "not_found"));
    let sandbox = service.client().sandbox("b/x");
    let error =
        sandbox.events(EventOptions::new().mode(EventMode::Poll)).unwrap().next().await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::NotFound, Some(Operation::Events)));
    assert_eq!(error.sandbox_id(), Some("b/x"));
    assert!(service.calls()[0].starts_with("GET /sandboxes/b%2Fx/events?"), "{:?}", service.calls());
}
