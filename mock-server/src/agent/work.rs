//! Turns from their beginning to their end.

use std::{panic::AssertUnwindSafe, pin::Pin, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use sandboxer::clock::{Clock as _, SystemClock};
use serde_json::Value;

use super::{
    Ending, Letter, Turn,
    desk::Running,
    end::{advance, end, settle},
};
use crate::{
    app::App,
    lifecycle,
    store::{StoreError, typed},
    world::{
        events,
        prompts::{self, OPEN, Prompt, Status, prompt_key},
        sandboxes::{Sandbox, State, machine_class},
    },
};

/// How long an agent that looks whether it is interrupted may take to end by itself.
const GRACE: Duration = Duration::from_secs(1);

/// How long after a change that the store did not take it is tried again. About real disks, so in real time.
const REST: Duration = Duration::from_millis(500);

/// Begins what can be begun in a sandbox, if it is up.
pub(crate) async fn wake(app: Arc<App>, id: String) {
    while !app.closing.is_cancelled() {
        match begin_next(&app, &id) {
            Ok(Some((running, text, data))) => drop(app.tasks.spawn(carried_out(running, text, data))),
            Ok(None) => return,
            Err(error) => {
                tracing::error!(%error, "a prompt could not be begun");
                if !rest(&app, &error).await {
                    return;
                }
            }
        }
    }
}

/// Waits a moment after the store failed; false if there is no use in another try, or the server closes.
async fn rest(app: &App, error: &StoreError) -> bool {
    if matches!(error, StoreError::Corrupt { .. }) {
        return false;
    }
    tokio::select! {
        () = SystemClock::new().sleep(REST) => true,
        () = app.closing.cancelled() => false,
    }
}

/// The sandboxes in which a prompt has not ended.
pub(crate) fn waiting(app: &App) -> Result<Vec<String>, StoreError> {
    app.read(|tx| typed::next_parts(tx, OPEN))
}

type Begun = (Arc<Running>, String, Value);

fn begin_next(app: &Arc<App>, id: &str) -> Result<Option<Begun>, StoreError> {
    // Looked at first, since a look costs little and a change much.
    let there = app.read(|tx| {
        let Some(sandbox) = typed::get::<Sandbox>(tx, id)? else { return Ok(None) };
        // Prompts are on their way for as long as nothing gets there.
        if app.scenarios().cut_off(&sandbox) {
            return Ok(None);
        }
        let most = most_at_once(app, &sandbox);
        let is_waiting = prompts::is_any_open(tx, id)?
            && (prompts::next(tx, id, most)?.is_some()
                || prompts::open(tx, id)?.iter().any(|prompt| prompt.status == Status::Sending));
        Ok::<_, StoreError>((sandbox.state.is_up() && is_waiting).then_some(sandbox))
    })?;
    let Some(sandbox) = there else { return Ok(None) };
    let most = most_at_once(app, &sandbox);
    let desk = app.agents.desk(id);
    let mut begun = None;
    let advanced = lifecycle::advance(app, &app.live(&sandbox), None, id, |sandbox, tx, now| {
        if !sandbox.state.is_up() {
            return Ok(());
        }
        // The sandbox is reached now, so nothing is on its way to it any more.
        for mut prompt in prompts::open(&*tx, id)? {
            if prompt.status == Status::Sending {
                advance(tx, &mut prompt, Status::Queued, None, now)?;
            }
        }
        let Some(mut prompt) = prompts::next(&*tx, id, most)? else { return settle(&*tx, sandbox, now) };
        advance(tx, &mut prompt, Status::Running, None, now)?;
        let data = events::find(&*tx, id, &prompt.id)?.map(|event| event.data).unwrap_or_default();
        let text = if prompt.is_steer { &data["message"] } else { &data["prompt"] };
        let text = text.as_str().unwrap_or_default().to_owned();
        let running = Running::new(app, prompt);
        desk.add(&running);
        begun = Some((running, text, data));
        settle(&*tx, sandbox, now)
    });
    if let Err(error) = advanced {
        // What was not stored has not begun: nobody may wait for its end.
        if let Some((running, ..)) = begun {
            desk.remove(&running);
            running.has_ended();
        }
        return Err(error);
    }
    app.agents.changed(id);
    Ok(begun)
}

/// How many conversations are at work at once.
fn most_at_once(app: &App, sandbox: &Sandbox) -> u64 {
    let by_memory = u64::from(machine_class(&sandbox.kind).memory_gb / 2).max(1);
    app.agents.settings().parallel.unwrap_or(by_memory)
}

/// [`carry_out`], of which the compiler need not know that it leads to itself.
fn carried_out(running: Arc<Running>, text: String, data: Value) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(carry_out(running, text, data))
}

/// Carries a turn out, ends it, and begins what waited for that.
async fn carry_out(running: Arc<Running>, text: String, data: Value) {
    let app = running.app.clone();
    let ending = work(&running, text, data).await;
    running.close();
    running.end_jobs().await;
    if ending != Ending::Interrupted {
        running.complete_response();
    }
    let id = running.prompt.sandbox.clone();
    // Until that is stored it has not ended, whatever the store makes of it: without a worker it would run for ever.
    while let Err(error) = finish(&app, &running, &ending) {
        tracing::error!(%error, "the end of a prompt could not be stored");
        if !rest(&app, &error).await {
            break;
        }
    }
    app.agents.ended(&running);
    app.agents.changed(&id);
    running.has_ended();
    wake(app, id).await;
}

