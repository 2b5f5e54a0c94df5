//! How one call travels: headers, tries, limits, and what becomes of its answer.

mod attempt;
mod call;
pub(crate) mod connect;
mod context;
mod dialect;
mod failure;
pub(crate) mod foreign;
mod headers;
mod hooks;
mod ids;
mod plan;
mod send;
mod sent;
mod tries;

pub(crate) use call::Call;
pub(crate) use context::{Context, Shared};
pub(crate) use failure::{denied_success, timed_out};
pub(crate) use headers::fill as fill_headers;
pub(crate) use ids::check as check_id;
pub(crate) use plan::{Plan, explicit_total};
pub(crate) use send::run;
pub(crate) use tries::Tries;

#[cfg(test)]
mod tests;
