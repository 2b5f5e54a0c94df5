//! What may be said about single calls: time limits, retries, headers, organisation, idempotency key.

use crate::error::{Error, Result};
use std::{fmt, time::Duration};

/// A time limit: left to the default, switched off, or a duration.
///
/// ```
/// use sandboxer::Limit;
/// use std::time::Duration;
///
/// assert_eq!(Limit::from(Duration::from_secs(5)), Limit::After(Duration::from_secs(5)));
/// assert_eq!(Limit::default(), Limit::Unset);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// The default, or what an outer scope says.
    #[default]
    Unset,
    /// No limit.
    Off,
    /// This long; 0 is refused, but for a view's `total`, which has then run out.
    After(Duration),
}

impl Limit {
    /// This limit, or `outer` where this one is unset.
    pub(crate) fn or(self, outer: Self) -> Self {
        if self == Self::Unset { outer } else { self }
    }

    /// Refuses one that is over at once.
    pub(crate) fn check(self, field: &str) -> Result<()> {
        if self == Self::After(Duration::ZERO) {
            return Err(Error::invalid_input(field, "must be longer than 0; `Limit::Off` is no limit"));
        }
        Ok(())
    }

    /// The limit as a duration: `None` for none, `default` where it is unset.
    pub(crate) fn resolve(self, default: Duration) -> Option<Duration> {
        match self {
            Self::Unset => Some(default),
            Self::Off => None,
            Self::After(limit) => Some(limit),
        }
    }
}

impl From<Duration> for Limit {
    fn from(limit: Duration) -> Self {
        Self::After(limit)
    }
}

/// The time limits of a client or a view, by name.
///
/// | limit | covers | default |
/// |---|---|---|
/// | `connect` | one connection being made, TLS and proxy included | 10 s |
/// | `attempt` | one try, from asking for a connection to the last byte of its answer (of a stream: to its headers) | 60 s; a command: its own limit + 90 s |
/// | `total` | all tries of a call and the waits between them; never a stream's body | 5 min, at least `attempt` + 60 s; a command: `attempt` + 60 s |
/// | `idle` | silence between two pieces of a stream | 60 s; attach: 45 s (heartbeats are promised); an exec stream: the command's limit + 90 s |
///
/// A `total` that was set also covers the verbs that make more than one call: creating with its name and its wait, a resume
/// or stop with its wait, an exec stream until its command has started.
///
/// ```
/// use sandboxer::{Limit, Timeouts};
/// use std::time::Duration;
///
/// let limits = Timeouts::new().connect(Duration::from_secs(3)).total(Duration::from_secs(60)).idle(Limit::Off);
/// assert_eq!((limits.attempt, limits.idle), (Limit::Unset, Limit::Off));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// One connection being made.
    pub connect: Limit,
    /// One try.
    pub attempt: Limit,
    /// All tries and the waits between them.
    pub total: Limit,
    /// Silence between two pieces of a stream.
    pub idle: Limit,
}

impl Timeouts {
    /// All limits at their defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the limit on one connection being made. It belongs to the connection pool, so it is a client's to set, not a
    /// view's.
    #[must_use]
    pub fn connect(mut self, limit: impl Into<Limit>) -> Self {
        self.connect = limit.into();
        self
    }

    /// Sets the limit on one try.
    #[must_use]
    pub fn attempt(mut self, limit: impl Into<Limit>) -> Self {
        self.attempt = limit.into();
        self
    }

    /// Sets the limit on all tries of a call and the waits between them.
    #[must_use]
    pub fn total(mut self, limit: impl Into<Limit>) -> Self {
        self.total = limit.into();
        self
    }

    /// Sets the limit on silence between two pieces of a stream.
    #[must_use]
    pub fn idle(mut self, limit: impl Into<Limit>) -> Self {
        self.idle = limit.into();
        self
    }

    /// Refuses a limit that is over at once, `total` aside: what is left of it may be nothing.
    pub(crate) fn check(&self) -> Result<()> {
        let named = [("connect", self.connect), ("attempt", self.attempt), ("idle", self.idle)];
        named.into_iter().try_for_each(|(field, limit)| limit.check(field))
    }

    /// These limits, `outer` where one is unset.
    pub(crate) fn or(self, outer: Self) -> Self {
        Self {
            connect: self.connect.or(outer.connect),
            attempt: self.attempt.or(outer.attempt),
            total: self.total.or(outer.total),
            idle: self.idle.or(outer.idle),
        }
    }
}

/// What later calls through a view do differently from the client's defaults.
///
/// Given to `with` of a client, an `Api` or a sandbox; the view shares the connections of its origin. Views nest: what an
/// inner one sets wins, what it leaves unset is inherited.
///
/// ```
/// use sandboxer::{AsyncSandboxer, CallOptions, Limit};
/// use std::time::Duration;
///
/// let client = AsyncSandboxer::builder().api_key("key").base_url("http://127.0.0.1:1").build().unwrap();
/// let quick = client.with(CallOptions::new().total(Duration::from_secs(5)).retries(0));
/// let patient = quick.with(CallOptions::new().total(Limit::Off).attempt(Limit::Off)); // retries stay 0
/// let marked = patient.with(
///     CallOptions::new()
///         .idle(Duration::from_secs(90))
///         .org("acme")
///         .header("X-Trace", "7")
///         .idempotency_key("nightly-2026-01-01"),
/// );
/// # let _ = marked;
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct CallOptions {
    pub(crate) timeouts: Timeouts,
    pub(crate) retries: Option<u32>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) org: Option<String>,
    pub(crate) idempotency_key: Option<String>,
}

