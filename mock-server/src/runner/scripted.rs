//! The `scripted` runner: commands that print what a test says, when it says so, without a process anywhere.

use std::{
    collections::HashMap,
    fmt, fs, io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::future::{BoxFuture, join_all};
use sandboxer::clock::SharedClock;
use tokio::{
    io::{AsyncReadExt as _, DuplexStream},
    sync::watch,
};

use super::{
    CommandSpec, Exit, Output, ProcessSample, PtySize, Runner, RunnerError, Running, Space, Stdin,
    running::{Control, Shared},
    tree::signal_from,
};

const SIGNAL_KILL: i32 = 9;
const SIGNAL_TERM: i32 = 15;
/// Signals that end a script; the others are ignored.
const ENDING_SIGNALS: [i32; 7] = [1, 2, 3, 6, SIGNAL_KILL, 13, SIGNAL_TERM];
const NOT_FOUND: i32 = 127;
const INPUT_BUFFER: usize = 64 * 1024;

#[derive(Clone, Debug)]
enum Step {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    Pause(Duration),
    EchoInput,
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    Exit(Exit),
    Never,
}

/// What a command prints and how it ends.
///
/// ```
/// use sandboxer_mock_server::runner::Script;
/// use std::time::Duration;
///
/// let script = Script::new().stdout("working\n").pause(Duration::from_secs(2)).stderr("failed\n").exit(3);
/// # let _ = script;
/// ```
#[derive(Clone, Debug)]
pub struct Script {
    steps: Vec<Step>,
    ending: Ending,
    ignores_term: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self::new()
    }
}

impl Script {
    /// Prints nothing and exits with 0.
    pub fn new() -> Self {
        Self { steps: Vec::new(), ending: Ending::Exit(Exit::with_code(0)), ignores_term: false }
    }

    /// Writes to standard output.
    pub fn stdout(self, bytes: impl AsRef<[u8]>) -> Self {
        self.step(Step::Stdout(bytes.as_ref().to_vec()))
    }

    /// Writes to standard error; with a terminal that is standard output.
    pub fn stderr(self, bytes: impl AsRef<[u8]>) -> Self {
        self.step(Step::Stderr(bytes.as_ref().to_vec()))
    }

    /// Waits, on the runner's clock.
    pub fn pause(self, duration: Duration) -> Self {
        self.step(Step::Pause(duration))
    }

    /// Copies its input to standard output until the input ends.
    pub fn echo_input(self) -> Self {
        self.step(Step::EchoInput)
    }

    /// Ends with that exit code.
    pub fn exit(mut self, code: i32) -> Self {
        self.ending = Ending::Exit(Exit::with_code(code));
        self
    }

    /// Ends as if that signal had hit it.
    pub fn die_of(mut self, signal: i32) -> Self {
        self.ending = Ending::Exit(Exit::with_signal(signal));
        self
    }

    /// Ends as if the kernel had ended it for lack of memory.
    pub fn out_of_memory(mut self) -> Self {
        self.ending = Ending::Exit(Exit { oom_killed: true, ..Exit::with_signal(SIGNAL_KILL) });
        self
    }

    /// Does not end by itself.
    pub fn never_end(mut self) -> Self {
        self.ending = Ending::Never;
        self
    }

    /// Ignores TERM: ending it takes the whole grace and then KILL.
    pub fn ignore_term(mut self) -> Self {
        self.ignores_term = true;
        self
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

type Matcher = Box<dyn Fn(&CommandSpec) -> bool + Send + Sync>;

/// Answers commands from scripts.
pub struct ScriptedRunner {
    clock: SharedClock,
    rules: Mutex<Vec<(Matcher, Script)>>,
    next_pid: AtomicU32,
    commands: Mutex<HashMap<String, Vec<Arc<ScriptedControl>>>>,
}

impl fmt::Debug for ScriptedRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedRunner").finish_non_exhaustive()
    }
}

impl ScriptedRunner {
    /// A runner without rules: every command exits with 127.
    pub fn new(clock: SharedClock) -> Self {
        Self { clock, rules: Mutex::default(), next_pid: AtomicU32::new(2), commands: Mutex::default() }
    }

    /// Commands whose text begins with `prefix` follow `script`. Later rules go before earlier ones.
    ///
    /// The text is the shell line of `sh -c LINE` and the like, else the arguments joined by spaces.
    pub fn on(&self, prefix: impl Into<String>, script: Script) -> &Self {
        let prefix = prefix.into();
        self.on_match(move |spec| command_text(spec).starts_with(&prefix), script)
    }

