//! What the account's webhook endpoints were told, and what was asked of the server.

use maud::{Markup, html};

use super::{
    data::Shown,
    frame::{table, time},
    mask::Mask,
};
use crate::{
    record::Recorded,
    world::{
        deliveries::{Attempt, Delivery, Progress},
        time,
    },
};

pub(super) fn deliveries(shown: &Shown) -> Markup {
    html! {
        @if shown.endpoints.is_empty() {
            p class="quiet" { "The account has no webhook endpoint." }
        } @else if shown.deliveries.is_empty() {
            p class="quiet" { "Nothing was to be delivered yet." }
        } @else {
            (table("Webhook deliveries", &["Time", "Event", "To", "Progress", "Tries"], html! {
                @for delivery in &shown.deliveries { (one_delivery(shown, delivery)) }
            }))
        }
    }
}

fn one_delivery(shown: &Shown, delivery: &Delivery) -> Markup {
    let endpoint = shown.endpoints.iter().find(|endpoint| endpoint.id == delivery.endpoint);
    let (class, progress) = match delivery.progress {
        Progress::Pending => ("badge busy", "pending"),
        Progress::Delivered => ("badge good", "delivered"),
        Progress::Failed => ("badge bad", "failed"),
    };
    html! {
        tr {
            td { (time(delivery.created_at)) }
            td { (delivery.kind.as_str()) }
            td class="to" {
                @if let Some(endpoint) = endpoint {
                    @if let Some(name) = &endpoint.name { (shown.mask.text(name)) " " }
                    code { (shown.mask.url(&endpoint.url)) }
                }
            }
            td { span class=(class) { (progress) } }
            td {
                @match delivery.attempts.last() {
                    Some(last) => { (delivery.attempts.len()) ", last: " (attempt(&shown.mask, last)) },
                    None => "0",
                }
                @if let Some(due) = delivery.due_at { ", next at " (time(due)) }
            }
        }
    }
}

fn attempt(mask: &Mask, attempt: &Attempt) -> String {
    match (attempt.status, &attempt.problem) {
        (Some(status), _) => status.to_string(),
        (None, Some(problem)) => mask.text(problem),
        (None, None) => "no answer".into(),
    }
}

pub(super) fn requests(shown: &Shown) -> Markup {
    html! {
        @if shown.requests.is_empty() {
            p class="quiet" { "Nobody has asked for anything yet." }
        } @else {
            p class="quiet" { "Keys and tokens are hidden, bodies are not shown." }
            (table("Last requests", &["Time", "Status", "Request"], html! {
                @for request in &shown.requests { (one_request(&shown.mask, request)) }
            }))
        }
    }
}

fn one_request(mask: &Mask, request: &Recorded) -> Markup {
    /// The most that is shown of a line.
    const LINE: usize = 300;
    let target: String = mask.target(request.path(), request.query()).chars().take(LINE).collect();
    let class = match request.status() {
        Some(status) if status < 400 => "badge good",
        Some(_) => "badge bad",
        None => "badge busy",
    };
    html! {
        tr {
            td { (time(time::of(request.at()))) }
            td {
                span class=(class) {
                    @match request.status() {
                        Some(status) => (status),
                        None => "open",
                    }
                }
            }
            td {
                details {
                    summary { b { (request.method().as_str()) } " " code { (target) } }
                    dl class="facts" {
                        @for (name, value) in request.headers().iter().take(40) {
                            @let value = mask.header_value(name, value);
                            dt { (name.as_str()) }
                            dd { (value.chars().take(LINE).collect::<String>()) }
                        }
                        dt { "body" }
                        dd { (request.body_size()) " bytes" }
                    }
                }
            }
        }
    }
}
