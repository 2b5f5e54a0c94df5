//! The repeat table of the spec, interpreted: which failed try may be followed by another.

use crate::{
    error::Delivery,
    generated::operations::{REPEAT_RULES, Repeat, RepeatRule},
};
use std::time::Duration;

/// What is known about a failed try.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Facts {
    pub(crate) delivery: Delivery,
    pub(crate) status: Option<u16>,
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
    /// What the service says about a repeat.
    pub(crate) retryable: Option<bool>,
    /// The window of a used up quota.
    pub(crate) window: Option<String>,
    /// Whether the service said how long to wait.
    pub(crate) hint: bool,
}

impl Facts {
    /// A try without a whole answer.
    pub(crate) fn cut(delivery: Delivery) -> Self {
        Self { delivery, status: None, code: None, message: None, retryable: None, window: None, hint: false }
    }
}

/// What to do after a failed try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The failure is the call's.
    Stop,
    /// Try again.
    Repeat {
        /// The shortest wait before.
        pause: Duration,
        /// Whether only the call's total limit ends this, not the number of tries.
        until_deadline: bool,
    },
}

/// Decides by the table.
pub(crate) fn decide(class: Repeat, facts: &Facts) -> Decision {
    decide_by(REPEAT_RULES, class, facts)
}

/// Whether a try that failed so may have had an effect all the same. A fault of the service, or of a gateway before it, and
/// an answer that is none of the API's prove nothing; a refusal does, of the try that it answers.
pub(crate) fn may_have_acted(facts: &Facts) -> bool {
    match facts.delivery {
        Delivery::NotSent => false,
        Delivery::Unknown => true,
        // What lets a command be sent again proves that nothing ran.
        Delivery::Answered if decide(Repeat::Command, facts) != Decision::Stop => false,
        Delivery::Answered => match facts.code.as_deref() {
            Some("idempotency_in_progress") => true,
            // The service counts and makes nothing then.
            Some("no_ready_machine" | "out_of_capacity") => false,
            _ => !facts.status.is_some_and(|status| (400..500).contains(&status)),
        },
    }
}

fn decide_by(rules: &[RepeatRule], class: Repeat, facts: &Facts) -> Decision {
    match rules.iter().find(|rule| fits(rule, facts)) {
        Some(rule) if rule.repeat.contains(&class) => {
            Decision::Repeat { pause: rule.pause, until_deadline: rule.until_deadline }
        }
        _ => Decision::Stop,
    }
}

