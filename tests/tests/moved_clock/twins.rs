//! The two clients behind one face, so that each behaviour is written down once and shown on both.

use std::{panic::resume_unwind, rc::Rc, sync::mpsc, thread, time::Duration};

use sandboxer::{
    AsyncCommand, AsyncPromptRun, AsyncSandbox, AsyncSandboxer, CallOptions, Event, Offsets, Output, Result,
    stream::Chunk,
};
use sandboxer_blocking::{CommandHandle, PromptRun, Sandbox, Sandboxer};
use tokio::runtime::{Builder, Runtime};

use super::{leaping::Leaping, service::Service};

/// Far more than anything here takes; only a hang reaches it.
const GUARD: Duration = Duration::from_secs(120);

/// Longer than what counts as a pause, so that making a connection is no pause.
const CONNECT: Duration = Duration::from_secs(20);

/// One thing of either twin.
pub(crate) enum Twin<A, B> {
    Async(Rc<Runtime>, A),
    Blocking(B),
}

pub(crate) type Client = Twin<AsyncSandboxer, Sandboxer>;
pub(crate) type Handle = Twin<AsyncSandbox, Sandbox>;
pub(crate) type Command = Twin<AsyncCommand, CommandHandle>;
pub(crate) type Run = Twin<AsyncPromptRun, PromptRun>;
pub(crate) type Events = Twin<sandboxer::EventStream, sandboxer_blocking::EventStream>;
pub(crate) type Attach = Twin<sandboxer::Attach, sandboxer_blocking::Attach>;

/// Makes one call that waits through either twin: `on!(handle => wait_until_ready())`.
macro_rules! on {
    ($twin:expr => $($call:tt)+) => {
        match &$twin {
            $crate::twins::Twin::Async(runtime, inner) => runtime.block_on(async { inner.$($call)+.await }),
            $crate::twins::Twin::Blocking(inner) => inner.$($call)+,
        }
    };
}
pub(crate) use on;

/// As `on!`, for what answers with something of its own twin, which is not looked at.
macro_rules! done {
    ($twin:expr => $($call:tt)+) => {
        match &$twin {
            $crate::twins::Twin::Async(runtime, inner) => {
                runtime.block_on(async { inner.$($call)+.await.map(drop) })
            }
            $crate::twins::Twin::Blocking(inner) => inner.$($call)+.map(drop),
        }
    };
}
pub(crate) use done;

/// Gets something else out of either twin with a call that does not wait.
macro_rules! of {
    ($twin:expr => $($call:tt)+) => {
        match &$twin {
            $crate::twins::Twin::Async(runtime, inner) => {
                $crate::twins::Twin::Async(runtime.clone(), inner.$($call)+)
            }
            $crate::twins::Twin::Blocking(inner) => $crate::twins::Twin::Blocking(inner.$($call)+),
        }
    };
}
pub(crate) use of;

/// Makes a client of one twin.
pub(crate) type Connect = fn(&Service, &Leaping) -> Client;

/// Shows a behaviour on both twins, each in a thread that is not waited for beyond the guard.
pub(crate) fn on_both(show: fn(Connect)) {
    for twin in [async_client as Connect, blocking_client] {
        let (done, is_done) = mpsc::channel();
        let thread = thread::spawn(move || {
            show(twin);
            let _ = done.send(());
        });
        let ended = is_done.recv_timeout(GUARD);
        assert!(ended != Err(mpsc::RecvTimeoutError::Timeout), "it hangs");
        if let Err(panic) = thread.join() {
            resume_unwind(panic);
        }
    }
}

fn async_client(service: &Service, clock: &Leaping) -> Client {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let builder = AsyncSandboxer::builder().ignore_env().no_proxy().api_key("key").base_url(&service.url);
    Twin::Async(Rc::new(runtime), builder.clock(clock.shared()).connect(CONNECT).build().unwrap())
}

fn blocking_client(service: &Service, clock: &Leaping) -> Client {
    let builder = Sandboxer::builder().ignore_env().no_proxy().api_key("key").base_url(&service.url);
    Twin::Blocking(builder.clock(clock.shared()).connect(CONNECT).build().unwrap())
}

impl Client {
    /// The one sandbox of these tests.
    pub(crate) fn sandbox(&self) -> Handle {
        of!(*self => sandbox("bx_1"))
    }

    /// A view of it.
    pub(crate) fn with(&self, options: CallOptions) -> Client {
        of!(*self => with(options))
    }
}

impl Handle {
    /// The events of the sandbox.
    pub(crate) fn events(&self, options: sandboxer::EventOptions) -> Events {
        match self {
            Twin::Async(runtime, sandbox) => Twin::Async(runtime.clone(), sandbox.events(options).unwrap()),
            Twin::Blocking(sandbox) => Twin::Blocking(sandbox.events(options).unwrap()),
        }
    }

    /// What was last heard of its state.
    pub(crate) fn state(&self) -> Option<String> {
        let info = match self {
            Twin::Async(_, sandbox) => sandbox.info(),
            Twin::Blocking(sandbox) => sandbox.info(),
        };
        info.map(|info| info.state.to_string())
    }
}

impl Events {
    /// The next event.
    pub(crate) fn next(&mut self) -> Option<Result<Event>> {
        match self {
            Twin::Async(runtime, stream) => runtime.block_on(stream.next()),
            Twin::Blocking(stream) => stream.next(),
        }
    }

    /// The cursor after the last event that was pulled.
    pub(crate) fn cursor(&self) -> Option<String> {
        match self {
            Twin::Async(_, stream) => stream.cursor().map(str::to_owned),
            Twin::Blocking(stream) => stream.cursor().map(str::to_owned),
        }
    }
}

impl Command {
    /// Follows the command.
    pub(crate) fn attach(&self, from: Offsets) -> Result<Attach> {
        Ok(match self {
            Twin::Async(runtime, command) => {
                Twin::Async(runtime.clone(), runtime.block_on(command.attach_from(from))?)
            }
            Twin::Blocking(command) => Twin::Blocking(command.attach_from(from)?),
        })
    }
}

impl Attach {
    /// The next piece of output.
    pub(crate) fn next(&mut self) -> Option<Result<Chunk>> {
        match self {
            Twin::Async(runtime, attach) => runtime.block_on(attach.next()),
            Twin::Blocking(attach) => attach.next(),
        }
    }

    /// Where the pieces pulled so far end.
    pub(crate) fn offsets(&self) -> Offsets {
        match self {
            Twin::Async(_, attach) => attach.offsets(),
            Twin::Blocking(attach) => attach.offsets(),
        }
    }

    /// Reads it to the end.
    pub(crate) fn wait(self) -> Result<Output> {
        match self {
            Twin::Async(runtime, attach) => runtime.block_on(attach.keep_output(1 << 20).wait()),
            Twin::Blocking(attach) => attach.keep_output(1 << 20).wait(),
        }
    }
}
