//! What to run: a shell line or an argument list, with its folder, variables and time limit.

use std::{borrow::Cow, collections::BTreeMap, fmt, time::Duration};

use crate::wire::InvalidField;

/// A command for a sandbox: what to run, where, with which variables and for how long at most.
///
/// A text is a shell line; a list is a program with its arguments, which reach it exactly as written, whatever spaces
/// or quotes they hold. Nothing is checked while a command is put together: a bad one is refused by the verb it is
/// given to, with [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput), before anything is sent.
///
/// ```
/// use sandboxer::Command;
/// use std::time::Duration;
///
/// let line = Command::shell("make test | tee log").cwd("app").env("CI", "1").timeout(Duration::from_secs(120));
/// assert_eq!(line.shell_line().unwrap(), "make test | tee log");
///
/// let list = Command::argv(["ls", "-la", "my dir"]).envs([("LC_ALL", "C"), ("TZ", "UTC")]); // or Command::from
/// assert_eq!(list.shell_line().unwrap(), "ls -la 'my dir'");
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use = "a command does nothing until a verb runs it"]
pub struct Command {
    line: Line,
    cwd: Option<String>,
    env: BTreeMap<String, String>,
    timeout: Option<Duration>,
}

#[derive(Clone, PartialEq, Eq)]
enum Line {
    Shell(String),
    Argv(Vec<String>),
}

/// A command that was checked, as the service takes it.
#[derive(Clone)]
pub(crate) struct CheckedCommand {
    pub(crate) line: String,
    pub(crate) cwd: Option<String>,
    pub(crate) env: BTreeMap<String, String>,
    /// The limit the caller named, if any.
    pub(crate) limit: Option<Duration>,
}

impl Command {
    /// A line for the sandbox's shell: pipes, redirections and variables work. At most 1 MiB, no NUL.
    pub fn shell(line: impl Into<String>) -> Self {
        Self::new(Line::Shell(line.into()))
    }

    /// A program and its arguments, each passed on exactly as written. The list must not be empty.
    ///
    /// The service takes shell text, so the list is quoted into a line; a first word that is a builtin of the shell,
    /// such as `cd` or `exit`, is therefore the builtin.
    pub fn argv<I>(words: I) -> Self
    where
        I: IntoIterator,
        I::Item: Into<String>,
    {
        Self::new(Line::Argv(words.into_iter().map(Into::into).collect()))
    }

    fn new(line: Line) -> Self {
        Self { line, cwd: None, env: BTreeMap::new(), timeout: None }
    }

    /// The folder to run in, absolute or relative to the sandbox's home folder. At most 4096 bytes, no NUL.
    pub fn cwd(mut self, folder: impl Into<String>) -> Self {
        self.cwd = Some(folder.into());
        self
    }

    /// Sets a variable for this command alone; it wins over the sandbox's variable of that name.
    ///
    /// The name is a letter or `_` followed by at most 127 letters, digits and `_`. The variables travel in the call's
    /// own field, not in the command's text, so they stay out of the command history; their values are never printed.
    /// [`Dialect::Boat`](crate::Dialect::Boat) has no such field: there they are written in front of the command as quoted
    /// exports, so the sandbox's command history and process list show them, values included.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets several variables, as [`env`](Self::env) does for one.
    pub fn envs<I, K, V>(mut self, variables: I) -> Self
    where
        I: IntoIterator<Item = (K, V)>,
        K: Into<String>,
        V: Into<String>,
    {
        self.env.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// How long the command may run, 1 to 600 seconds; fractions of a second are rounded up. 30 seconds if not set.
    ///
    /// At the limit the service ends the command with everything it started, and the outcome is
    /// [`TimedOut`](crate::Outcome::TimedOut). It has no effect on a command started in the background.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// The limit that was set.
    pub(crate) fn limit(&self) -> Option<Duration> {
        self.timeout
    }

    /// The shell text that is sent.
    ///
    /// # Errors
    ///
    /// The text or list is empty, has a NUL or is longer than 1 MiB.
    ///
    /// ```
    /// use sandboxer::Command;
    ///
    /// assert_eq!(Command::argv(["echo", "it's"]).shell_line().unwrap(), r"echo 'it'\''s'");
    /// assert!(Command::argv(["echo", "\0"]).shell_line().is_err(), "no program can take a NUL");
    /// ```
    pub fn shell_line(&self) -> Result<Cow<'_, str>, InvalidField> {
        let line = match &self.line {
            Line::Shell(line) => {
                if line.trim().is_empty() {
                    return Err(invalid("command", "a shell line that is not empty is needed"));
                }
                Cow::Borrowed(line.as_str())
            }
            Line::Argv(words) => {
                let Some(program) = words.first() else {
                    return Err(invalid("command", "an argument list needs at least the program's name"));
                };
                if program.is_empty() {
                    return Err(invalid("command", "the program's name must not be empty"));
                }
                Cow::Owned(quote_all(words))
            }
        };
        if line.contains('\0') {
            return Err(invalid("command", "must not contain a NUL character"));
        }
        if line.len() > 1 << 20 {
            return Err(invalid("command", "must not be longer than 1 MiB"));
        }
        Ok(line)
    }

