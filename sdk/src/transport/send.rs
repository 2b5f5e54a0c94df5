//! The tries of one call.

use super::{
    Context,
    attempt::{Template, TryLimit, attempt},
    failure::Failure,
    headers::IDEMPOTENCY_KEY,
};
use crate::{
    error::{Error, ErrorKind, Result},
    retry::{
        backoff::Backoff,
        policy::{Decision, decide},
    },
};
use reqwest::{Request, Response};
use std::time::Duration;
use tracing::Instrument as _;

/// Sends a request until it succeeds or its failure is the call's.
pub(crate) async fn run(context: &Context, request: Request) -> Result<Response> {
    let plan = &context.plan;
    let span =
        tracing::debug_span!("sandboxer", operation = plan.name(), sandbox_id = plan.sandbox_id.as_deref());
    let Some(template) = Template::new(&request) else {
        return Err(plan.label(Error::invalid_input("body", "a body that can be sent again")));
    };
    tries(context, &template).instrument(span).await
}

async fn tries(context: &Context, template: &Template) -> Result<Response> {
    let (plan, clock) = (&context.plan, context.shared.clock());
    let (mut backoff, mut number) = (Backoff::new(), 0_u32);
    loop {
        let limit = try_limit(context);
        number += 1;
        context.set_attempts(number);
        let failure = match attempt(context, template, number, limit).await {
            Ok(response) => {
                context.shared.budget().success();
                tracing::debug!(attempt = number, status = response.status().as_u16(), "answered");
                return Ok(response);
            }
            Err(failure) => failure,
        };
        let so_far = context.tries().failed(plan.repeat, &failure.facts);
        let decision = decide(plan.repeat, &failure.facts);
        let wait = match decision {
            Decision::Repeat { pause, until_deadline } if !failure.is_final => {
                next_wait(context, &failure, &mut backoff, number, pause, until_deadline)
            }
            _ => None,
        };
        tracing::debug!(
            attempt = number,
            code = failure.error.code(),
            status = failure.error.status(),
            delivery = %failure.facts.delivery,
            wait_ms = wait.map(|wait| wait.as_millis() as u64),
            "failed"
        );
        match wait {
            Some(wait) => clock.sleep(wait).await,
            None => {
                let repeatable =
                    decision != Decision::Stop && failure.error.kind() != ErrorKind::InvalidInput;
                let error =
                    failure.error.with_delivery(so_far).with_attempts(number).with_retryable(repeatable);
                let key = template.header(&IDEMPOTENCY_KEY).map(str::to_owned);
                return Err(plan.label(error.with_idempotency_key(key)));
            }
        }
    }
}

/// The limit of the next try, if it has one.
fn try_limit(context: &Context) -> Option<TryLimit> {
    let (plan, now) = (&context.plan, context.shared.clock().elapsed());
    let total = plan.total().map(|total| {
        let left = plan.started.saturating_add(total).saturating_sub(now);
        TryLimit::Total { left, total }
    });
    let attempt = plan.attempt().map(TryLimit::Attempt);
    match (attempt, total) {
        (Some(attempt), Some(total)) => Some(if total.wait() < attempt.wait() { total } else { attempt }),
        (attempt, total) => attempt.or(total),
    }
}

/// How long to wait before the next try, if there is to be one: neither tries nor the budget used up, and the wait over
/// before the deadline. A hint of the service is waited for in full or not at all.
fn next_wait(
    context: &Context,
    failure: &Failure,
    backoff: &mut Backoff,
    number: u32,
    pause: Duration,
    until_deadline: bool,
) -> Option<Duration> {
    let (plan, clock) = (&context.plan, context.shared.clock());
    let retries = plan.retries();
    if retries == 0 || (number > retries && !until_deadline) {
        return None;
    }
    let hint = failure.error.retry_after();
    let wait = hint.map_or_else(|| backoff.next(pause), |hint| hint.max(pause));
    let over = clock.elapsed().saturating_add(wait);
    if plan.deadline().is_some_and(|deadline| over >= deadline) {
        return None;
    }
    // Waits that the service asked for cannot make a storm.
    (hint.is_some() || context.shared.budget().take(clock.elapsed())).then_some(wait)
}
