//! What can be said when a sandbox is created, copied, brought back, changed or stopped.

use std::time::Duration;

use crate::{
    error::{Error, Result},
    models::{
        CreateSandboxRequest, ForkRequest, ResumeRequest, SandboxType, StopRequest, UpdateSandboxRequest,
    },
    wire::Patch,
};

/// When a sandbox stops by itself.
///
/// ```
/// use sandboxer::Ttl;
/// use std::time::Duration;
///
/// assert_eq!(Ttl::from(Duration::from_secs(1800)), Ttl::After(Duration::from_secs(1800)));
/// assert_eq!(Ttl::from(None), Ttl::Never);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// It runs until it is stopped.
    Never,
    /// After this long, 1 second to 30 days; fractions of a second are rounded up.
    After(Duration),
}

impl Ttl {
    pub(crate) fn patch(self) -> Patch<i64> {
        match self {
            Self::Never => Patch::Null,
            Self::After(after) => {
                let seconds = after.as_secs().saturating_add(u64::from(after.subsec_nanos() > 0));
                Patch::Value(i64::try_from(seconds).unwrap_or(i64::MAX))
            }
        }
    }
}

impl From<Duration> for Ttl {
    fn from(after: Duration) -> Self {
        Self::After(after)
    }
}

impl From<Option<Duration>> for Ttl {
    fn from(after: Option<Duration>) -> Self {
        after.map_or(Self::Never, Self::After)
    }
}

/// How long a verb waits for the state it is to bring about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) wait: bool,
    pub(crate) limit: Option<Duration>,
}

impl Default for Waiting {
    fn default() -> Self {
        Self { wait: true, limit: None }
    }
}

macro_rules! start_setters {
    () => {
        /// The size of the machine: `small`, `default`, `large` or `xlarge`.
        pub fn kind(mut self, kind: impl Into<SandboxType>) -> Self {
            self.request = self.request.kind(kind);
            self
        }

        /// When it stops by itself; never is [`no_ttl`](Self::no_ttl).
        pub fn ttl(mut self, ttl: impl Into<Ttl>) -> Self {
            self.request = self.request.ttl_seconds(ttl.into().patch());
            self
        }

        /// Lets it run until it is stopped.
        pub fn no_ttl(self) -> Self {
            self.ttl(Ttl::Never)
        }

        /// Sets a variable that every command in it sees. At most 100, together at most 64 KB; a name is a letter or
        /// `_` and up to 127 letters, digits and `_`; the service's own names are refused. Values are never printed.
        pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
            self.request.env.get_or_insert_default().insert(name.into(), value.into());
            self
        }

        /// Sets several variables, as [`env`](Self::env) does for one.
        pub fn envs<I, K, V>(self, variables: I) -> Self
        where
            I: IntoIterator<Item = (K, V)>,
            K: Into<String>,
            V: Into<String>,
        {
            variables.into_iter().fold(self, |options, (name, value)| options.env(name, value))
        }

        /// The stored environment to start with, by name or id.
        pub fn environment(mut self, environment: impl Into<String>) -> Self {
            self.request = self.request.environment(environment);
            self
        }

        /// Starts with no environment and no sign-ins at all; it can never have them later.
        pub fn no_env(mut self) -> Self {
            self.request = self.request.no_env(true);
            self
        }

        /// Fails at once when no machine is free, instead of waiting for one.
        pub fn fail_fast(mut self) -> Self {
            self.request = self.request.fail_fast(true);
            self
        }

        /// Whether to wait until it is ready (the default) or return once the service has taken it on.
        pub fn wait(mut self, wait: bool) -> Self {
            self.waiting.wait = wait;
            self
        }

        /// How long to wait for it to be ready, 5 minutes unless set here or by the call's total limit.
        pub fn wait_limit(mut self, limit: Duration) -> Self {
            self.waiting.limit = Some(limit);
            self
        }
    };
}

/// A sandbox to be made.
///
/// ```
/// use sandboxer::Create;
/// use std::time::Duration;
///
/// let options = Create::new().kind("small").ttl(Duration::from_secs(1800)).name("demo").env("CI", "1");
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct Create {
    pub(crate) request: CreateSandboxRequest,
    pub(crate) waiting: Waiting,
    pub(crate) name: Option<String>,
}

impl Create {
    /// Everything as the service has it by default: size `default`, stopped after an hour.
    pub fn new() -> Self {
        Self::default()
    }

    start_setters!();

    /// The name shown to people, at most 120 characters; set right after the sandbox is made.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Whether its disk is kept when it stops (default: yes). Without it, it cannot be resumed or forked once stopped.
    pub fn snapshots(mut self, keep: bool) -> Self {
        self.request = self.request.snapshots(keep);
        self
    }

    /// Whether its commands and processes are recorded (default: yes). Without it there are no logs to read.
    pub fn monitoring(mut self, record: bool) -> Self {
        self.request = self.request.monitoring(record);
        self
    }

