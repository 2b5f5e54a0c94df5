//! The `process` runner: commands are plain processes of the server's own user, and nothing is fenced off.
//!
//! `HOME`, `TMPDIR`, `PWD` and the working folder point to the sandbox's folder on the host. Absolute paths inside a
//! command's text are not mapped: `cat /home/user/x` reads the host's `/home/user/x`.

mod marking;
mod members;
#[cfg(target_os = "linux")]
mod table;
#[cfg(not(target_os = "linux"))]
#[path = "table_ps.rs"]
mod table;
#[cfg(all(test, target_os = "linux"))]
#[expect(dead_code, reason = "the runner uses /proc here; this is checked all the same")]
mod table_ps;

use std::{
    collections::HashMap,
    fmt, fs, io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::{BoxFuture, join_all};
use sandboxer::clock::SharedClock;
#[cfg(target_os = "linux")]
use tokio::net::TcpStream;
use tokio::process::Command;

use self::{
    marking::{Marking, SpaceMarks, own_user},
    members::{CommandTree, SpaceTree},
};
use super::{
    CommandSpec, Output, ProcessSample, PtySize, Runner, RunnerError, RunnerOptions, Running, Space,
    env_program::EnvProgram,
    launch,
    running::Shared,
    streams::Streams,
    supervise::{pump, supervise},
    terminal::Terminal,
    tools,
    tree::{TreeControl, end_tree},
};
#[cfg(target_os = "linux")]
use super::{procfs::ProcTable, reach, sockets};

/// Runs commands as plain processes of the server's own user.
pub struct ProcessRunner {
    marking: Marking,
    sh: PathBuf,
    env: EnvProgram,
    user: String,
    clock: SharedClock,
    spaces: Mutex<HashMap<String, Arc<SpaceMarks>>>,
    closed: AtomicBool,
}

impl fmt::Debug for ProcessRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessRunner").field("marking", &self.marking).finish_non_exhaustive()
    }
}

