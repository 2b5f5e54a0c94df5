//! The history of commands and their kept output; both can be read while the sandbox is stopped.

use std::ops::ControlFlow;

use base64::{Engine as _, engine::general_purpose};
use serde_json::json;

use super::Call;
use crate::{
    app::App,
    output::Source,
    reply::{Answer, ApiError, Outcome},
    store::{Order, typed},
    view,
    world::{
        commands::{Command, Mode, Status, Stream, command_key},
        sandboxes::Sandbox,
    },
};

/// How many records a page has unless the call says otherwise.
const PAGE: u64 = 50;

/// How many records a page looks at: a question that few of them answer is answered a part at a time, each with a cursor to
/// go on from, instead of holding everybody up.
const LOOKED_AT: usize = 2000;

/// The most bytes of a page of output.
const LOG_PAGE: u64 = 1 << 20;

/// Refuses questions about what is not recorded.
pub(super) fn monitored(sandbox: &Sandbox) -> Result<(), ApiError> {
    match sandbox.monitoring {
        true => Ok(()),
        false => Err(ApiError::new(409, "monitoring_off", "the sandbox was created with monitoring off")
            .retryable(false)),
    }
}

pub(super) fn list(app: &App, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    monitored(&sandbox)?;
    let limit = usize::try_from(call.number("limit").unwrap_or(PAGE)).unwrap_or(usize::MAX);
    let modes = call.query("mode").map(modes).transpose()?;
    let wanted = call.query("q").map(str::to_lowercase);
    let after = call.query("cursor").and_then(read_cursor);
    let prefix = format!("{}/", sandbox.id);
    let to = match &after {
        Some(id) => Some(command_key(&sandbox.id, id)),
        None => typed::after_prefix(&prefix),
    };
    let live = app.live(&sandbox);
    let mut found: Vec<Command> = Vec::new();
    let (mut looked_at, mut last, mut next) = (0, None, None);
    if modes.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Answer::ok("command.list", json!({"commands": [], "nextCursor": null})));
    }
    app.read(|tx| {
        typed::scan::<Command>(tx, &prefix, to.as_deref(), Order::Descending, |key, command| {
            if looked_at == LOOKED_AT {
                next = last.take();
                return ControlFlow::Break(());
            }
            looked_at += 1;
            let mode_fits = modes.as_ref().is_none_or(|modes| modes.contains(&command.mode));
            let text_fits = wanted.as_ref().is_none_or(|wanted| command.text.to_lowercase().contains(wanted));
            if mode_fits && text_fits && found.len() == limit {
                next = last.take();
                return ControlFlow::Break(());
            }
            last = key.strip_prefix(&prefix).map(str::to_owned);
            if !mode_fits || !text_fits {
                return ControlFlow::Continue(());
            }
            // One that runs is shown as it is now, not as it was when it started.
            let now = (command.status == Status::Running).then(|| live.job(&command.id)).flatten();
            found.push(now.map_or(command, |job| job.record()));
            ControlFlow::Continue(())
        })
    })?;
    let next = next.map(|last: String| general_purpose::URL_SAFE_NO_PAD.encode(last));
    let shown: Vec<_> = found.iter().map(view::command).collect();
    Ok(Answer::ok("command.list", json!({"nextCursor": next})).with("commands", shown))
}

fn modes(list: &str) -> Result<Vec<Mode>, ApiError> {
    let mut modes = Vec::new();
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        match name {
            "sync" => modes.push(Mode::Sync),
            "stream" => modes.push(Mode::Stream),
            "detached" => modes.push(Mode::Detached),
            "commands" => modes.extend([Mode::Sync, Mode::Stream, Mode::Detached]),
            "process" => modes.push(Mode::Process),
            _ => {
                let allowed = "must be a list of sync, stream, detached, process, commands";
                return Err(ApiError::invalid("invalid_request", "mode", allowed));
            }
        }
    }
    Ok(modes)
}

/// Reads a cursor; one that is none is ignored.
fn read_cursor(cursor: &str) -> Option<String> {
    let bytes = general_purpose::URL_SAFE_NO_PAD.decode(cursor.trim_end_matches('=')).ok()?;
    String::from_utf8(bytes).ok().filter(|id| id.starts_with("cmd_"))
}

/// The command of the path.
fn command(app: &App, call: &Call) -> Result<Source, ApiError> {
    let sandbox = call.sandbox(app)?;
    monitored(&sandbox)?;
    Source::command(app, &sandbox, call.id("commandId"))?
        .ok_or_else(|| ApiError::not_found("command of this sandbox"))
}

pub(super) fn get(app: &App, call: &Call) -> Outcome {
    let source = command(app, call)?;
    Ok(Answer::ok("command.info", json!({"command": view::command(&source.record())})))
}

pub(super) fn logs(app: &App, call: &Call) -> Outcome {
    let source = command(app, call)?;
    let stream = if call.query("stream") == Some("stderr") { Stream::Stderr } else { Stream::Stdout };
    let limit = usize::try_from(call.number("limit").unwrap_or(LOG_PAGE)).unwrap_or(usize::MAX);
    let is_base64 = call.query("encoding") == Some("base64");
    // The state first: if it has ended, the part below is the last word.
    let record = source.record();
    let mut part = source.part(app, stream, call.number("offset").unwrap_or(0), limit)?;
    if let Some(ends) = record.history_ends {
        part.cut_at(ends[stream as usize]);
    }
    let data = match is_base64 {
        true => general_purpose::STANDARD.encode(&part.bytes),
        false => String::from_utf8_lossy(&part.bytes).into_owned(),
    };
    let body = json!({
        "commandId": record.id,
        "stream": stream.as_str(),
        "offset": part.offset,
        "nextOffset": part.next(),
        "size": part.end,
        "encoding": if is_base64 { "base64" } else { "utf8" },
        "data": data,
        "done": record.status != Status::Running && part.next() >= part.end,
    });
    Ok(Answer::ok("command.logs", body))
}
