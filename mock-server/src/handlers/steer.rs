//! Messages into the turn that an agent is at.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Call,
    prompts::{check_wallet, conversation},
};
use crate::{
    agent::{self, Delivery, Letter},
    app::App,
    reply::{Answer, ApiError, Outcome},
    store::{StoreError, Writer, typed},
    world::{
        conversations::{self, Conversation},
        events::{self, Event},
        ids,
        prompts::{Prompt, Status, prompt_key},
        providers::provider,
        sandboxes::Sandbox,
        time::Millis,
    },
};

pub(super) async fn steer(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let message = call.text("message").unwrap_or_default();
    let named = call.text("conversation").or_else(|| call.query("conversation"));
    app.read(|tx| {
        if let Some(id) = named {
            conversation(tx, &sandbox.id, id)?;
        }
        check_wallet(tx, &call.caller, &sandbox)
    })?;
    if !sandbox.state.is_up() && !sandbox.state.is_starting() {
        return Err(refuse("not_running", &format!("the sandbox is {}", sandbox.state.as_str())));
    }
    if app.scenarios().cut_off(&sandbox) {
        return Err(refuse("delivery_failed", "the sandbox does not answer"));
    }
    let desk = app.agents.desk(&sandbox.id);
    loop {
        let (conversation, last) = addressee(app, &sandbox, named)?;
        let is_native = provider(&last.provider).is_some_and(|provider| provider.is_steered_natively);
        let letter = Letter { id: ids::in_order("str", app.now()), message: message.to_owned() };
        let id = letter.id.clone();
        let answer = |native: bool, mode: &str| {
            let body = json!({
                "id": sandbox.id,
                "conversationId": conversation.id,
                "promptId": id,
                "native": native,
                "mode": mode,
                "status": "steered",
            });
            Ok(Answer::ok("prompt.steered", body))
        };
        let Some(turn) = desk.turn(&conversation.id) else {
            if last.status == Status::Running {
                // It is about to begin, or has just ended.
                tokio::task::yield_now().await;
                continue;
            }
            late(app, &sandbox, &conversation, &last, &letter)?;
            app.tasks.spawn(agent::wake(app.clone(), sandbox.id.clone()));
            return answer(false, "late");
        };
        let mode = if is_native { "native" } else { "fallback" };
        let delivered = turn.deliver(letter, is_native, |letter| {
            let now = app.now();
            app.write(|tx| note(tx, &sandbox, &conversation, letter, (is_native, mode), now).map(drop))
        })?;
        app.agents.changed(&sandbox.id);
        match delivered {
            Delivery::Native | Delivery::Fallback => return answer(is_native, mode),
            // Then what there is to say is that it has ended, or that the next one runs.
            Delivery::TooLate => tokio::select! {
                () = turn.ended() => {}
                () = app.closing.cancelled() => {
                    return Err(refuse("delivery_failed", "the server is shutting down"));
                }
            },
        }
    }
}

/// The conversation that the message is for, and the turn in it that runs or ran last. Refuses when there is none that
/// could take a message, now or late.
fn addressee(app: &App, sandbox: &Sandbox, named: Option<&str>) -> Result<(Conversation, Prompt), ApiError> {
    app.read(|tx| {
        // Deleted meanwhile: what its agents were at has no end that could be waited for.
        if typed::get::<Sandbox>(tx, &sandbox.id)?.is_none() {
            return Err(ApiError::not_found("sandbox"));
        }
        let runs = |it: &Conversation| {
            Ok::<_, StoreError>(
                typed::row(tx, &crate::world::prompts::running(&sandbox.id, &it.id))?.is_some(),
            )
        };
        let found = match named {
            Some(id) => Some(conversation(tx, &sandbox.id, id)?),
            None => {
                let mut found = None;
                // Only those that are at work matter, and the current one when none is.
                if crate::world::prompts::running_count(tx, &sandbox.id)? > 0 {
                    for it in conversations::latest(tx, &sandbox.id, usize::MAX)? {
                        if runs(&it)? {
                            found = Some(it);
                            break;
                        }
                    }
                }
                match found {
                    Some(found) => Some(found),
                    None => conversations::current(tx, &sandbox.id)?,
                }
            }
        };
        let no_turn = || refuse("no_turn", "nothing was asked of an agent yet");
        let found = found.ok_or_else(no_turn)?;
        let running = typed::row(tx, &crate::world::prompts::running(&sandbox.id, &found.id))?;
        let last = running.or_else(|| found.last_turn.clone()).ok_or_else(no_turn)?;
        let last: Prompt = typed::get(tx, &prompt_key(&sandbox.id, &last))?.ok_or_else(no_turn)?;
        match last.status {
            Status::Running => Ok((found, last)),
            Status::Sending | Status::Queued => {
                Err(refuse("turn_not_started", "the turn has not begun yet").retryable(true).retry_after(1))
            }
            Status::Finished | Status::Failed | Status::Interrupted => {
                let ended = last.ended_at.unwrap_or_default();
                let grace = Millis::try_from(app.agents.settings().late_steer_ms).unwrap_or(Millis::MAX);
                if grace > 0 && app.now() <= ended.saturating_add(grace) {
                    return Ok((found, last));
                }
                let turn = json!({"status": last.status.as_str(), "error": last.error});
                Err(refuse("turn_ended", "the turn has ended").detail("lastTurn", turn))
            }
        }
    })
}

