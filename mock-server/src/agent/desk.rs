//! What agents do in a sandbox right now.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::speech::Speech;
use crate::{
    app::{App, lock},
    job::Job,
    world::prompts::Prompt,
};

/// One sandbox.
#[derive(Default)]
pub(crate) struct Desk {
    changed: watch::Sender<u64>,
    /// What runs, by its conversation.
    turns: Mutex<HashMap<String, Arc<Running>>>,
}

impl Desk {
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(super) fn changed(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(super) fn turns(&self) -> Vec<Arc<Running>> {
        lock(&self.turns).values().cloned().collect()
    }

    pub(super) fn add(&self, turn: &Arc<Running>) {
        lock(&self.turns).insert(turn.prompt.conversation.clone(), turn.clone());
    }

    pub(super) fn remove(&self, turn: &Arc<Running>) {
        let mut turns = lock(&self.turns);
        // The next one of the conversation may have begun already.
        if turns.get(&turn.prompt.conversation).is_some_and(|there| Arc::ptr_eq(there, turn)) {
            turns.remove(&turn.prompt.conversation);
        }
    }

    /// The turn of a conversation.
    pub(crate) fn turn(&self, conversation: &str) -> Option<Arc<Running>> {
        lock(&self.turns).get(conversation).cloned()
    }
}

/// A message for an agent at work.
pub(crate) struct Letter {
    /// The record of the message.
    pub(crate) id: String,
    pub(crate) message: String,
}

/// How a message got to its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Into the turn.
    Native,
    /// The agent was interrupted, and goes on with the message.
    Fallback,
    /// The turn has come to its end meanwhile.
    TooLate,
}

#[derive(Default)]
struct Mail {
    letters: VecDeque<Letter>,
    /// The message that the agent is interrupted for.
    fallback: VecDeque<Letter>,
    is_closed: bool,
    /// Ends what the agent is at; what comes after it has another one.
    pass: CancellationToken,
}

/// A turn that goes on.
pub(crate) struct Running {
    pub(super) app: Arc<App>,
    pub(super) prompt: Prompt,
    mail: Mutex<Mail>,
    pub(super) arrived: Notify,
    interrupted: CancellationToken,
    /// Whether the agent looks whether it is interrupted.
    pub(super) looks: AtomicBool,
    jobs: Mutex<Vec<Arc<Job>>>,
    pub(super) speech: Mutex<Speech>,
    ended: CancellationToken,
}

impl Running {
    pub(super) fn new(app: &Arc<App>, prompt: Prompt) -> Arc<Self> {
        Arc::new(Self {
            app: app.clone(),
            prompt,
            mail: Mutex::default(),
            arrived: Notify::new(),
            interrupted: CancellationToken::new(),
            looks: AtomicBool::new(false),
            jobs: Mutex::default(),
            speech: Mutex::default(),
            ended: CancellationToken::new(),
        })
    }

    /// Ends it; its prompt has ended in the store already.
    pub(super) fn interrupt(&self) {
        self.interrupted.cancel();
    }

    pub(super) fn interrupted(&self) -> &CancellationToken {
        &self.interrupted
    }

    /// Begins what one call of the agent is good for.
    pub(super) fn begin_pass(&self) -> CancellationToken {
        let pass = self.interrupted.child_token();
        let mut mail = lock(&self.mail);
        mail.pass = pass.clone();
        // One that came while nobody was at work.
        if !mail.fallback.is_empty() {
            pass.cancel();
        }
        pass
    }

    /// Delivers a message, unless the turn has come to its end. `note` writes it down first, and is not called if not.
    pub(crate) fn deliver<E>(
        &self,
        letter: Letter,
        is_native: bool,
        note: impl FnOnce(&Letter) -> Result<(), E>,
    ) -> Result<Delivery, E> {
        let mut mail = lock(&self.mail);
        if mail.is_closed || self.interrupted.is_cancelled() {
            return Ok(Delivery::TooLate);
        }
        note(&letter)?;
        if is_native {
            mail.letters.push_back(letter);
            self.arrived.notify_one();
            return Ok(Delivery::Native);
        }
        mail.fallback.push_back(letter);
        mail.pass.cancel();
        Ok(Delivery::Fallback)
    }

    /// The messages that nobody took yet.
    pub(super) fn take_letters(&self) -> Vec<Letter> {
        lock(&self.mail).letters.drain(..).collect()
    }

    /// The next of them.
    pub(super) fn take_letter(&self) -> Option<Letter> {
        lock(&self.mail).letters.pop_front()
    }

    /// The message that the agent was interrupted for.
    pub(super) fn take_fallback(&self) -> Option<Letter> {
        lock(&self.mail).fallback.pop_front()
    }

    /// A message that still wants to be answered, and whether it went into the turn; from `None` on none is taken.
    pub(super) fn take_next_or_close(&self) -> Option<(Letter, bool)> {
        let mut mail = lock(&self.mail);
        if let Some(letter) = mail.fallback.pop_front() {
            return Some((letter, false));
        }
        let letter = mail.letters.pop_front();
        mail.is_closed |= letter.is_none();
        letter.map(|letter| (letter, true))
    }

    /// Takes no more messages.
    pub(super) fn close(&self) {
        lock(&self.mail).is_closed = true;
    }

    /// Watches over a command; ends it if what it was begun for has ended.
    pub(super) async fn add_job(&self, job: Arc<Job>, pass: &CancellationToken) {
        lock(&self.jobs).push(job.clone());
        if pass.is_cancelled() {
            job.kill().await;
        }
    }

    /// Ends every command.
    pub(super) async fn end_jobs(&self) {
        let jobs: Vec<Arc<Job>> = lock(&self.jobs).drain(..).collect();
        for job in jobs {
            if !job.has_ended() {
                job.kill().await;
            }
        }
    }

    /// Forgets a command that has ended.
    pub(super) fn forget_job(&self, job: &Arc<Job>) {
        lock(&self.jobs).retain(|other| !Arc::ptr_eq(other, job));
    }

    pub(super) fn has_ended(&self) {
        self.ended.cancel();
    }

    /// Waits until nothing of it goes on.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Notes that the agent looks whether it is interrupted.
    pub(super) fn looks(&self) {
        self.looks.store(true, Ordering::Relaxed);
    }
}