fn fits(rule: &RepeatRule, facts: &Facts) -> bool {
    let when = &rule.when;
    let is = |wanted: Option<&str>, known: &Option<String>| {
        wanted.is_none_or(|wanted| known.as_deref() == Some(wanted))
    };
    when.delivery.is_none_or(|delivery| delivery == facts.delivery)
        && when.status.is_none_or(|(low, high)| facts.status.is_some_and(|status| (low..=high).contains(&status)))
        && (when.codes.is_empty() || facts.code.as_deref().is_some_and(|code| when.codes.contains(&code)))
        && when.retryable.is_none_or(|retryable| facts.retryable == Some(retryable))
        // The whole message: a text that merely mentions the word proves nothing.
        && is(when.message, &facts.message)
        && is(when.window, &facts.window)
        && when.hint.is_none_or(|hint| hint == facts.hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Repeat::{Command, Keyed, Replace, Safe, Write};

    const ALL: [Repeat; 5] = [Safe, Keyed, Replace, Command, Write];

    fn answered(status: u16, code: &str) -> Facts {
        let code = Some(code.to_owned());
        Facts { status: Some(status), code, ..Facts::cut(Delivery::Answered) }
    }

    #[track_caller]
    fn repeats(facts: &Facts, expected: &[Repeat]) {
        let found: Vec<_> = ALL.into_iter().filter(|class| decide(*class, facts) != Decision::Stop).collect();
        assert_eq!(found, expected, "{facts:?}");
    }

    #[test]
    fn failures_on_the_way() {
        repeats(&Facts::cut(Delivery::NotSent), &ALL);
        repeats(&Facts::cut(Delivery::Unknown), &[Safe, Keyed, Replace]);
    }

    #[test]
    fn faults_of_the_service() {
        for status in [500, 502, 503, 504, 599] {
            repeats(&answered(status, "http_500"), &[Safe, Keyed, Replace]);
        }
        for status in [302, 400, 401, 402, 403, 404, 405, 408, 409, 413, 422, 600] {
            repeats(&answered(status, "something"), &[]);
        }
        repeats(&Facts { retryable: Some(false), ..answered(500, "x") }, &[]);
        repeats(&Facts { retryable: Some(true), ..answered(409, "x") }, &[Safe, Keyed, Replace, Write]);
    }

    #[test]
    fn throttling() {
        repeats(&answered(429, "http_429"), &[]);
        repeats(&Facts { hint: true, ..answered(429, "http_429") }, &ALL);
        repeats(&answered(429, "rate_limited"), &ALL);
        repeats(&Facts { window: Some("hour".into()), ..answered(429, "rate_limited") }, &ALL);
        repeats(&Facts { window: Some("day".into()), hint: true, ..answered(429, "rate_limited") }, &[]);
        repeats(&Facts { retryable: Some(false), hint: true, ..answered(429, "limit_reached") }, &[]);
    }

    #[test]
    fn codes_with_a_row_of_their_own() {
        repeats(&answered(503, "no_ready_machine"), &[]);
        repeats(&answered(409, "sandbox_starting"), &[Safe, Replace, Command, Write]);
        repeats(&answered(409, "idempotency_in_progress"), &[Keyed]);
        for code in ["browser_not_ready", "ssh_host_key_unavailable"] {
            repeats(&answered(503, code), &[Safe, Replace, Write]);
        }
        repeats(&answered(502, "gateway_error"), &[Safe, Replace, Write]);
    }

    #[test]
    fn a_failed_relay_may_have_run_the_command() {
        let relay = answered(502, "sandbox_direct_failed");
        let offered = Facts { retryable: Some(true), ..relay.clone() };
        repeats(&relay, &[]);
        repeats(&offered, &[Safe, Replace, Write]);
        let message = |text: &str| Facts { message: Some(text.into()), ..offered.clone() };
        repeats(&message("sandbox_restoring"), &[Safe, Replace, Command, Write]);
        repeats(&message("not sandbox_restoring, really"), &[Safe, Replace, Write]);
    }

    #[test]
    fn what_may_have_had_an_effect() {
        let retryable = |facts: Facts| Facts { retryable: Some(true), ..facts };
        let restoring = Facts {
            message: Some("sandbox_restoring".into()),
            ..retryable(answered(502, "sandbox_direct_failed"))
        };
        let cases = [
            (Facts::cut(Delivery::NotSent), false),
            (Facts::cut(Delivery::Unknown), true),
            (answered(500, "http_500"), true),
            (answered(504, "http_504"), true),
            (answered(502, "gateway_error"), true),
            (retryable(answered(502, "sandbox_direct_failed")), true),
            (restoring, false),
            (answered(503, "no_ready_machine"), false),
            (answered(503, "out_of_capacity"), false),
            (answered(302, "unexpected_redirect"), true),
            (answered(402, "billing_required"), false),
            (answered(404, "not_found"), false),
            (answered(409, "sandbox_starting"), false),
            (answered(409, "idempotency_in_progress"), true),
            (answered(429, "rate_limited"), false),
        ];
        for (facts, expected) in cases {
            assert_eq!(may_have_acted(&facts), expected, "{facts:?}");
        }
    }

    #[test]
    fn pauses_and_persistence() {
        let decision = |code| decide(Safe, &answered(409, code));
        let pause = Duration::from_secs(2);
        assert_eq!(decision("sandbox_starting"), Decision::Repeat { pause, until_deadline: false });
        let pause = Duration::from_secs(1);
        assert_eq!(
            decide(Keyed, &answered(409, "idempotency_in_progress")),
            Decision::Repeat { pause, until_deadline: true }
        );
    }
}