    /// Commands that `matches` follow `script`. Later rules go before earlier ones.
    pub fn on_match(
        &self,
        matches: impl Fn(&CommandSpec) -> bool + Send + Sync + 'static,
        script: Script,
    ) -> &Self {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner).push((Box::new(matches), script));
        self
    }

    fn script_for(&self, spec: &CommandSpec) -> Script {
        let rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        match rules.iter().rev().find(|(matches, _)| matches(spec)) {
            Some((_, script)) => script.clone(),
            None => Script::new().stderr(format!("not scripted: {}\n", command_text(spec))).exit(NOT_FOUND),
        }
    }

    fn start(&self, space: &Space, spec: &CommandSpec) -> Result<Running, RunnerError> {
        spec.check()?;
        let script = self.script_for(spec);
        let (signals, signalled) = watch::channel(None);
        let (input, stdin) = match spec.stdin || spec.pty.is_some() {
            false => (None, None),
            true => {
                let (theirs, ours) = tokio::io::duplex(INPUT_BUFFER);
                (Some(theirs), Some(Stdin::pipe(ours)))
            }
        };
        let control = Arc::new(ScriptedControl {
            signals,
            ignores_term: script.ignores_term,
            terminal: spec.pty.is_some(),
            clock: self.clock.clone(),
        });
        let pid = self.next_pid.fetch_add(1, Ordering::Relaxed);
        let shared = Shared::new(pid, Output::for_spec(spec), stdin, control.clone());
        let running = shared.running();
        {
            let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
            let commands = commands.entry(space.id.clone()).or_default();
            commands.retain(|command| !command.signals.is_closed());
            commands.push(control);
        }
        let (clock, terminal) = (self.clock.clone(), spec.pty.is_some());
        tokio::spawn(async move {
            let exit = tokio::select! {
                exit = play(&script, &shared.output, input, terminal, &clock) => exit,
                signal = ended_by(signalled) => Exit::with_signal(signal),
            };
            shared.finish(exit);
        });
        Ok(running)
    }
}

async fn play(
    script: &Script,
    output: &Output,
    mut input: Option<DuplexStream>,
    terminal: bool,
    clock: &SharedClock,
) -> Exit {
    for step in &script.steps {
        match step {
            Step::Stdout(bytes) => output.stdout().write(bytes).await,
            Step::Stderr(bytes) if terminal => output.stdout().write(bytes).await,
            Step::Stderr(bytes) => output.stderr().write(bytes).await,
            Step::Pause(duration) => clock.sleep(*duration).await,
            Step::EchoInput => {
                let mut buffer = vec![0; INPUT_BUFFER];
                while let Some(input) = &mut input
                    && let Ok(count @ 1..) = input.read(&mut buffer).await
                {
                    output.stdout().write(&buffer[..count]).await;
                }
            }
        }
    }
    match script.ending {
        Ending::Exit(exit) => exit,
        Ending::Never => std::future::pending().await,
    }
}

async fn ended_by(mut signals: watch::Receiver<Option<i32>>) -> i32 {
    let signal = signals.wait_for(Option::is_some).await.ok().and_then(|signal| *signal);
    match signal {
        Some(signal) => signal,
        None => std::future::pending().await,
    }
}

fn command_text(spec: &CommandSpec) -> String {
    match spec.argv.as_slice() {
        [shell, flag, line] if shell.ends_with("sh") && flag.starts_with('-') && flag.ends_with('c') => {
            line.clone()
        }
        argv => argv.join(" "),
    }
}

struct ScriptedControl {
    signals: watch::Sender<Option<i32>>,
    ignores_term: bool,
    terminal: bool,
    clock: SharedClock,
}

impl ScriptedControl {
    fn send(&self, signal: i32) {
        if ENDING_SIGNALS.contains(&signal) && !(signal == SIGNAL_TERM && self.ignores_term) {
            self.signals.send_if_modified(|sent| {
                let first = sent.is_none();
                sent.get_or_insert(signal);
                first
            });
        }
    }
}

impl Control for ScriptedControl {
    fn resize(&self, _: PtySize) -> io::Result<()> {
        match self.terminal {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::Unsupported, "the command has no terminal")),
        }
    }

    fn signal(&self, signal: i32) -> BoxFuture<'_, io::Result<()>> {
        let sent = signal_from(signal).map(|_| self.send(signal));
        Box::pin(async move { sent })
    }

    fn kill_tree(&self, grace: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if !grace.is_zero() {
                self.send(SIGNAL_TERM);
                tokio::select! {
                    () = self.signals.closed() => return,
                    () = self.clock.sleep(grace) => {}
                }
            }
            self.send(SIGNAL_KILL);
            self.signals.closed().await;
        })
    }
}

impl Runner for ScriptedRunner {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn limitations(&self) -> Option<String> {
        Some("commands are scripted: no process runs, and no command touches a file".to_owned())
    }

    fn prepare<'a>(&'a self, space: &'a Space) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(async move {
            fs::create_dir_all(space.home())?;
            fs::create_dir_all(space.tmp())
        })
    }

    fn spawn<'a>(
        &'a self,
        space: &'a Space,
        spec: CommandSpec,
    ) -> BoxFuture<'a, Result<Running, RunnerError>> {
        Box::pin(async move { self.start(space, &spec) })
    }

    fn end_space<'a>(&'a self, space_id: &'a str) -> BoxFuture<'a, ()> {
        let commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner).remove(space_id);
        Box::pin(async move {
            join_all(commands.iter().flatten().map(|command| command.kill_tree(Duration::ZERO))).await;
        })
    }

    fn processes<'a>(&'a self, _: &'a Space) -> BoxFuture<'a, io::Result<Vec<ProcessSample>>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let ids: Vec<String> =
                self.commands.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect();
            join_all(ids.iter().map(|id| self.end_space(id))).await;
        })
    }
}
