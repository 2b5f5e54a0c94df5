//! A world that is full already.

use super::{
    commands::{Command, Kept, Mode, Status},
    conversations::Conversation,
    events::{self, Event},
    ids,
    keys::Key,
    sandboxes::{Sandbox, State},
    seed::WorldError,
};
use crate::{
    app::App,
    store::{StoreError, typed},
};

/// How many records are written in one transaction.
const AT_ONCE: usize = 1000;

/// Adds stopped sandboxes, the oldest with a history.
pub(super) fn fill(
    app: &App,
    key: &str,
    sandboxes: usize,
    commands: usize,
) -> Result<Vec<String>, WorldError> {
    let failed = |error: StoreError| WorldError::from_store(&error);
    let key: Option<Key> = app.read(|tx| typed::get(tx, &ids::digest(key))).map_err(failed)?;
    let account = key.ok_or_else(WorldError::no_key)?.account;
    let now = app.now();
    let made: Vec<Sandbox> = (0..sandboxes)
        .map(|index| Sandbox {
            state: State::Archived,
            name: format!("sandbox {index}"),
            started_once: true,
            snapshot_at: Some(now),
            ..Sandbox::new(ids::sandbox(), &account, now + index as i64)
        })
        .collect();
    for some in made.chunks(AT_ONCE) {
        app.write_later(|tx| some.iter().try_for_each(|sandbox| typed::put(tx, sandbox))).map_err(failed)?;
    }
    let oldest = made.first().map(|sandbox| sandbox.id.clone()).unwrap_or_default();
    let numbers: Vec<usize> = (0..commands).collect();
    for some in numbers.chunks(AT_ONCE) {
        let put = |tx: &mut dyn crate::store::Writer| {
            some.iter().try_for_each(|number| typed::put(tx, &command(&oldest, *number, now)))
        };
        app.write_later(put).map_err(failed)?;
    }
    Ok(made.into_iter().map(|sandbox| sandbox.id).collect())
}

fn command(sandbox: &str, number: usize, now: i64) -> Command {
    let at = now + number as i64;
    Command {
        id: ids::command(at),
        sandbox: sandbox.to_owned(),
        text: format!("echo command number {number}"),
        cwd: "/home/user".into(),
        mode: Mode::Sync,
        process_id: None,
        pid: None,
        process_start: None,
        status: Status::Exited,
        exit_code: Some(0),
        signal: None,
        oom_killed: false,
        stdout: Kept::default(),
        stderr: Kept::default(),
        history_ends: None,
        started_at: at,
        finished_at: Some(at),
    }
}

/// Adds events, prompts and responses by turns, to a conversation of their own.
pub(super) fn fill_events(app: &App, sandbox: &str, count: usize) -> Result<String, WorldError> {
    let failed = |error: StoreError| WorldError::from_store(&error);
    let now = app.now();
    let conversation = Conversation::new(sandbox, &uuid::Uuid::new_v4().to_string(), now);
    let event = |number: usize| Event {
        sandbox: sandbox.to_owned(),
        id: ids::in_order("evt", now),
        kind: if number.is_multiple_of(2) { "prompt" } else { "response" }.into(),
        at: 0,
        task: String::new(),
        conversation: conversation.id.clone(),
        data: match number.is_multiple_of(2) {
            true => serde_json::json!({"prompt": format!("prompt {number}"), "status": "finished"}),
            false => serde_json::json!({"content": format!("response {number}")}),
        },
    };
    app.write_later(|tx| typed::put(tx, &conversation)).map_err(failed)?;
    let numbers: Vec<usize> = (0..count).collect();
    for some in numbers.chunks(AT_ONCE) {
        let put = |tx: &mut dyn crate::store::Writer| {
            some.iter().try_for_each(|number| events::record(tx, event(*number), now).map(drop))
        };
        app.write_later(put).map_err(failed)?;
    }
    Ok(conversation.id)
}
