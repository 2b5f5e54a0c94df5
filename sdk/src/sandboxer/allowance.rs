//! The total limit of a verb that makes more than one call.

use std::time::Duration;

use super::{Api, sandbox::AsyncSandbox};
use crate::{call::CallOptions, transport::explicit_total};

/// When a verb has to be over, if a total limit was set for its client or view; without one each of its calls has the
/// default of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    ends: Option<Duration>,
}

impl Allowance {
    /// The allowance of a verb that begins now.
    pub(crate) fn of(api: &Api) -> Self {
        let total = explicit_total(api.options());
        Self { ends: total.map(|total| api.clock().elapsed().saturating_add(total)) }
    }

    /// What is left of it; `None` when there is no limit.
    pub(crate) fn left(&self, api: &Api) -> Option<Duration> {
        self.ends.map(|ends| ends.saturating_sub(api.clock().elapsed()))
    }
}

impl AsyncSandbox {
    /// The same sandbox through a view that keeps to what is left of the allowance.
    pub(crate) fn within(&self, allowance: &Allowance) -> Self {
        match allowance.left(self.api()) {
            Some(left) => self.with(CallOptions::new().total(left)),
            None => self.clone(),
        }
    }
}