impl CallOptions {
    /// Nothing set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits one try. See [`Timeouts`] for the defaults.
    #[must_use]
    pub fn attempt(mut self, limit: impl Into<Limit>) -> Self {
        self.timeouts.attempt = limit.into();
        self
    }

    /// Limits all tries of a call and the waits between them. A command's own limit is lowered to fit.
    #[must_use]
    pub fn total(mut self, limit: impl Into<Limit>) -> Self {
        self.timeouts.total = limit.into();
        self
    }

    /// Limits the silence between two pieces of a stream.
    #[must_use]
    pub fn idle(mut self, limit: impl Into<Limit>) -> Self {
        self.timeouts.idle = limit.into();
        self
    }

    /// How many times a failed try may be followed by another (default 3); 0 for never.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = Some(retries);
        self
    }

    /// Adds a request header; an earlier one of the same name, in whatever case, is replaced. Headers that the client fills
    /// in itself (`Authorization` and the like) are refused when a call is made.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let name = name.into();
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(&name));
        self.headers.push((name, value.into()));
        self
    }

    /// The organisation that pays: its id, its name, or `personal`.
    #[must_use]
    pub fn org(mut self, org: impl Into<String>) -> Self {
        self.org = Some(org.into());
        self
    }

    /// The idempotency key of a create or fork, at most 255 visible ASCII characters; without one each call has a fresh one.
    ///
    /// Two calls with one key are one create: set it for a single call, not for a view that creates more than once. Other
    /// operations ignore it.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// These options on top of `outer`.
    pub(crate) fn over(&self, outer: &Self) -> Self {
        let mut merged = outer.clone();
        merged.timeouts = self.timeouts.or(outer.timeouts);
        merged.retries = self.retries.or(outer.retries);
        for (name, value) in &self.headers {
            merged = merged.header(name, value);
        }
        merged.org = self.org.clone().or(merged.org);
        merged.idempotency_key = self.idempotency_key.clone().or(merged.idempotency_key);
        merged
    }
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("CallOptions")
            .field("timeouts", &self.timeouts)
            .field("retries", &self.retries)
            .field("headers", &headers)
            .field("org", &self.org)
            .field("idempotency_key", &self.idempotency_key)
            .finish()
    }
}

/// The longest and the default time the service gives a command.
pub(crate) const COMMAND_LIMIT_MAX: Duration = Duration::from_secs(600);
pub(crate) const COMMAND_LIMIT_DEFAULT: Duration = Duration::from_secs(30);

/// The command limit to send, in whole seconds, when the caller asked for `wanted` (default 30 s) and the whole call may
/// take `total`.
///
/// A fraction of a second is rounded up. A `total` shorter than the limit lowers it to the whole seconds that fit, so that
/// the command ends before its caller gives up. 0, more than 600 s, and a total under 1 s are refused.
pub(crate) fn fit_command_limit(wanted: Option<Duration>, total: Option<Duration>) -> Result<u32> {
    const SECOND: Duration = Duration::from_secs(1);
    let limit = wanted.unwrap_or(COMMAND_LIMIT_DEFAULT);
    if limit < SECOND || limit > COMMAND_LIMIT_MAX {
        return Err(Error::invalid_input("timeout", "a command's limit is from 1 to 600 seconds"));
    }
    let seconds = limit.as_secs() + u64::from(limit.subsec_nanos() > 0);
    let seconds = match total {
        Some(total) if total < SECOND => {
            return Err(Error::invalid_input(
                "total",
                "a call that runs a command needs a total limit of at least 1 second",
            ));
        }
        Some(total) => seconds.min(total.as_secs()),
        None => seconds,
    };
    Ok(u32::try_from(seconds).unwrap_or(600))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(seconds: f64) -> Option<Duration> {
        Some(Duration::from_secs_f64(seconds))
    }

    #[test]
    fn a_command_limit_fits_the_total() {
        let cases = [
            (None, None, 30),
            (secs(1.2), None, 2),
            (secs(600.0), None, 600),
            (None, secs(5.0), 5),
            (None, secs(5.9), 5),
            (secs(20.0), secs(300.0), 20),
            (secs(1.0), secs(1.0), 1),
        ];
        for (wanted, total, expected) in cases {
            assert_eq!(fit_command_limit(wanted, total).unwrap(), expected, "{wanted:?} {total:?}");
        }
        for (wanted, total) in [(secs(0.0), None), (secs(0.5), None), (secs(600.5), None), (None, secs(0.9))]
        {
            assert!(fit_command_limit(wanted, total).is_err(), "{wanted:?} {total:?}");
        }
    }

    #[test]
    fn inner_options_win_and_the_rest_is_inherited() {
        let outer = CallOptions::new().retries(1).org("a").header("X-One", "1").total(Duration::from_secs(9));
        let inner = CallOptions::new().org("b").header("x-one", "2").attempt(Limit::Off);
        let merged = inner.over(&outer);
        assert_eq!(merged.retries, Some(1));
        assert_eq!(merged.org.as_deref(), Some("b"));
        assert_eq!(merged.headers, [("x-one".to_owned(), "2".to_owned())]);
        assert_eq!(merged.timeouts.total, Limit::After(Duration::from_secs(9)));
        assert_eq!(merged.timeouts.attempt, Limit::Off);
    }

    #[test]
    fn header_values_are_not_printed() {
        let printed = format!("{:?}", CallOptions::new().header("X-Token", "hush"));
        assert!(printed.contains("X-Token") && !printed.contains("hush"));
    }
}
