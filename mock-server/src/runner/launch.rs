//! The last step before a command: a few lines of shell that run where the command will run.
//!
//! They enter the working folder, rebuild the environment, report their process id and wait for a go-ahead; then they
//! become the command. That answers four needs at once. The tools that build the sandbox never see the user's variables
//! (`LD_PRELOAD` would run in them, as root). A failure of the set-up cannot be taken for the command's own. The command's
//! process id is known, and its mark can be read, before it can do anything. And a start that is given up ends by itself:
//! the go-ahead never comes.

use std::{io, path::Path, process::Stdio};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::Command,
};

use super::{CommandSpec, RunnerError, env_program::EnvProgram};

/// Longer than any first line that is ours.
const FIRST_LINE_LIMIT: usize = 64;
/// How much of a failed set-up's own words is kept.
const COMPLAINT_LIMIT: usize = 2000;

const SCRIPT: &str = r#"
cd "$1" 2>/dev/null || { echo cwd; exit 1; }
_sandbox_input=$2 _sandbox_left=$3 _sandbox_program=$4
[ "$5" = - ] || ulimit -u "$5" 2>/dev/null || ulimit -p "$5" 2>/dev/null
shift 5
while [ "$_sandbox_left" -gt 0 ]; do
  _sandbox_left=$((_sandbox_left - 1))
  eval "export \"\$_SANDBOX_VARIABLE_$_sandbox_left\"; unset _SANDBOX_VARIABLE_$_sandbox_left"
done
command -v "$_sandbox_program" >/dev/null 2>&1 || { echo program; exit 1; }
echo "$$"
read -r _sandbox_go || exit 1
[ "$_sandbox_input" = none ] && exec </dev/null
unset OLDPWD
exec "$@"
"#;

/// Names that a shell treats as its own or refuses to set.
const SHELL_NAMES: [&str; 17] = [
    "BASHOPTS",
    "BASH_VERSINFO",
    "DIRSTACK",
    "EUID",
    "FUNCNAME",
    "GROUPS",
    "IFS",
    "LINENO",
    "OLDPWD",
    "OPTIND",
    "PPID",
    "PWD",
    "RANDOM",
    "SECONDS",
    "SHELLOPTS",
    "UID",
    "_",
];

/// A command line in the making: what is put in front, then the shell lines, then the command. With `processes`, its
/// user may not have more processes than that.
pub(crate) fn command(
    chain: &[String],
    sh: &Path,
    env: &EnvProgram,
    spec: &CommandSpec,
    cwd: &Path,
    processes: Option<u32>,
) -> Command {
    let first = env.with_default_signals();
    let mut words = chain.iter().chain(&first).map(Path::new).chain([sh]);
    let mut command = Command::new(words.next().unwrap_or(sh));
    command.args(words);
    command.env_clear();
    let (plain, odd): (Vec<_>, Vec<_>) = spec.env.iter().partition(|(name, _)| shell_can_set(name));
    for (index, (name, value)) in plain.iter().enumerate() {
        command.env(format!("_SANDBOX_VARIABLE_{index}"), format!("{name}={value}"));
    }
    command.args(["-c", SCRIPT, "sh"]).arg(cwd);
    command.arg(if spec.stdin || spec.pty.is_some() { "given" } else { "none" });
    command.arg(plain.len().to_string()).arg(&spec.argv[0]);
    // Shells call this limit by different letters, and some have no word for it.
    command.arg(processes.map_or_else(|| "-".to_owned(), |count| count.to_string()));
    command.args(env.with_variables(odd)).args(&spec.argv);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn shell_can_set(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
        && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        && !SHELL_NAMES.contains(&name)
        && !name.starts_with("_sandbox_")
        && !name.starts_with("_SANDBOX_")
}

/// Reads the first line: the process id of what will be the command, or why there is none.
pub(crate) async fn read_pid(
    stdout: &mut (impl AsyncRead + Unpin),
    stderr: Option<&mut (impl AsyncRead + Unpin)>,
    spec: &CommandSpec,
) -> Result<u32, RunnerError> {
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') && line.len() < FIRST_LINE_LIMIT {
        match stdout.read_u8().await {
            Ok(byte) => line.push(byte),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error.into()),
        }
    }
    let line = String::from_utf8_lossy(&line).into_owned();
    match line.trim_end() {
        "cwd" => return Err(RunnerError::BadCwd(spec.cwd.clone())),
        "program" => return Err(RunnerError::NotFound(spec.argv[0].clone())),
        number => {
            if let Ok(pid) = number.parse() {
                return Ok(pid);
            }
        }
    }
    let mut complaint = line.into_bytes();
    stdout.take(COMPLAINT_LIMIT as u64).read_to_end(&mut complaint).await?;
    if let Some(stderr) = stderr {
        stderr.take(COMPLAINT_LIMIT as u64).read_to_end(&mut complaint).await?;
    }
    let complaint = String::from_utf8_lossy(&complaint).trim().to_owned();
    Err(RunnerError::Io(io::Error::other(format!("the sandbox could not be entered: {complaint}"))))
}

/// Lets the command go.
pub(crate) async fn go_ahead(stdin: &mut (impl tokio::io::AsyncWrite + Unpin)) -> io::Result<()> {
    stdin.write_all(b"\n").await?;
    stdin.flush().await
}

/// A terminal echoes the go-ahead: reads that line away.
pub(crate) async fn skip_echo(terminal: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    while terminal.read_u8().await? != b'\n' {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_a_shell_cannot_carry_are_told_apart() {
        for name in ["PATH", "_x", "A1", "LD_PRELOAD"] {
            assert!(shell_can_set(name), "{name}");
        }
        for name in ["", "1A", "a.b", "a-b", "é", "UID", "IFS", "_sandbox_left", "_SANDBOX_VARIABLE_1"] {
            assert!(!shell_can_set(name), "{name}");
        }
    }

    #[tokio::test]
    async fn the_first_line_is_understood() {
        let spec = CommandSpec::new(["x"]);
        let none = || None::<&mut &[u8]>;
        assert_eq!(read_pid(&mut &b"42\r\nmore"[..], none(), &spec).await.unwrap(), 42);
        assert!(matches!(read_pid(&mut &b"cwd\n"[..], none(), &spec).await, Err(RunnerError::BadCwd(_))));
        assert!(matches!(
            read_pid(&mut &b"program\n"[..], none(), &spec).await,
            Err(RunnerError::NotFound(_))
        ));
        let failed = read_pid(&mut &b""[..], Some(&mut &b"setpriv: no\n"[..]), &spec).await.unwrap_err();
        assert_eq!(
            failed.to_string(),
            "the command could not be started: the sandbox could not be entered: setpriv: no"
        );
    }
}
