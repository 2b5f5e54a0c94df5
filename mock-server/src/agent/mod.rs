//! Agents: what answers the prompts of a sandbox.
//!
//! The one that is built in knows no language model: it runs each fenced `sh` block of a prompt in the sandbox, as real
//! commands, and says what came of it; a prompt without one gets a fixed answer. A test puts its own in its place, a
//! closure that is given each [`Turn`]:
//!
//! ```
//! use sandboxer_mock_server::MockServer;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
//! let server = MockServer::start();
//! server.set_agent(|turn| async move {
//!     let listed = turn.run("ls /").await?;
//!     turn.say(format!("{} entries", listed.stdout.lines().count())).await;
//!     Ok(())
//! });
//! let sandbox = server.client().create(sandboxer::Create::new()).await?;
//! let answer = sandbox.prompt("how many entries has the root folder?").await?.text().await?;
//! assert!(answer.ends_with("entries"));
//! # Ok(()) }
//! ```

mod builtin;
mod desk;
mod end;
mod fences;
mod speech;
mod submit;
mod turn;
mod work;

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock},
};

use tokio::{runtime::Handle, sync::watch};

use self::desk::{Desk, Running};
pub(crate) use self::{
    desk::{Delivery, Letter},
    end::{Ending, end_open, interrupt, keep_awake},
    submit::{Ask, Target, queue_steer, submit},
    work::{forget, take_up, waiting, wake},
};
pub use self::{
    submit::{Attachment, Citation, PersonPrompt},
    turn::{ToolOutput, Turn},
};
use crate::{
    app::{App, lock},
    world::seed_agents::AgentsSeed,
};

/// Why an agent gave up: the prompt has failed, and this is its error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentError(String);

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AgentError {}

impl From<String> for AgentError {
    fn from(why: String) -> Self {
        Self(why)
    }
}

impl From<&str> for AgentError {
    fn from(why: &str) -> Self {
        Self(why.to_owned())
    }
}

type Working = Pin<Box<dyn Future<Output = Result<(), AgentError>> + Send>>;

/// Something that answers prompts.
#[derive(Clone)]
pub(crate) struct Agent(Arc<dyn Fn(Turn) -> Working + Send + Sync>);

impl Agent {
    /// The one that is given each turn.
    pub(crate) fn new<F, W>(agent: F) -> Self
    where
        F: Fn(Turn) -> W + Send + Sync + 'static,
        W: Future<Output = Result<(), AgentError>> + Send + 'static,
    {
        Self(Arc::new(move |turn| Box::pin(agent(turn))))
    }

    fn begin(&self, turn: Turn) -> Working {
        (self.0)(turn)
    }
}

impl Default for Agent {
    fn default() -> Self {
        Self::new(builtin::answer)
    }
}

/// What the server knows of agents besides their records.
#[derive(Default)]
pub(crate) struct Agents {
    agent: Mutex<Agent>,
    settings: Mutex<AgentsSeed>,
    desks: Mutex<HashMap<String, Arc<Desk>>>,
    runtime: OnceLock<Handle>,
}

impl Agents {
    /// Puts an agent in the place of the one there is; turns that run go on with theirs.
    pub(crate) fn install(&self, agent: Agent) {
        *lock(&self.agent) = agent;
    }

    fn agent(&self) -> Agent {
        lock(&self.agent).clone()
    }

    /// How agents are set up.
    pub(crate) fn settings(&self) -> AgentsSeed {
        lock(&self.settings).clone()
    }

    /// Sets them up.
    pub(crate) fn set(&self, settings: AgentsSeed) {
        *lock(&self.settings) = settings;
    }

    /// Remembers where the server's work is done.
    fn runs_on(&self, runtime: Handle) {
        let _ = self.runtime.set(runtime);
    }

    /// [`wake`], called by a thread that is not the server's.
    pub(crate) fn wake_from_outside(&self, app: &Arc<App>, sandbox: &str) {
        if let Some(runtime) = self.runtime.get() {
            app.tasks.spawn_on(wake(app.clone(), sandbox.to_owned()), runtime);
        }
    }

    /// What goes on in a sandbox.
    pub(crate) fn desk(&self, sandbox: &str) -> Arc<Desk> {
        lock(&self.desks).entry(sandbox.to_owned()).or_default().clone()
    }

    /// Takes a turn that has ended off the desk of its sandbox, unless that is gone.
    fn ended(&self, turn: &Arc<Running>) {
        let desk = lock(&self.desks).get(&turn.prompt.sandbox).cloned();
        if let Some(desk) = desk {
            desk.remove(turn);
        }
    }

    /// Goes up whenever an event of a sandbox was written; ends with the sandbox.
    pub(crate) fn watch(&self, sandbox: &str) -> watch::Receiver<u64> {
        self.desk(sandbox).watch()
    }

    /// An event of a sandbox was written.
    pub(crate) fn changed(&self, sandbox: &str) {
        if let Some(desk) = lock(&self.desks).get(sandbox) {
            desk.changed();
        }
    }

    /// Ends what agents do in a sandbox; their prompts have ended in the store already.
    pub(crate) fn cancel(&self, sandbox: &str) {
        let desk = lock(&self.desks).get(sandbox).cloned();
        if let Some(desk) = desk {
            desk.turns().iter().for_each(|turn| turn.interrupt());
            desk.changed();
        }
    }

    /// The same, for a sandbox that is gone; whoever follows its events is told.
    pub(crate) fn forget(&self, sandbox: &str) {
        let desk = lock(&self.desks).remove(sandbox);
        if let Some(desk) = desk {
            desk.turns().iter().for_each(|turn| turn.interrupt());
        }
    }
}