    /// A bash script run once it is up, at most 64 KiB; being ready does not wait for it.
    pub fn setup_script(mut self, script: impl Into<String>) -> Self {
        self.request = self.request.setup_script(script);
        self
    }

    /// The organisation that pays: its id or its name. Without it, the one of the client or view, then the account's
    /// active wallet.
    pub fn org(mut self, org: impl Into<String>) -> Self {
        self.request.org = Patch::Value(org.into());
        self
    }

    /// The personal wallet pays, whatever the account's active wallet is.
    pub fn personal(mut self) -> Self {
        self.request.org = Patch::Null;
        self
    }

    /// The named snapshot or share code to start from.
    pub fn from(mut self, snapshot: impl Into<String>) -> Self {
        self.request = self.request.from(snapshot.into());
        self
    }
}

/// How a copy of a sandbox differs from it; what is left out is inherited, but for the time until it stops by itself,
/// which is an hour unless set.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct Fork {
    pub(crate) request: ForkRequest,
    pub(crate) waiting: Waiting,
    pub(crate) name: Option<String>,
}

impl Fork {
    /// A copy with everything inherited.
    pub fn new() -> Self {
        Self::default()
    }

    start_setters!();

    /// The name shown to people, at most 120 characters; set right after the copy is made.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Whether its commands and processes are recorded.
    pub fn monitoring(mut self, record: bool) -> Self {
        self.request = self.request.monitoring(record);
        self
    }
}

/// How a stopped sandbox is brought back; what is left out stays as it was.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct Resume {
    pub(crate) request: ResumeRequest,
    pub(crate) waiting: Waiting,
}

impl Resume {
    /// Everything as it was.
    pub fn new() -> Self {
        Self::default()
    }

    start_setters!();
}

/// How a sandbox is stopped.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct Stop {
    pub(crate) request: StopRequest,
    pub(crate) waiting: Waiting,
}

impl Stop {
    /// Saves the disk and waits until the sandbox is archived.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives up on saving: the last good snapshot stays, what came after it is lost.
    pub fn force(mut self) -> Self {
        self.request = self.request.force(true);
        self
    }

    /// Whether to wait until it is archived (the default) or return once the service has taken it on.
    pub fn wait(mut self, wait: bool) -> Self {
        self.waiting.wait = wait;
        self
    }

    /// How long to wait for it to be archived, 10 minutes unless set here or by the call's total limit.
    pub fn wait_limit(mut self, limit: Duration) -> Self {
        self.waiting.limit = Some(limit);
        self
    }
}

/// What to change about a sandbox; what is left out stays.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct Update {
    pub(crate) request: UpdateSandboxRequest,
}

impl Update {
    /// Nothing to change yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The name shown to people: not empty, cut to 120 characters.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.request = self.request.name(name);
        self
    }

    /// When it stops by itself, counted from now.
    pub fn ttl(mut self, ttl: impl Into<Ttl>) -> Self {
        self.request = self.request.ttl_seconds(ttl.into().patch());
        self
    }

    /// The name its hosted ports are reached under: 3 to 40 small letters, digits and single dashes, a letter or digit
    /// at both ends. The old name's addresses stop working.
    pub fn subdomain(mut self, subdomain: impl Into<String>) -> Self {
        self.request = self.request.subdomain(subdomain);
        self
    }
}

/// The check of a name that is set after its sandbox was made: nothing may be made for a name that is refused later.
pub(crate) fn check_name(name: Option<&str>) -> Result<()> {
    let Some(name) = name else { return Ok(()) };
    let checked = UpdateSandboxRequest::new().name(name).validate();
    checked.map_err(|bad| Error::invalid_input(&bad.field, bad.problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_the_request() {
        let create =
            Create::new().kind("small").ttl(Duration::from_millis(1500)).env("A", "1").from("base").no_env();
        let sent = serde_json::to_value(&create.request).unwrap();
        let expected = serde_json::json!({"type": "small", "ttlSeconds": 2, "env": {"A": "1"}, "from": "base", "noEnv": true});
        assert_eq!(sent, expected);
        let sent = serde_json::to_value(&Fork::new().no_ttl().request).unwrap();
        assert_eq!(sent, serde_json::json!({"ttlSeconds": null}));
        let sent = serde_json::to_value(&Resume::new().request).unwrap();
        assert_eq!(sent, serde_json::json!({}));
        let sent = serde_json::to_value(&Create::new().personal().request).unwrap();
        assert_eq!(sent, serde_json::json!({"org": null}));
    }

    #[test]
    fn values_of_variables_are_not_printed() {
        let shown = format!("{:?}", Create::new().env("TOKEN", "hush"));
        assert!(shown.contains("TOKEN") && !shown.contains("hush"), "{shown}");
    }

    #[test]
    fn an_empty_name_is_refused_before_anything_is_made() {
        assert!(check_name(Some("")).is_err());
        assert!(check_name(Some("demo")).is_ok() && check_name(None).is_ok());
    }
}
