//! A command's output as it is written, a JSON frame a line.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use serde_json::{Value, json};

use super::{commands::result, following::Follower};
use crate::{
    app::App,
    job::Job,
    runner::{Consumer, OutputRing},
    text::Decoder,
    world::commands::{Status, Stream},
};

/// The most bytes of output in one frame.
pub(super) const FRAME: usize = 64 << 10;

/// The reader that a streaming command waits for: standard output, standard error.
pub(super) type Consumers = [Consumer; 2];

/// The reader of a command that has just begun. Taken before anybody can go away: a command whose reader has never been
/// there would wait for it for ever.
pub(super) fn consumers(job: &Job) -> Consumers {
    [Stream::Stdout, Stream::Stderr].map(|stream| job.ring(stream).consumer(0))
}

/// One frame as it goes out.
pub(super) fn line(frame: &Value) -> Result<Bytes, std::convert::Infallible> {
    let mut line = frame.to_string();
    line.push('\n');
    Ok(line.into())
}

/// Resolves when a stream has grown past `end`; never if it has ended.
pub(super) async fn grown(ring: &OutputRing, end: u64) {
    if ring.is_closed() {
        std::future::pending().await
    } else {
        ring.changed_since(end).await;
    }
}

/// The body of a streaming command: `started`, output, and one `exit` or `error`.
///
/// The command waits for a reader that is slow, and runs on without one that went away.
///
/// It ends early, and the command runs on, when whoever reads it may not any more or the machine does not answer.
pub(super) fn frames(app: Arc<App>, job: Arc<Job>, mut consumers: Consumers, mut follower: Follower) -> Body {
    Body::from_stream(async_stream::stream! {
        yield line(&json!({"type": "started", "commandId": job.id()}));
        let mut offsets = [0_u64; 2];
        let mut cut = [false; 2];
        let mut decoders = [Decoder::default(), Decoder::default()];
        let goes_on = loop {
            let mut has_ended = true;
            let mut moved = false;
            for (index, stream) in [Stream::Stdout, Stream::Stderr].into_iter().enumerate() {
                // Anew for each frame: a reader may have taken its time over the one before.
                if let Err(error) = follower.check(&app) {
                    yield line(&failed(error.code(), error.message()));
                    return;
                }
                let chunk = job.ring(stream).read_at(offsets[index], FRAME);
                cut[index] |= chunk.offset > offsets[index];
                offsets[index] = chunk.next_offset();
                has_ended &= chunk.closed && chunk.next_offset() >= chunk.end;
                if chunk.bytes.is_empty() {
                    continue;
                }
                moved = true;
                let text = decoders[index].feed(&chunk.bytes);
                if !text.is_empty() {
                    yield line(&json!({"type": stream.as_str(), "data": text}));
                }
                // Only once the frame was taken has the reader caught up.
                consumers[index].consume_to(offsets[index]);
            }
            if has_ended {
                break true;
            }
            if moved && !app.closing.is_cancelled() {
                continue;
            }
            tokio::select! {
                () = follower.changed(&app) => {}
                () = grown(job.ring(Stream::Stdout), offsets[0]) => {}
                () = grown(job.ring(Stream::Stderr), offsets[1]) => {}
                () = job.ended() => {}
                () = app.closing.cancelled() => break false,
            }
        };
        if !goes_on {
            yield line(&gone("the server is shutting down"));
            return;
        }
        for (index, stream) in [Stream::Stdout, Stream::Stderr].into_iter().enumerate() {
            let rest = decoders[index].finish();
            if !rest.is_empty() {
                yield line(&json!({"type": stream.as_str(), "data": rest}));
            }
        }
        job.ended().await;
        let record = job.record();
        if record.status == Status::Lost {
            yield line(&gone("the sandbox went away while the command ran"));
            return;
        }
        if job.is_unkept() {
            yield line(&failed("internal_error", "the end of the command could not be recorded"));
            return;
        }
        let mut exit = result(&record);
        exit["type"] = "exit".into();
        // What went out counts here, not what the history keeps.
        exit["stdoutTruncated"] = cut[0].into();
        exit["stderrTruncated"] = cut[1].into();
        yield line(&exit);
    })
}

fn gone(message: &str) -> Value {
    failed("sandbox_direct_failed", message)
}

fn failed(code: &str, message: &str) -> Value {
    json!({"type": "error", "error": code, "message": message, "retryable": false})
}