/// Puts a message that came after the turn had ended into the queue, as a turn of its own.
fn late(
    app: &App,
    sandbox: &Sandbox,
    conversation: &Conversation,
    last: &Prompt,
    letter: &Letter,
) -> Result<(), ApiError> {
    let now = app.now();
    app.write(|tx| {
        let state = typed::get::<Sandbox>(&*tx, &sandbox.id)?.map(|sandbox| sandbox.state);
        if !state.is_some_and(|state| state.is_up()) {
            return Err(refuse("not_running", "the sandbox does not run"));
        }
        note(tx, sandbox, conversation, letter, (false, "late"), now)?;
        let mut conversation: Conversation =
            typed::get(&*tx, &crate::world::conversations::conversation_key(&sandbox.id, &conversation.id))?
                .ok_or_else(|| ApiError::not_found("conversation"))?;
        Ok(agent::queue_steer(tx, &mut conversation, &letter.id, last, now)?)
    })?;
    app.agents.changed(&sandbox.id);
    Ok(())
}

/// Writes the message down.
fn note(
    tx: &mut dyn Writer,
    sandbox: &Sandbox,
    conversation: &Conversation,
    letter: &Letter,
    (native, mode): (bool, &str),
    now: Millis,
) -> Result<Millis, StoreError> {
    let data: Value = json!({"message": letter.message, "native": native, "mode": mode});
    let event = Event {
        sandbox: sandbox.id.clone(),
        id: letter.id.clone(),
        kind: "steer".into(),
        at: 0,
        task: letter.id.clone(),
        conversation: conversation.id.clone(),
        data,
    };
    events::record(tx, event, now)
}

fn refuse(reason: &str, why: &str) -> ApiError {
    ApiError::new(409, "no_running_turn", why).retryable(false).detail("reason", reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        testing::Setting,
        world::{prompts::Status, sandboxes::State},
    };

    #[tokio::test]
    async fn a_turn_of_a_sandbox_that_is_gone_is_not_waited_for() {
        let set = Setting::new();
        let sandbox = set.sandbox(State::Ready).await;
        let prompt = Prompt {
            id: "p_1".into(),
            sandbox: sandbox.id.clone(),
            conversation: "c_1".into(),
            created_at: 0,
            status: Status::Running,
            provider: "local".into(),
            model: None,
            effort: None,
            fast: None,
            ended_at: None,
            error: None,
            is_steer: false,
            growing: Vec::new(),
        };
        set.write(|tx| {
            let mut conversation = Conversation::new("bx_1", "c_1", 0);
            conversation.last_turn = Some("p_1".into());
            typed::put(tx, &conversation)?;
            typed::put(tx, &prompt)
        });
        assert_eq!(addressee(&set.app, &sandbox, None).unwrap().1.id, "p_1");
        set.write(|tx| typed::remove::<Sandbox>(tx, &sandbox.id));
        for named in [None, Some("c_1")] {
            assert_eq!(addressee(&set.app, &sandbox, named).unwrap_err().code(), "not_found");
        }
    }
}
