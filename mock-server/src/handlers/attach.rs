//! Following a background command by byte offsets.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use serde_json::json;

use super::{
    Call,
    following::Follower,
    not_running,
    stream::{FRAME, grown, line},
};
use crate::{
    app::App,
    output::Source,
    reply::{Answer, ApiError, Outcome},
    text::Decoder,
    view::{process_status, signal_name},
    world::commands::{Status, Stream},
};

/// A heartbeat comes after this long without a frame.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// After this long the client is asked to come again.
const RECONNECT: Duration = Duration::from_secs(600);

const STREAMS: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

enum End {
    Exited,
    Reconnect,
    Failed(ApiError),
}

impl End {
    fn closing() -> Self {
        Self::Failed(ApiError::new(502, "sandbox_direct_failed", "the server is shutting down"))
    }
}

pub(super) fn attach(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let source = Source::process(app, &sandbox, call.id("processId"))?;
    if !sandbox.state.is_up() {
        return Err(not_running(sandbox.state));
    }
    let process_id = source.record().process_id;
    let asked = ["stdoutOffset", "stderrOffset"].map(|name| call.number(name).unwrap_or(0));
    // Where the first frame begins is where what is kept begins.
    let mut offsets = [0; 2];
    for (index, stream) in STREAMS.into_iter().enumerate() {
        offsets[index] = source.part(app, stream, asked[index], 0)?.offset;
    }
    let mut follower = Follower::new(app, call, &sandbox);
    let app = app.clone();
    Ok(Answer::Ndjson(axum::body::Body::from_stream(async_stream::stream! {
        yield line(&json!({
            "type": "attached",
            "processId": process_id,
            "stdoutOffset": offsets[0],
            "stderrOffset": offsets[1],
        }));
        let mut decoders = [Decoder::default(), Decoder::default()];
        // What was read, and what of it went out as whole characters.
        let mut read = offsets;
        let reconnect = app.clock.sleep(RECONNECT);
        tokio::pin!(reconnect);
        let mut silence = app.clock.sleep(HEARTBEAT);
        let end = 'frames: loop {
            // Looked at before the output: what was written before the end is then read below.
            let has_ended = match &source {
                Source::Live(job) => job.has_ended(),
                Source::Stored(_) => true,
            };
            let mut moved = false;
            for (index, stream) in STREAMS.into_iter().enumerate() {
                // Anew for each frame: a reader may have taken its time over the one before.
                let part = follower.check(&app).and_then(|()| source.part(&app, stream, read[index], FRAME));
                let part = match part {
                    Ok(part) => part,
                    Err(error) => break 'frames End::Failed(error),
                };
                if part.offset > read[index] {
                    // The reader was too slow and bytes are gone; a character cut by that is gone, too.
                    decoders[index] = Decoder::default();
                }
                read[index] = part.next();
                if part.bytes.is_empty() {
                    continue;
                }
                moved = true;
                let text = decoders[index].feed(&part.bytes);
                offsets[index] = read[index] - decoders[index].held() as u64;
                if !text.is_empty() {
                    yield line(&json!({"type": stream.as_str(), "data": text, "nextOffset": offsets[index]}));
                    silence = app.clock.sleep(HEARTBEAT);
                }
            }
            if moved {
                // A command that never stops writing must not keep the time, or the server's end, from being seen.
                if app.closing.is_cancelled() {
                    break End::closing();
                }
                if reconnect.as_mut().now_or_never().is_some() {
                    break End::Reconnect;
                }
                continue;
            }
            if has_ended {
                break End::Exited;
            }
            let Source::Live(job) = &source else { break End::Exited };
            tokio::select! {
                biased;
                () = app.closing.cancelled() => break End::closing(),
                () = follower.changed(&app) => {}
                () = grown(job.ring(Stream::Stdout), read[0]) => {}
                () = grown(job.ring(Stream::Stderr), read[1]) => {}
                () = job.ended() => {}
                () = &mut reconnect => break End::Reconnect,
                () = &mut silence => {
                    yield line(&json!({
                        "type": "heartbeat",
                        "stdoutOffset": offsets[0],
                        "stderrOffset": offsets[1],
                    }));
                    silence = app.clock.sleep(HEARTBEAT);
                }
            }
        };
        if matches!(end, End::Exited) {
            for (index, stream) in STREAMS.into_iter().enumerate() {
                let rest = decoders[index].finish();
                offsets[index] = read[index];
                if !rest.is_empty() {
                    yield line(&json!({"type": stream.as_str(), "data": rest, "nextOffset": offsets[index]}));
                }
            }
        }
        let mut last = json!({"stdoutOffset": offsets[0], "stderrOffset": offsets[1]});
        match end {
            End::Exited => {
                let record = source.record();
                last["type"] = "exit".into();
                last["status"] = process_status(record.status).into();
                last["exitCode"] = record.exit_code.filter(|_| record.status != Status::Lost).into();
                last["signal"] = record.signal.filter(|_| record.status != Status::Lost).map(signal_name).into();
                last["oomKilled"] = record.oom_killed.into();
            }
            End::Reconnect => last["type"] = "reconnect".into(),
            End::Failed(error) => {
                last["type"] = "error".into();
                last["error"] = error.code().into();
                last["message"] = error.message().into();
            }
        }
        yield line(&last);
    })))
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use sandboxer::Operation;
    use serde_json::Value;

    use super::*;
    use crate::{
        auth::Caller,
        store::typed,
        testing::{Setting, guarded},
        world::{
            accounts::Account,
            commands::{Command, Process, keep_output},
            keys::Key,
            sandboxes::State,
        },
    };

    /// The answer to somebody who follows a command whose output fills many frames, and who is as slow as the test.
    async fn followed(set: &Setting) -> impl FnMut() -> Value {
        let sandbox = set.sandbox(State::Ready).await;
        let account = Account { id: sandbox.account.clone(), ..Account::default() };
        let key = Key { digest: "digest".into(), account: account.id.clone(), ..Key::default() };
        let output = vec![b'x'; 5 * FRAME];
        let kept = json!({"start": 0, "end": output.len(), "written": output.len()});
        let command = json!({
            "id": "cmd_1", "sandbox": sandbox.id, "text": "yes", "cwd": "/home/user", "mode": "detached",
            "process_id": 7, "status": "exited", "exit_code": 0, "stdout": kept, "started_at": 0,
        });
        let command: Command = serde_json::from_value(command).unwrap();
        let process = Process { sandbox: sandbox.id.clone(), process_id: 7, command: command.id.clone() };
        set.write(|tx| {
            typed::put(tx, &account)?;
            typed::put(tx, &key)?;
            typed::put(tx, &command)?;
            typed::put(tx, &process)?;
            keep_output(tx, &command.id, Stream::Stdout, 0, &output)
        });
        let call = Call {
            operation: Operation::AttachCommand,
            path: vec![("sandboxId", sandbox.id), ("processId", "7".into())],
            query: Vec::new(),
            headers: http::HeaderMap::new(),
            body: Value::Null,
            caller: Caller { account, key, organisation: None, has_named_wallet: false },
        };
        let Ok(Answer::Ndjson(body)) = attach(&set.app, &call) else { panic!("no frames") };
        let mut frames = body.into_data_stream();
        move || {
            let frame = frames.next().now_or_never().flatten().unwrap().unwrap();
            serde_json::from_slice(&frame).unwrap()
        }
    }

    #[tokio::test]
    async fn the_time_to_come_again_is_seen_between_two_frames() {
        let set = Setting::new();
        let mut next = guarded(followed(&set)).await;
        assert_eq!(next()["type"], "attached");
        assert_eq!(next()["nextOffset"], FRAME);
        set.clock.advance(RECONNECT);
        let last = next();
        assert_eq!((&last["type"], &last["stdoutOffset"]), (&json!("reconnect"), &json!(FRAME)));
    }

    #[tokio::test]
    async fn a_key_that_has_ended_reads_no_further_frame() {
        let set = Setting::new();
        let mut next = guarded(followed(&set)).await;
        assert_eq!(next()["type"], "attached");
        assert_eq!(next()["nextOffset"], FRAME);
        set.write(|tx| typed::remove::<Key>(tx, "digest"));
        // Nobody was told, so it is found at the next look.
        assert_eq!(next()["nextOffset"], 2 * FRAME);
        set.clock.advance(HEARTBEAT);
        let last = next();
        assert_eq!((&last["type"], &last["error"]), (&json!("error"), &json!("unauthorized")));
        assert_eq!(last["stdoutOffset"], 2 * FRAME);
    }
}
