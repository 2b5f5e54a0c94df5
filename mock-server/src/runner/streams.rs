//! The server's ends of a command's input and output.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

use super::{CommandSpec, RunnerError, Stdin, launch, terminal::Terminal};

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// The server's ends of what the command reads and writes.
pub(crate) struct Streams {
    /// `None` if the command was started with an empty input.
    pub(crate) stdin: Option<Writer>,
    pub(crate) stdout: Reader,
    pub(crate) stderr: Option<Reader>,
}

impl Streams {
    /// The pipes of `child`; `None` if its output is not piped.
    pub(crate) fn of_pipes(child: &mut tokio::process::Child) -> Option<Self> {
        let (stdout, stderr) = (child.stdout.take()?, child.stderr.take()?);
        let stdin = child.stdin.take().map(|stdin| Box::new(stdin) as Writer);
        Some(Self { stdin, stdout: Box::new(stdout), stderr: Some(Box::new(stderr)) })
    }

    /// Both directions of a terminal.
    pub(crate) fn of_terminal(terminal: &Terminal) -> Self {
        Self { stdin: Some(Box::new(terminal.clone())), stdout: Box::new(terminal.clone()), stderr: None }
    }

    /// Reads the process id that the launch lines report.
    pub(crate) async fn greet(&mut self, spec: &CommandSpec) -> Result<u32, RunnerError> {
        launch::read_pid(&mut self.stdout, self.stderr.as_mut(), spec).await
    }

    /// The command's input for whoever started it, if it is to have one.
    pub(crate) fn take_input(&mut self, spec: &CommandSpec) -> Option<Stdin> {
        // What is not handed out is closed here.
        let stdin = self.stdin.take()?;
        match spec.pty {
            Some(_) => Some(Stdin::terminal(stdin)),
            None => spec.stdin.then(|| Stdin::pipe(stdin)),
        }
    }

    /// Lets the command go.
    pub(crate) async fn release(&mut self, terminal: bool) -> io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        launch::go_ahead(stdin).await?;
        if terminal {
            launch::skip_echo(&mut self.stdout).await?;
        }
        Ok(())
    }
}
