//! Which reply meets which request.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sandboxer::{Operation, clock::SharedClock};

use super::{Reply, Wire};
use crate::record::Recorded;

type Predicate = Arc<dyn Fn(&Recorded) -> bool + Send + Sync>;

/// The scripts of one server and the faults of its wire. Cloning gives another handle to the same.
#[derive(Clone)]
pub struct Faults {
    pub(super) clock: SharedClock,
    wire: Wire,
    rules: Arc<Mutex<Rules>>,
}

#[derive(Default)]
struct Rules {
    next: u64,
    list: Vec<Rule>,
}

struct Rule {
    number: u64,
    /// Any operation if none is named.
    operation: Option<Operation>,
    predicates: Vec<Predicate>,
    steps: VecDeque<Step>,
    used: u64,
}

struct Step {
    number: u64,
    reply: Reply,
    /// For ever if no count is left.
    left: Option<u64>,
}

impl Faults {
    /// No faults yet; delays will be slept on `clock`.
    pub fn new(clock: SharedClock) -> Self {
        Self { clock, wire: Wire::default(), rules: Arc::default() }
    }

    /// Starts a script for one operation. A command that asks for a stream is [`Operation::CommandStream`], and
    /// events as a stream are [`Operation::EventsStream`].
    pub fn on(&self, operation: Operation) -> Script {
        self.script(Some(operation))
    }

    /// Starts a script for every operation.
    pub fn on_any(&self) -> Script {
        self.script(None)
    }

    /// The faults of connections.
    pub fn wire(&self) -> &Wire {
        &self.wire
    }

    /// Takes back every script and every fault of the wire that has not happened yet.
    pub fn clear(&self) {
        self.lock().list.clear();
        self.wire.clear();
    }

    /// Takes the reply that a request is to meet, from the oldest script that has one for it.
    pub fn next(&self, operation: Operation, request: &Recorded) -> Option<Reply> {
        // The predicates are a test's own code, which may well use this server: they run without the lock.
        let candidates: Vec<(u64, Vec<Predicate>)> = {
            let rules = self.lock();
            let open = rules.list.iter().filter(|rule| {
                !rule.steps.is_empty() && rule.operation.is_none_or(|wanted| wanted == operation)
            });
            open.map(|rule| (rule.number, rule.predicates.clone())).collect()
        };
        candidates
            .into_iter()
            .filter(|(_, predicates)| predicates.iter().all(|predicate| predicate(request)))
            .find_map(|(number, _)| self.lock().take(number))
    }

    fn script(&self, operation: Option<Operation>) -> Script {
        let mut rules = self.lock();
        let number = rules.number();
        rules.list.push(Rule { number, operation, predicates: Vec::new(), steps: VecDeque::new(), used: 0 });
        Script { faults: self.clone(), rule: number, step: None }
    }

    fn lock(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.lock().list.iter().filter(|rule| !rule.steps.is_empty()).count();
        f.debug_struct("Faults")
            .field("open_scripts", &open)
            .field("wire", &self.wire)
            .finish_non_exhaustive()
    }
}

impl Rules {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn rule(&mut self, number: u64) -> Option<&mut Rule> {
        self.list.iter_mut().find(|rule| rule.number == number)
    }

    /// The next reply of a rule, if another request has not taken it meanwhile.
    fn take(&mut self, number: u64) -> Option<Reply> {
        let rule = self.rule(number)?;
        let step = rule.steps.front_mut()?;
        let reply = step.reply.clone();
        if let Some(left) = &mut step.left {
            *left -= 1;
            if *left == 0 {
                rule.steps.pop_front();
            }
        }
        rule.used += 1;
        Some(reply)
    }
}

/// A script that is being written. Each reply is in force from the moment it is given; the script stays in force when
/// this handle is dropped.
#[derive(Clone)]
pub struct Script {
    faults: Faults,
    rule: u64,
    step: Option<u64>,
}

impl Script {
    /// Limits the whole script to requests that meet a condition.
    pub fn when(self, condition: impl Fn(&Recorded) -> bool + Send + Sync + 'static) -> Self {
        if let Some(rule) = self.faults.lock().rule(self.rule) {
            rule.predicates.push(Arc::new(condition));
        }
        self
    }

    /// Adds a reply for one request, after those already given. [`Reply::pass`] lets a request through to the real world.
    pub fn reply(mut self, reply: Reply) -> Self {
        let mut rules = self.faults.lock();
        let number = rules.number();
        if let Some(rule) = rules.rule(self.rule) {
            rule.steps.push_back(Step { number, reply, left: Some(1) });
        }
        drop(rules);
        self.step = Some(number);
        self
    }

    /// Gives the last reply to so many requests instead of one.
    pub fn times(self, count: u64) -> Self {
        self.repeat(Some(count))
    }

    /// Gives the last reply to every request from then on.
    pub fn always(self) -> Self {
        self.repeat(None)
    }

    /// How many requests have met this script.
    pub fn hits(&self) -> u64 {
        self.faults.lock().rule(self.rule).map_or(0, |rule| rule.used)
    }

    fn repeat(self, left: Option<u64>) -> Self {
        if let Some(rule) = self.faults.lock().rule(self.rule)
            && let Some(index) = rule.steps.iter().position(|step| Some(step.number) == self.step)
        {
            if left == Some(0) {
                rule.steps.remove(index);
            } else {
                rule.steps[index].left = left;
            }
        }
        self
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script").field("hits", &self.hits()).finish_non_exhaustive()
    }
}
