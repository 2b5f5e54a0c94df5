//! The end of prompts, however it comes.

use serde_json::{Value, json};

use crate::{
    app::App,
    lifecycle,
    reply::ApiError,
    store::{Reader, StoreError, Writer, typed},
    world::{
        events::{self, Event},
        prompts::{self, Prompt, Status},
        sandboxes::{Sandbox, State},
        time::Millis,
    },
};

/// How prompts end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Finished,
    /// With the reason.
    Failed(String),
    Interrupted,
}

impl Ending {
    fn status(&self) -> Status {
        match self {
            Ending::Finished => Status::Finished,
            Ending::Failed(_) => Status::Failed,
            Ending::Interrupted => Status::Interrupted,
        }
    }
}

/// Changes how far a prompt is, in the store and in its event.
pub(super) fn advance(
    tx: &mut dyn Writer,
    prompt: &mut Prompt,
    status: Status,
    error: Option<&str>,
    now: Millis,
) -> Result<(), StoreError> {
    prompt.status = status;
    prompt.error = error.map(str::to_owned);
    typed::put(tx, prompt)?;
    // The event of a steering message says nothing of that.
    if prompt.is_steer {
        return Ok(());
    }
    if let Some(mut event) = events::find(&*tx, &prompt.sandbox, &prompt.id)? {
        event.data["status"] = status.as_str().into();
        if let Some(error) = error {
            event.data["error"] = error.into();
        }
        events::record(tx, event, now)?;
    }
    Ok(())
}

/// Ends a prompt that has not ended, and completes its events.
pub(super) fn end(
    tx: &mut dyn Writer,
    prompt: &mut Prompt,
    ending: &Ending,
    now: Millis,
) -> Result<(), StoreError> {
    for id in std::mem::take(&mut prompt.growing) {
        if let Some(mut event) = events::find(&*tx, &prompt.sandbox, &id)? {
            complete(&mut event, ending);
            events::record(tx, event, now)?;
        }
    }
    prompt.ended_at = Some(now);
    let error = match ending {
        Ending::Failed(why) => Some(why.as_str()),
        _ => None,
    };
    advance(tx, prompt, ending.status(), error, now)
}

/// Makes an event one that will not change any more.
fn complete(event: &mut Event, ending: &Ending) {
    if let Some(data) = event.data.as_object_mut() {
        data.remove("is_streaming");
        let tools = data.get_mut("tools").and_then(Value::as_array_mut);
        for tool in tools.into_iter().flatten().filter(|tool| tool.is_object() && tool["result"].is_null()) {
            let why = match ending {
                Ending::Failed(why) => why.as_str(),
                _ => "the turn was interrupted",
            };
            tool["result"] = json!({"type": "tool_result", "tool_use_id": tool["use"]["id"], "is_error": true, "content": why});
        }
    }
}

/// Ends every prompt of a sandbox that has not ended, or those of one conversation; says how many there were. The caller
/// then ends what runs of them, and stores the sandbox.
pub(crate) fn end_open(
    tx: &mut dyn Writer,
    sandbox: &str,
    conversation: Option<&str>,
    ending: &Ending,
    now: Millis,
) -> Result<usize, StoreError> {
    let mut ended = 0;
    for mut prompt in prompts::open(&*tx, sandbox)? {
        if conversation.is_none_or(|id| id == prompt.conversation) {
            end(tx, &mut prompt, ending, now)?;
            ended += 1;
        }
    }
    Ok(ended)
}

/// What a sandbox is like once a prompt has begun or ended.
pub(super) fn settle(tx: &dyn Reader, sandbox: &mut Sandbox, now: Millis) -> Result<(), StoreError> {
    if !sandbox.state.is_up() {
        return Ok(());
    }
    let is_at_work = prompts::running_count(tx, &sandbox.id)? > 0 || prompts::is_any_open(tx, &sandbox.id)?;
    // Where nobody was or is at work, nothing has begun or ended.
    if is_at_work || sandbox.state == State::Running {
        put_off_stop(sandbox, now);
    }
    sandbox.state = match (is_at_work, sandbox.state) {
        (true, _) => State::Running,
        (false, State::Running) => State::Idle,
        (false, state) => state,
    };
    Ok(())
}

/// The time until the auto-stop begins anew while an agent works.
fn put_off_stop(sandbox: &mut Sandbox, now: Millis) {
    if let (Some(_), Some(seconds)) = (sandbox.archive_after, sandbox.ttl_seconds) {
        let length = Millis::try_from(seconds.saturating_mul(1000)).unwrap_or(Millis::MAX);
        sandbox.archive_after = Some(now.saturating_add(length));
    }
}

/// Puts off the auto-stop of a sandbox in which an agent is at work; says whether there is one.
pub(crate) fn keep_awake(app: &App, id: &str) -> Result<bool, StoreError> {
    let now = app.now();
    app.write(|tx| {
        let Some(mut sandbox) = typed::get::<Sandbox>(&*tx, id)? else { return Ok(false) };
        let is_at_work = sandbox.state == State::Running && prompts::running_count(&*tx, id)? > 0;
        if is_at_work && sandbox.ttl_seconds.is_some() {
            put_off_stop(&mut sandbox, now);
            typed::put(tx, &sandbox)?;
        }
        Ok(is_at_work && sandbox.ttl_seconds.is_some())
    })
}

/// Interrupts what runs and what waits in one conversation, or in all of them; waits until nothing of it goes on.
pub(crate) async fn interrupt(
    app: &App,
    sandbox: &Sandbox,
    conversation: Option<&str>,
) -> Result<(), ApiError> {
    let live = app.live(sandbox);
    let desk = app.agents.desk(&sandbox.id);
    let turns: Vec<_> = match conversation {
        Some(id) => desk.turn(id).into_iter().collect(),
        None => desk.turns(),
    };
    let mut ended = Vec::new();
    lifecycle::advance(app, &live, None, &sandbox.id, |sandbox, tx, now| {
        ended = prompts::open(&*tx, &sandbox.id)?.into_iter().map(|prompt| prompt.id).collect();
        end_open(tx, &sandbox.id, conversation, &Ending::Interrupted, now)?;
        settle(&*tx, sandbox, now)
    })?;
    app.agents.changed(&sandbox.id);
    // One that began after the look at what runs is found by its prompt having ended.
    let begun_since =
        desk.turns().into_iter().filter(|turn| conversation.is_none_or(|id| turn.prompt.conversation == id));
    let turns: Vec<_> =
        turns.into_iter().chain(begun_since).filter(|turn| ended.contains(&turn.prompt.id)).collect();
    for turn in turns {
        turn.interrupt();
        tokio::select! {
            () = turn.ended() => {}
            () = app.closing.cancelled() => return Ok(()),
        }
    }
    Ok(())
}