    /// Checks everything that can be checked before sending.
    pub(crate) fn checked(&self) -> Result<CheckedCommand, InvalidField> {
        let line = self.shell_line()?.into_owned();
        if let Some(folder) = &self.cwd {
            let problem = match folder.len() {
                0 => Some("must not be empty"),
                4097.. => Some("must not be longer than 4096 bytes"),
                _ if folder.contains('\0') => Some("must not contain a NUL character"),
                _ => None,
            };
            if let Some(problem) = problem {
                return Err(invalid("cwd", problem));
            }
        }
        Ok(CheckedCommand { line, cwd: self.cwd.clone(), env: self.env.clone(), limit: self.timeout })
    }
}

fn invalid(field: &str, problem: &str) -> InvalidField {
    InvalidField { field: field.to_owned(), problem: problem.to_owned() }
}

/// Words of the shell's grammar that a program of that name must not be taken for.
const RESERVED: [&str; 22] = [
    "!", "{", "}", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
];

fn quote_all(words: &[String]) -> String {
    let mut line = String::with_capacity(words.iter().map(|word| word.len() + 3).sum());
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            line.push(' ');
        }
        // Unquoted, a first word `A=b` would be an assignment and `if` the start of a condition.
        let needs_quotes =
            !is_plain(word) || (index == 0 && (word.contains('=') || RESERVED.contains(&word.as_str())));
        if needs_quotes {
            quote(word, &mut line);
        } else {
            line.push_str(word);
        }
    }
    line
}

/// Whether every character of the word stands for itself in any POSIX shell.
fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&byte))
}

fn quote(word: &str, line: &mut String) {
    line.push('\'');
    for part in word.split_inclusive('\'') {
        match part.strip_suffix('\'') {
            Some(before) => {
                line.push_str(before);
                line.push_str(r"'\''");
            }
            None => line.push_str(part),
        }
    }
    line.push('\'');
}

/// The line with variables set in front of it, for a service that takes no others.
pub(crate) fn exports<'a>(variables: impl Iterator<Item = (&'a str, &'a str)>, line: &str) -> String {
    let mut all = String::from("export");
    for (name, value) in variables {
        all.push(' ');
        all.push_str(name);
        all.push('=');
        quote(value, &mut all);
    }
    all.push_str("; ");
    all.push_str(line);
    all
}

impl From<&str> for Command {
    fn from(line: &str) -> Self {
        Self::shell(line)
    }
}

impl From<String> for Command {
    fn from(line: String) -> Self {
        Self::shell(line)
    }
}

impl From<&String> for Command {
    fn from(line: &String) -> Self {
        Self::shell(line.as_str())
    }
}

impl From<&Command> for Command {
    fn from(command: &Command) -> Self {
        command.clone()
    }
}

impl<S: Into<String>, const N: usize> From<[S; N]> for Command {
    fn from(words: [S; N]) -> Self {
        Self::argv(words)
    }
}

impl<S: Into<String>> From<Vec<S>> for Command {
    fn from(words: Vec<S>) -> Self {
        Self::argv(words)
    }
}