/// Lets the agent answer, as often as there is something more to be answered.
async fn work(running: &Arc<Running>, mut input: String, data: Value) -> Ending {
    let app = &running.app;
    let mut is_continuation = false;
    loop {
        let pass = running.begin_pass();
        let turn = Turn::new(running.clone(), input, data.clone(), is_continuation, pass.clone());
        let agent = app.agents.agent();
        let answering = AssertUnwindSafe(async move { agent.begin(turn).await }).catch_unwind();
        tokio::pin!(answering);
        let answered = tokio::select! {
            biased;
            () = running.interrupted().cancelled() => {
                // In real time: a clock that a test holds still must not hold the answer.
                if running.looks.load(std::sync::atomic::Ordering::Relaxed) {
                    tokio::select! {
                        _ = &mut answering => {}
                        () = SystemClock::new().sleep(GRACE) => {}
                    }
                }
                return Ending::Interrupted;
            }
            () = app.closing.cancelled() => return Ending::Interrupted,
            () = pass.cancelled() => None,
            answered = &mut answering => Some(answered),
        };
        pass.cancel();
        running.end_jobs().await;
        let letter = match answered {
            None => running.take_fallback().map(|letter| (letter, false)),
            Some(Ok(Ok(()))) => running.take_next_or_close(),
            Some(Ok(Err(error))) => return Ending::Failed(error.to_string()),
            Some(Err(_)) => return Ending::Failed("the agent panicked".into()),
        };
        let Some((Letter { id, message }, is_native)) = letter else { return Ending::Finished };
        running.end_response();
        if is_native && let Err(error) = settle_as_continued(app, &running.prompt.sandbox, &id) {
            tracing::error!(%error, "how a message was delivered could not be stored");
        }
        (input, is_continuation) = (message, true);
    }
}

/// Nobody had taken the message when the agent came to its end: it goes on with it.
fn settle_as_continued(app: &App, sandbox: &str, steer: &str) -> Result<(), StoreError> {
    let now = app.now();
    app.write_later(|tx| match events::find(&*tx, sandbox, steer)? {
        Some(mut event) => {
            event.data["mode"] = "native-continued".into();
            events::record(tx, event, now).map(drop)
        }
        None => Ok::<_, StoreError>(()),
    })?;
    app.agents.changed(sandbox);
    Ok(())
}

/// Stores the end, unless somebody else has ended the prompt already.
fn finish(app: &App, running: &Running, ending: &Ending) -> Result<(), StoreError> {
    let Prompt { sandbox: id, id: prompt_id, .. } = &running.prompt;
    let Some(sandbox) = app.read(|tx| typed::get::<Sandbox>(tx, id))? else { return Ok(()) };
    let key = prompt_key(id, prompt_id);
    let is_open = |prompt: &Prompt| prompt.status == Status::Running;
    if !app.read(|tx| typed::get::<Prompt>(tx, &key))?.as_ref().is_some_and(is_open) {
        return Ok(());
    }
    lifecycle::advance(app, &app.live(&sandbox), None, id, |sandbox, tx, now| {
        let Some(mut prompt) = typed::get::<Prompt>(&*tx, &key)?.filter(is_open) else { return Ok(()) };
        end(tx, &mut prompt, ending, now)?;
        settle(&*tx, sandbox, now)
    })?;
    app.deadlines_changed.notify_one();
    Ok(())
}

/// Takes up what a server that used the same store left undone: what ran has failed, what waited begins.
pub(crate) fn take_up(app: &Arc<App>) -> Result<(), StoreError> {
    app.agents.runs_on(tokio::runtime::Handle::current());
    let now = app.now();
    let ids = app.write(|tx| {
        let ids = typed::next_parts(&*tx, OPEN)?;
        for id in &ids {
            for mut prompt in prompts::open(&*tx, id)? {
                if prompt.status == Status::Running {
                    end(tx, &mut prompt, &Ending::Failed("the server was ended while it ran".into()), now)?;
                }
            }
            if let Some(mut sandbox) = typed::get::<Sandbox>(&*tx, id)?
                && sandbox.state == State::Running
            {
                settle(&*tx, &mut sandbox, now)?;
                typed::put(tx, &sandbox)?;
            }
        }
        Ok::<_, StoreError>(ids)
    })?;
    for id in ids {
        app.tasks.spawn(wake(app.clone(), id));
    }
    Ok(())
}

/// Forgets everything of a sandbox that is gone, some at a time; says whether there is nothing left.
pub(crate) fn forget(app: &App, id: &str, at_once: usize) -> Result<bool, StoreError> {
    use crate::world::{conversations::Conversation, events::Event};
    let prefix = format!("{id}/");
    app.write_later(|tx| {
        let mut some: Vec<String> = Vec::new();
        let to = typed::after_prefix(&prefix);
        tx.scan(
            crate::store::Table::Events,
            &prefix,
            to.as_deref(),
            crate::store::Order::Ascending,
            &mut |key, _| {
                some.push(key.to_owned());
                if some.len() < at_once {
                    std::ops::ControlFlow::Continue(())
                } else {
                    std::ops::ControlFlow::Break(())
                }
            },
        )?;
        some.iter().try_for_each(|key| typed::remove::<Event>(tx, key))?;
        let is_done = some.len() < at_once;
        if is_done {
            typed::remove_all::<Prompt>(tx, &prefix)?;
            typed::remove_all::<Conversation>(tx, &prefix)?;
        }
        Ok(is_done)
    })
}
