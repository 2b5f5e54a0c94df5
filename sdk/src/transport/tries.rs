//! What all tries of one call together say about it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::sent::SendMark;
use crate::{
    error::Delivery,
    generated::operations::Repeat,
    retry::policy::{Facts, may_have_acted},
};

/// The tries of one call, shared by the call and by whoever has to act on what may have come of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tries(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    /// The try on its way, or the one that succeeded.
    current: Option<SendMark>,
    /// A try was answered.
    answered: bool,
    /// The answer to a try never came.
    cut: bool,
    /// A fault of the service after which the call may have had an effect was the answer to a try.
    faulted: bool,
    /// So may it have had after a try that came to something else.
    in_doubt: bool,
}

impl Tries {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of a try that begins.
    pub(super) fn begin(&self, mark: SendMark) {
        self.lock().current = Some(mark);
    }

    /// Takes note of a try that failed, and says how far the call got with it.
    pub(super) fn failed(&self, repeat: Repeat, facts: &Facts) -> Delivery {
        let mut known = self.lock();
        known.current = None;
        let acted = may_have_acted(facts);
        let fault = acted && facts.status.is_some_and(|status| status >= 500);
        let delivery = known.delivery(repeat, facts.delivery, fault, acted);
        known.answered |= facts.delivery == Delivery::Answered;
        known.cut |= facts.delivery == Delivery::Unknown;
        known.faulted |= fault;
        known.in_doubt |= acted && !fault;
        delivery
    }

    /// How far a call got whose last try was answered with a success that cannot be used.
    pub(crate) fn unusable(&self, repeat: Repeat) -> Delivery {
        self.lock().delivery(repeat, Delivery::Answered, false, false)
    }

    /// Whether a try that failed may have had an effect.
    pub(crate) fn in_doubt(&self) -> bool {
        self.lock().is_in_doubt()
    }

    /// Whether any try has had an effect or may still have one. A try that no connection has taken yet is withdrawn, so
    /// this is for a call that is over or was dropped.
    pub(crate) fn may_have_acted(&self) -> bool {
        let known = self.lock();
        known.is_in_doubt() || known.current.as_ref().is_some_and(|mark| !mark.give_up())
    }
}

impl Known {
    fn is_in_doubt(&self) -> bool {
        self.faulted || self.in_doubt
    }

    /// How far the call got, its last try included. An answer settles only what it is the answer to: if an earlier try may
    /// have had an effect, a refusal of a later one does not take that back, nor does a success that cannot be used. For a
    /// read there is nothing to take back. `acted`: the last answer is itself one after which the call may have had an
    /// effect; `fault`: by its status.
    fn delivery(&self, repeat: Repeat, last: Delivery, fault: bool, acted: bool) -> Delivery {
        let reads = repeat == Repeat::Safe;
        match last {
            Delivery::Unknown => Delivery::Unknown,
            Delivery::Answered if reads => Delivery::Answered,
            // An answer that says the same of itself, or more, takes nothing back.
            Delivery::Answered if self.cut || self.faulted && !fault || self.in_doubt && !acted => {
                Delivery::Unknown
            }
            Delivery::Answered => Delivery::Answered,
            Delivery::NotSent if self.cut || self.is_in_doubt() && !reads => Delivery::Unknown,
            Delivery::NotSent if self.answered => Delivery::Answered,
            Delivery::NotSent => Delivery::NotSent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Delivery::{Answered, NotSent, Unknown};
    use Repeat::{Keyed, Replace, Safe};

    fn answer(status: u16, code: &str) -> Facts {
        Facts { status: Some(status), code: Some(code.to_owned()), ..Facts::cut(Answered) }
    }

    #[test]
    fn a_later_try_does_not_settle_what_an_earlier_one_may_have_done() {
        let (cut, unsent) = (Facts::cut(Unknown), Facts::cut(NotSent));
        let (fault, refused) = (answer(503, "http_503"), answer(402, "billing_required"));
        let (throttled, full) = (answer(429, "rate_limited"), answer(503, "out_of_capacity"));
        let in_use = answer(409, "idempotency_in_progress");
        let (machines, redirect) = (answer(503, "no_ready_machine"), answer(302, "unexpected_redirect"));
        // The tries; what a call that changes something is said to have come to, and a read; whether it is in doubt.
        let cases: [(&[&Facts], Delivery, Delivery, bool); 24] = [
            (&[&unsent], NotSent, NotSent, false),
            (&[&unsent, &unsent], NotSent, NotSent, false),
            (&[&unsent, &refused], Answered, Answered, false),
            (&[&throttled, &unsent], Answered, Answered, false),
            (&[&throttled, &refused], Answered, Answered, false),
            (&[&full, &refused], Answered, Answered, false),
            (&[&cut], Unknown, Unknown, true),
            (&[&cut, &unsent], Unknown, Unknown, true),
            (&[&cut, &refused], Unknown, Answered, true),
            (&[&cut, &fault], Unknown, Answered, true),
            (&[&cut, &throttled, &refused], Unknown, Answered, true),
            (&[&fault], Answered, Answered, true),
            (&[&fault, &fault], Answered, Answered, true),
            (&[&fault, &refused], Unknown, Answered, true),
            (&[&fault, &unsent], Unknown, Answered, true),
            (&[&fault, &in_use], Unknown, Answered, true),
            (&[&fault, &in_use, &fault], Answered, Answered, true),
            (&[&fault, &machines], Unknown, Answered, true),
            (&[&fault, &redirect], Unknown, Answered, true),
            (&[&in_use], Answered, Answered, true),
            (&[&in_use, &in_use], Answered, Answered, true),
            (&[&in_use, &fault], Answered, Answered, true),
            (&[&in_use, &refused], Unknown, Answered, true),
            (&[&refused, &cut], Unknown, Unknown, true),
        ];
        for (failures, expected, read, in_doubt) in cases {
            for (class, expected) in [(Keyed, expected), (Replace, expected), (Safe, read)] {
                let tries = Tries::default();
                let told = failures.iter().fold(None, |_, facts| Some(tries.failed(class, facts)));
                assert_eq!(told, Some(expected), "{class:?} {failures:?}");
                assert_eq!((tries.in_doubt(), tries.may_have_acted()), (in_doubt, in_doubt), "{failures:?}");
            }
        }
        let tries = Tries::default();
        assert_eq!(tries.unusable(Keyed), Answered);
        for doubt in [cut, fault, in_use] {
            let tries = Tries::default();
            tries.failed(Keyed, &doubt);
            assert_eq!((tries.unusable(Keyed), tries.unusable(Safe)), (Unknown, Answered), "{doubt:?}");
        }
    }

    #[test]
    fn a_try_on_its_way_counts_once_a_connection_has_taken_it() {
        let (tries, mark) = (Tries::default(), SendMark::default());
        tries.begin(mark.clone());
        assert!(mark.take());
        assert!(tries.may_have_acted() && !tries.in_doubt());
        let (tries, mark) = (Tries::default(), SendMark::default());
        tries.begin(mark.clone());
        assert!(!tries.may_have_acted(), "nothing has gone out");
        assert!(!mark.take(), "and nothing will");
    }
}