impl<S: AsRef<str>> From<&[S]> for Command {
    fn from(words: &[S]) -> Self {
        Self::argv(words.iter().map(AsRef::as_ref))
    }
}

impl<S: AsRef<str>> From<&Vec<S>> for Command {
    fn from(words: &Vec<S>) -> Self {
        Self::from(words.as_slice())
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Command");
        match &self.line {
            Line::Shell(line) => shown.field("shell", line),
            Line::Argv(words) => shown.field("argv", words),
        };
        shown.field("cwd", &self.cwd).field("env", &self.env.keys().collect::<Vec<_>>());
        shown.field("timeout", &self.timeout).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(command: Command) -> String {
        command.checked().err().map(|bad| bad.field).unwrap_or_default()
    }

    #[cfg(unix)]
    #[test]
    fn words_survive_a_real_shell() {
        let words = [
            "printf",
            "%s|",
            "plain",
            "two words",
            "",
            "it's",
            "''",
            "$HOME",
            "`id`",
            "a\nb",
            "\\",
            "*",
            "~",
            "-n",
            "A=b",
            "é€😀",
            "!",
            "#x",
            "a;b&c",
            "\"q\"",
            "%s",
            "if",
        ];
        let line = Command::argv(words).shell_line().unwrap().into_owned();
        let printed = std::process::Command::new("sh").arg("-c").arg(&line).output().unwrap();
        let expected: String = words[2..].iter().map(|word| format!("{word}|")).collect();
        assert_eq!(String::from_utf8(printed.stdout).unwrap(), expected);
    }

    #[cfg(unix)]
    #[test]
    fn exported_values_survive_a_real_shell() {
        let values = [("A", "it's $HOME `id` \\ \"q\"\n;x"), ("B", ""), ("C", "é")];
        let line = exports(values.into_iter(), "printf '%s|' \"$A\" \"$B\" \"$C\"; sh -c 'printf %s \"$C\"'");
        let printed = std::process::Command::new("sh").arg("-c").arg(&line).output().unwrap();
        let expected: String = values.iter().map(|(_, value)| format!("{value}|")).collect();
        assert_eq!(String::from_utf8(printed.stdout).unwrap(), format!("{expected}é"));
    }

    #[test]
    fn a_first_word_is_a_program_and_nothing_else() {
        assert_eq!(Command::argv(["if", "if"]).shell_line().unwrap(), "'if' if");
        assert_eq!(Command::argv(["A=b", "A=b"]).shell_line().unwrap(), "'A=b' A=b");
        assert_eq!(Command::argv(["./run.sh", "--x=1"]).shell_line().unwrap(), "./run.sh --x=1");
    }

    #[test]
    fn bad_commands_name_the_field() {
        assert_eq!(problem(Command::shell(" ")), "command");
        assert_eq!(problem(Command::argv(Vec::<String>::new())), "command");
        assert_eq!(problem(Command::argv([""])), "command");
        assert_eq!(problem(Command::shell("a\0b")), "command");
        assert_eq!(problem(Command::argv(["a", "b\0"])), "command");
        assert_eq!(problem(Command::shell("a").cwd("")), "cwd");
        assert_eq!(problem(Command::shell("a").cwd("a\0")), "cwd");
        assert_eq!(
            problem(Command::shell("a").cwd("b").env("A", "\0")),
            "",
            "variables are checked with the request"
        );
    }

    #[test]
    fn values_of_variables_are_not_printed() {
        let shown = format!("{:?}", Command::shell("a").env("TOKEN", "hush"));
        assert!(shown.contains("TOKEN") && !shown.contains("hush"), "{shown}");
    }

    #[test]
    fn every_form_converts() {
        let list = Command::argv(["a", "b c"]);
        assert_eq!(Command::from(["a", "b c"]), list);
        assert_eq!(Command::from(vec!["a".to_owned(), "b c".to_owned()]), list);
        assert_eq!(Command::from(&["a", "b c"][..]), list);
        assert_eq!(Command::from(&vec!["a", "b c"]), list);
        assert_eq!(Command::from(&list), list);
        assert_eq!(Command::from("a b"), Command::from(String::from("a b")));
    }
}