impl ProcessRunner {
    /// Sets the runner up; finds out how commands can be marked here.
    pub async fn new(options: &RunnerOptions) -> Self {
        Self {
            marking: Marking::detect().await,
            sh: tools::find("sh").unwrap_or_else(|| "/bin/sh".into()),
            env: EnvProgram::new(tools::find("env").unwrap_or_else(|| "/usr/bin/env".into())).await,
            user: own_user(),
            clock: options.clock.clone(),
            spaces: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    async fn start(&self, space: &Space, mut spec: CommandSpec) -> Result<Running, RunnerError> {
        spec.check()?;
        if self.closed.load(Ordering::Acquire) {
            return Err(RunnerError::Unavailable("the server is shutting down".to_owned()));
        }
        let marks = self.marks(&space.id);
        let (name, value, variable) = marks.variable();
        if matches!(self.marking, Marking::Variable) {
            spec.env.push((name, value));
        }
        map_variables(space, &mut spec.env);
        let cwd = on_host(space, &spec.cwd);
        let mut command = match &self.marking {
            Marking::Namespace { chain, .. } => {
                launch::command(chain, &self.sh, &self.env, &spec, &cwd, None)
            }
            Marking::Variable => direct_command(&self.env, &spec, &cwd)?,
        };
        command.kill_on_drop(true);
        let (mut child, terminal) = match spec.pty {
            None => (command.process_group(0).spawn().map_err(|error| start_error(error, &spec))?, None),
            Some(size) => {
                let (child, terminal) = spawn_on_terminal(command, size, &spec)?;
                (child, Some(terminal))
            }
        };
        let main = child.id().ok_or_else(no_pipes)?;
        let mut streams = match &terminal {
            Some(terminal) => Streams::of_terminal(terminal),
            None => Streams::of_pipes(&mut child).ok_or_else(no_pipes)?,
        };
        let mark = match &self.marking {
            #[cfg(target_os = "linux")]
            Marking::Namespace { .. } => {
                streams.greet(&spec).await?;
                let mark = marks.namespace_of(main)?;
                streams.release(terminal.is_some()).await?;
                mark
            }
            _ => variable,
        };
        marks.main_started(main);

        let tree = Arc::new(CommandTree {
            main,
            mark: mark.clone(),
            main_ended: AtomicBool::new(false),
            known: Mutex::default(),
        });
        let control = Arc::new(TreeControl::new(tree.clone(), terminal, self.clock.clone()));
        let output = Output::for_spec(&spec);
        let stdin = streams.take_input(&spec);
        let mut pumps = vec![pump(streams.stdout, output.stdout().clone())];
        pumps.extend(streams.stderr.map(|stderr| pump(stderr, output.stderr().clone())));
        let shared = Shared::new(main, output, stdin, control);
        let running = shared.running();
        supervise(child, shared, pumps, self.clock.clone(), move |exit| {
            tree.main_ended.store(true, Ordering::Release);
            marks.main_ended(main, &mark);
            Box::pin(async move { exit })
        });
        Ok(running)
    }

    fn marks(&self, space_id: &str) -> Arc<SpaceMarks> {
        let mut spaces = self.spaces.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Arc::new(SpaceMarks::new(&self.marking));
        spaces.entry(space_id.to_owned()).or_insert_with(fresh).clone()
    }

    fn known_marks(&self, space_id: &str) -> Option<Arc<SpaceMarks>> {
        self.spaces.lock().unwrap_or_else(PoisonError::into_inner).get(space_id).cloned()
    }
}

/// Without a shell in between, where nothing needs preparing.
fn direct_command(env: &EnvProgram, spec: &CommandSpec, cwd: &Path) -> Result<Command, RunnerError> {
    if !cwd.is_dir() {
        return Err(RunnerError::BadCwd(spec.cwd.clone()));
    }
    let before = env.with_default_signals();
    if !before.is_empty() && !can_be_found(spec, cwd) {
        return Err(RunnerError::NotFound(spec.argv[0].clone()));
    }
    let mut words = before.iter().chain(&spec.argv);
    let mut command = Command::new(words.next().unwrap_or(&spec.argv[0]));
    command.args(words).env_clear().envs(spec.env.iter().map(|(name, value)| (name, value)));
    command.current_dir(cwd).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(if spec.stdin { Stdio::piped() } else { Stdio::null() });
    Ok(command)
}

/// Whether there is such a program, for what would not say so itself.
fn can_be_found(spec: &CommandSpec, cwd: &Path) -> bool {
    let program = &spec.argv[0];
    if program.contains('/') {
        return cwd.join(program).exists();
    }
    let path = spec.env.iter().rfind(|(name, _)| name == "PATH").map(|(_, value)| value.as_str());
    std::env::split_paths(path.unwrap_or("/usr/bin:/bin"))
        .any(|folder| cwd.join(folder).join(program).exists())
}

fn spawn_on_terminal(
    command: Command,
    size: PtySize,
    spec: &CommandSpec,
) -> Result<(tokio::process::Child, Terminal), RunnerError> {
    let (pty, pts) = pty_process::open().map_err(io::Error::other)?;
    pty.resize(pty_process::Size::new(size.rows, size.cols)).map_err(io::Error::other)?;
    let child = pty_process::Command::from(command).spawn(pts).map_err(|error| match error {
        pty_process::Error::Io(error) => start_error(error, spec),
        other => io::Error::other(other).into(),
    })?;
    Ok((child, Terminal::new(pty.into())?))
}

fn start_error(error: io::Error, spec: &CommandSpec) -> RunnerError {
    match error.kind() {
        io::ErrorKind::NotFound => RunnerError::NotFound(spec.argv[0].clone()),
        _ => error.into(),
    }
}

fn no_pipes() -> RunnerError {
    io::Error::other("the command has no pipes").into()
}

/// Where a path that the sandbox calls `/home/user/...` or `/tmp/...` is on the host; other paths are themselves.
fn on_host(space: &Space, path: &str) -> PathBuf {
    for (root, folder) in [("/home/user", space.home()), ("/tmp", space.tmp())] {
        match path.strip_prefix(root) {
            Some("") => return folder,
            Some(rest) if rest.starts_with('/') => return folder.join(rest.trim_start_matches('/')),
            _ => {}
        }
    }
    path.into()
}

fn map_variables(space: &Space, env: &mut Vec<(String, String)>) {
    for (name, default) in [("HOME", Some("/home/user")), ("TMPDIR", Some("/tmp")), ("PWD", None)] {
        let given = env.iter().position(|(existing, _)| existing == name);
        let value = given.map(|index| env.remove(index).1).or(default.map(str::to_owned));
        if let Some(value) = value {
            env.push((name.to_owned(), on_host(space, &value).to_string_lossy().into_owned()));
        }
    }
}

impl Runner for ProcessRunner {
    fn name(&self) -> &'static str {
        "process"
    }

    fn limitations(&self) -> Option<String> {
        let common = "the process runner isolates nothing: commands run as the server's own user, see the host's files \
                      and network, and absolute paths in a command's text are not mapped to the sandbox";
        let missed = match &self.marking {
            Marking::Namespace { kind: "cgroup", .. } => "",
            Marking::Namespace { .. } => "; set-user-id programs such as sudo do not work in them",
            Marking::Variable if cfg!(target_os = "linux") => {
                "; a process that leaves its session, loses its parent and clears its environment outlives a kill"
            }
            Marking::Variable => "; a process that leaves its session and loses its parent outlives a kill",
        };
        Some(format!("{common}{missed}"))
    }

    fn prepare<'a>(&'a self, space: &'a Space) -> BoxFuture<'a, io::Result<()>> {
        let space = space.clone();
        Box::pin(async move {
            let make = move || [space.home(), space.tmp()].iter().try_for_each(fs::create_dir_all);
            tokio::task::spawn_blocking(make).await.map_err(io::Error::other)?
        })
    }

    fn spawn<'a>(
        &'a self,
        space: &'a Space,
        spec: CommandSpec,
    ) -> BoxFuture<'a, Result<Running, RunnerError>> {
        Box::pin(self.start(space, spec))
    }

    fn end_space<'a>(&'a self, space_id: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let marks = self.spaces.lock().unwrap_or_else(PoisonError::into_inner).remove(space_id);
            if let Some(marks) = marks {
                end_tree(Arc::new(SpaceTree(marks)), Duration::ZERO, self.clock.clone()).await;
            }
        })
    }

    fn processes<'a>(&'a self, space: &'a Space) -> BoxFuture<'a, io::Result<Vec<ProcessSample>>> {
        Box::pin(async move {
            let Some(marks) = self.known_marks(&space.id) else { return Ok(Vec::new()) };
            let user = self.user.clone();
            let look = move || {
                let boot = table_boot()?;
                let rows = SpaceTree(marks).rows()?;
                Ok(rows.iter().filter_map(|row| row.sample(&boot, &user)).collect())
            };
            tokio::task::spawn_blocking(look).await.map_err(io::Error::other)?
        })
    }

    #[cfg(target_os = "linux")]
    fn connect<'a>(
        &'a self,
        space: &'a Space,
        port: u16,
        loopback: bool,
    ) -> BoxFuture<'a, io::Result<TcpStream>> {
        Box::pin(async move {
            let marks = self.known_marks(&space.id);
            let look = move || {
                let own = ProcTable::open("/proc")?.process(std::process::id())?;
                let all = sockets::listening(&own, port)?;
                let rows = marks.map(|marks| SpaceTree(marks).rows()).transpose()?.unwrap_or_default();
                // The network is the host's: only what a process of this sandbox holds is the sandbox's.
                let is_own = |inode| rows.iter().any(|row| row.holds_socket(&[inode]));
                sockets::own_places(all, is_own, port, loopback)
            };
            let places = tokio::task::spawn_blocking(look).await.map_err(io::Error::other)??;
            reach::directly(&places).await
        })
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.closed.store(true, Ordering::Release);
            let ids: Vec<String> =
                self.spaces.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect();
            join_all(ids.iter().map(|id| self.end_space(id))).await;
        })
    }
}

