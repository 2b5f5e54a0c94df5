//! The one way in which a command ended.

use std::{borrow::Cow, fmt};

/// How a command ended. Every command ends in exactly one of these.
///
/// ```
/// use sandboxer::{Outcome, Signal};
///
/// assert!(Outcome::Exited(0).is_success());
/// assert!(!Outcome::TimedOut.is_success());
/// assert_eq!(Outcome::Signalled(Signal::new("SIGKILL")).to_string(), "ended by SIGKILL");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It exited by itself with this code.
    Exited(i32),
    /// A signal that this program did not ask for ended it.
    Signalled(Signal),
    /// It ran into its time limit and was ended.
    TimedOut,
    /// It was ended because this program asked for it.
    Stopped,
    /// It is over, and nobody knows how it ended: the sandbox stopped or its agent restarted.
    Lost,
}

impl Outcome {
    /// Whether it exited with code 0.
    pub fn is_success(&self) -> bool {
        *self == Self::Exited(0)
    }

    /// The outcome that an answer or a final frame describes.
    pub(crate) fn from_end(end: End<'_>) -> Self {
        if end.timed_out {
            return Self::TimedOut;
        }
        if end.lost {
            return Self::Lost;
        }
        match (end.signal.filter(|signal| !signal.is_empty()), end.exit_code) {
            (Some(signal), _) => Self::Signalled(Signal::new(signal)),
            (None, Some(code)) => Self::Exited(saturated(code)),
            (None, None) if end.success == Some(true) => Self::Exited(0),
            (None, None) => Self::Lost,
        }
    }

    /// The same outcome when this program had asked to end the command: dying of that request is being stopped.
    pub(crate) fn after_kill(self) -> Self {
        match self {
            // A shell whose child was ended by SIGTERM or SIGKILL exits with 128 plus its number.
            Self::Signalled(_) | Self::Exited(137 | 143) => Self::Stopped,
            other => other,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(formatter, "exited with {code}"),
            Self::Signalled(signal) => write!(formatter, "ended by {signal}"),
            Self::TimedOut => formatter.write_str("ended at its time limit"),
            Self::Stopped => formatter.write_str("stopped on request"),
            Self::Lost => formatter.write_str("lost"),
        }
    }
}

/// What the service says about the end of a command.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct End<'a> {
    pub(crate) timed_out: bool,
    pub(crate) lost: bool,
    pub(crate) signal: Option<&'a str>,
    pub(crate) exit_code: Option<i64>,
    pub(crate) success: Option<bool>,
}

fn saturated(code: i64) -> i32 {
    i32::try_from(code).unwrap_or(if code < 0 { i32::MIN } else { i32::MAX })
}

/// The name of a signal, such as `SIGKILL`, as the service writes it.
///
/// ```
/// use sandboxer::Signal;
///
/// let signal = Signal::new("SIGKILL");
/// assert_eq!((signal.as_str(), signal.number()), ("SIGKILL", Some(9)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Signal(Cow<'static, str>);

impl Signal {
    /// A signal by its name; the `SIG` in front may be left out.
    pub fn new(name: &str) -> Self {
        let bare = name.strip_prefix("SIG").unwrap_or(name);
        match KNOWN.iter().find(|(known, _)| known.strip_prefix("SIG") == Some(bare)) {
            Some((known, _)) => Self(Cow::Borrowed(known)),
            None => Self(Cow::Owned(name.to_owned())),
        }
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its number on Linux, if its name is a known one.
    pub fn number(&self) -> Option<i32> {
        KNOWN.iter().find(|(known, _)| *known == self.0).map(|(_, number)| *number)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

const KNOWN: [(&str, i32); 16] = [
    ("SIGHUP", 1),
    ("SIGINT", 2),
    ("SIGQUIT", 3),
    ("SIGILL", 4),
    ("SIGTRAP", 5),
    ("SIGABRT", 6),
    ("SIGBUS", 7),
    ("SIGFPE", 8),
    ("SIGKILL", 9),
    ("SIGUSR1", 10),
    ("SIGSEGV", 11),
    ("SIGUSR2", 12),
    ("SIGPIPE", 13),
    ("SIGALRM", 14),
    ("SIGTERM", 15),
    ("SIGSYS", 31),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_one_outcome() {
        let end = End::default();
        let cases = [
            (End { exit_code: Some(0), success: Some(true), ..end }, Outcome::Exited(0)),
            (End { exit_code: Some(3), success: Some(false), ..end }, Outcome::Exited(3)),
            (End { timed_out: true, exit_code: Some(143), ..end }, Outcome::TimedOut),
            (End { timed_out: true, signal: Some("SIGTERM"), ..end }, Outcome::TimedOut),
            (End { signal: Some("SIGKILL"), ..end }, Outcome::Signalled(Signal::new("SIGKILL"))),
            (
                End { signal: Some("KILL"), exit_code: Some(137), ..end },
                Outcome::Signalled(Signal::new("SIGKILL")),
            ),
            (End { signal: Some(""), exit_code: Some(7), ..end }, Outcome::Exited(7)),
            (End { signal: Some("SIGFOO"), ..end }, Outcome::Signalled(Signal::new("SIGFOO"))),
            (End { success: Some(true), ..end }, Outcome::Exited(0)),
            (End { success: Some(false), ..end }, Outcome::Lost),
            (End { lost: true, exit_code: Some(0), ..end }, Outcome::Lost),
            (End { exit_code: Some(i64::MAX), ..end }, Outcome::Exited(i32::MAX)),
            (end, Outcome::Lost),
        ];
        for (end, outcome) in cases {
            assert_eq!(Outcome::from_end(end), outcome, "{end:?}");
        }
    }

    #[test]
    fn dying_of_our_own_kill_is_being_stopped() {
        assert_eq!(Outcome::Signalled(Signal::new("SIGTERM")).after_kill(), Outcome::Stopped);
        assert_eq!(Outcome::Exited(143).after_kill(), Outcome::Stopped);
        assert_eq!(Outcome::Exited(0).after_kill(), Outcome::Exited(0));
        assert_eq!(Outcome::Lost.after_kill(), Outcome::Lost);
    }

    #[test]
    fn signals_have_numbers() {
        assert_eq!(Signal::new("TERM").as_str(), "SIGTERM");
        assert_eq!(Signal::new("SIGKILL").number(), Some(9));
        assert_eq!(Signal::new("SIGNEW").number(), None);
    }
}
