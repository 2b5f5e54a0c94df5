//! From a started process to its end: output is pumped, the exit is awaited, stragglers are drained.

use std::{sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, join_all};
use sandboxer::clock::SharedClock;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Child,
    task::JoinHandle,
};

use super::{Exit, OutputRing, running::Shared};

/// How long output of surviving background children still counts after the main process has ended.
pub(crate) const DRAIN_WINDOW: Duration = Duration::from_millis(250);
const PUMP_BUFFER: usize = 64 * 1024;

/// Copies `source` into `ring` until end of file. Once the ring is closed it goes on reading to nowhere, so that a
/// background child is not killed by a broken pipe.
pub(crate) fn pump(mut source: impl AsyncRead + Send + Unpin + 'static, ring: OutputRing) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut buffer = vec![0; PUMP_BUFFER];
        while let Ok(count @ 1..) = source.read(&mut buffer).await {
            ring.write(&buffer[..count]).await;
        }
    })
}

/// Waits for `child` in the background and completes `shared`.
///
/// `verify` may look at the exit and correct it: it runs after the child was reaped and before the drain.
pub(crate) fn supervise(
    mut child: Child,
    shared: Arc<Shared>,
    pumps: Vec<JoinHandle<()>>,
    clock: SharedClock,
    verify: impl FnOnce(Exit) -> BoxFuture<'static, Exit> + Send + 'static,
) {
    tokio::spawn(async move {
        let exit = match child.wait().await {
            Ok(status) => Exit::from_status(status),
            // Only if somebody else reaped our child; how it ended cannot be known any more.
            Err(_) => Exit { code: None, signal: None, oom_killed: false },
        };
        let exit = verify(exit).await;
        shared.output.stdout().ending();
        shared.output.stderr().ending();
        let window = clock.sleep(DRAIN_WINDOW);
        tokio::select! {
            _ = join_all(pumps) => {}
            () = window => {}
        }
        shared.finish(exit);
    });
}
