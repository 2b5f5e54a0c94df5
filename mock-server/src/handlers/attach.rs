//! Following a background command by byte offsets.

use std::{sync::Arc, time::Duration};

use serde_json::json;

use super::{
    Call, not_running,
    stream::{FRAME, grown, line},
};
use crate::{
    app::App,
    output::Source,
    reply::{Answer, Outcome},
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
    Closing,
    Failed,
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
                let Ok(part) = source.part(&app, stream, read[index], FRAME) else { break 'frames End::Failed };
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
                continue;
            }
            if has_ended {
                break End::Exited;
            }
            let Source::Live(job) = &source else { break End::Exited };
            tokio::select! {
                biased;
                () = app.closing.cancelled() => break End::Closing,
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
            End::Closing | End::Failed => {
                last["type"] = "error".into();
                last["error"] = "sandbox_direct_failed".into();
                last["message"] = match end {
                    End::Closing => "the server is shutting down",
                    _ => "the output could not be read",
                }
                .into();
            }
        }
        yield line(&last);
    })))
}