#[cfg(target_os = "linux")]
fn table_boot() -> io::Result<super::procfs::Boot> {
    super::procfs::Boot::read()
}

#[cfg(not(target_os = "linux"))]
fn table_boot() -> io::Result<table::Boot> {
    table::Boot::read()
}

#[cfg(test)]
mod tests {
    use sandboxer::clock::SystemClock;

    use super::*;
    use crate::runner::Exit;

    /// Where nothing better is there, the variable, the group and the parents find all but what leaves all three.
    #[tokio::test]
    async fn marked_by_a_variable_only_most_is_found() {
        let clock = SystemClock::shared();
        let runner = ProcessRunner {
            marking: Marking::Variable,
            ..ProcessRunner::new(&RunnerOptions::new(clock.clone())).await
        };
        let folder = tempfile::tempdir().unwrap();
        let space = Space::new("one", folder.path());
        runner.prepare(&space).await.unwrap();
        let line = "trap '' TERM; sleep 500 & setsid sleep 500 & (sleep 500 &) ; (setsid sleep 500 &) ; echo ready; wait";
        let mut spec = CommandSpec::new(["sh", "-c", line]);
        spec.env = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let first = runner.spawn(&space, spec.clone()).await.unwrap();
        let second = runner.spawn(&space, spec).await.unwrap();
        for running in [&first, &second] {
            running.output().stdout().changed_since(0).await;
        }
        while runner.processes(&space).await.unwrap().len() < 10 {
            clock.sleep(Duration::from_millis(5)).await;
        }
        first.kill_tree(Duration::from_millis(20)).await;
        assert_eq!(first.wait().await, Exit::with_signal(9));
        assert_eq!(runner.processes(&space).await.unwrap().len(), 5);
        runner.end_space("one").await;
        assert_eq!(second.wait().await, Exit::with_signal(9));
        assert_eq!(SpaceTree(runner.marks("one")).rows().unwrap().len(), 0);
    }

    #[test]
    fn paths_and_variables_are_mapped_to_the_space() {
        let space = Space::new("one", "/data/one");
        for (given, mapped) in [
            ("/home/user", "/data/one/home/user"),
            ("/home/user/a/b", "/data/one/home/user/a/b"),
            ("/tmp//x", "/data/one/tmp/x"),
            ("/home/username", "/home/username"),
            ("/usr", "/usr"),
        ] {
            assert_eq!(on_host(&space, given), Path::new(mapped));
        }
        let mut env = vec![("HOME".to_owned(), "/home/user".to_owned()), ("X".to_owned(), "/tmp".to_owned())];
        map_variables(&space, &mut env);
        let entry = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            env,
            [entry("X", "/tmp"), entry("HOME", "/data/one/home/user"), entry("TMPDIR", "/data/one/tmp")]
        );
    }
}
