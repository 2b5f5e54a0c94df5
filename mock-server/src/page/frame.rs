//! The page around its parts, and the short pages that say only one thing.

use maud::{DOCTYPE, Markup, html};

use super::{
    Wanted,
    data::Shown,
    requests::{deliveries, requests},
    sandbox::chosen,
};
use crate::world::{
    sandboxes::{Sandbox, State},
    time::{Millis, iso},
};

fn head(title: &str, has_script: bool) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) " · local sandbox service" }
            link rel="icon" href="data:,";
            link rel="stylesheet" href="/page.css";
            @if has_script { script src="/page.js" defer {} }
        }
    }
}

/// A page that says one thing.
pub(super) fn message(title: &str, text: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(title, false))
            body class="message" { main { h1 { (title) } p { (text) } } }
        }
    }
}

/// The page.
pub(super) fn page(shown: &Shown) -> Markup {
    let title =
        shown.chosen.as_ref().map_or("Sandboxes".into(), |chosen| shown.mask.text(&chosen.sandbox.name));
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(&title, true))
            body data-loaded=(iso(shown.now)) {
                a class="skip" href="#main" { "Skip to the content" }
                header {
                    p class="brand" { a href="/" { "Local sandbox service" } }
                    p { "Commands run with the " b { (shown.runner) } " runner" }
                    p id="as-of" data-live { "As of " (time(shown.now)) }
                    p id="updating" hidden {
                        label { input type="checkbox" id="live" checked; " Keep up to date" }
                    }
                    noscript { p { a href=(shown.wanted.address()) { "Show the latest" } } }
                }
                div class="columns" {
                    nav aria-label="Sandboxes" {
                        (accounts(shown))
                        div id="sandboxes" data-live { (sandboxes(shown)) }
                    }
                    main id="main" tabindex="-1" {
                        @if shown.is_missing() {
                            h1 { "Not found" }
                            p role="alert" { "There is no such sandbox or account here any more." }
                        } @else if let Some(one) = &shown.chosen {
                            (chosen(shown, one))
                        } @else {
                            h1 { "Overview" }
                            p id="hint" data-live {
                                @if shown.sandboxes.is_empty() {
                                    "There is no sandbox yet. Create one with a client of this server; it shows up here."
                                } @else {
                                    "Choose a sandbox to see its commands, files and events."
                                }
                            }
                        }
                        section aria-labelledby="deliveries-title" {
                            h2 id="deliveries-title" { "Webhook deliveries" }
                            div id="deliveries" data-live { (deliveries(shown)) }
                        }
                        section aria-labelledby="requests-title" {
                            h2 id="requests-title" { "Last requests" }
                            div id="requests" data-live { (requests(shown)) }
                        }
                    }
                }
            }
        }
    }
}

fn accounts(shown: &Shown) -> Markup {
    html! {
        @if shown.accounts.len() > 1 {
            h2 { "Accounts" }
            ul class="plain" {
                @for account in &shown.accounts {
                    @let is_current = shown.account.as_ref().is_some_and(|current| current.id == account.id);
                    @let wanted = Wanted { account: Some(account.id.clone()), ..Wanted::default() };
                    li {
                        a href=(wanted.address()) aria-current=[is_current.then_some("true")] {
                            (shown.mask.text(&account.login))
                        }
                    }
                }
            }
        }
    }
}

fn sandboxes(shown: &Shown) -> Markup {
    html! {
        h2 { "Sandboxes" }
        @if shown.sandboxes.is_empty() {
            p class="quiet" { "None" }
        } @else {
            ul class="plain cards" {
                @for sandbox in &shown.sandboxes {
                    @let is_current = shown.wanted.sandbox.as_ref() == Some(&sandbox.id);
                    @let wanted = Wanted { sandbox: Some(sandbox.id.clone()), ..Wanted::default() };
                    li {
                        a href=(wanted.address()) aria-current=[is_current.then_some("page")] {
                            span class="name" { (shown.mask.text(&sandbox.name)) }
                            " " (state(sandbox.state))
                            " " span class="quiet" { (sandbox.kind) " · " (ttl(sandbox, shown.now)) }
                        }
                    }
                }
            }
            @if shown.has_more { p class="quiet" { "The newest " (shown.sandboxes.len()) " are shown." } }
        }
    }
}

/// A table that scrolls by itself: what it is called, its columns, its rows.
pub(super) fn table(label: &str, columns: &[&str], rows: Markup) -> Markup {
    html! {
        div class="scroll" tabindex="0" role="region" aria-label=(label) {
            table {
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody { (rows) }
            }
        }
    }
}

/// A state as a badge; the word says it, the colour repeats it.
pub(super) fn state(state: State) -> Markup {
    let class = match state {
        State::Ready | State::Idle | State::Running => "badge good",
        State::Error | State::Cancelled => "badge bad",
        State::Archived => "badge",
        _ => "badge busy",
    };
    html! { span class=(class) { (state.as_str()) } }
}

/// How long a sandbox may run, and how much of that is left.
pub(super) fn ttl(sandbox: &Sandbox, now: Millis) -> String {
    let Some(seconds) = sandbox.ttl_seconds else { return "no ttl".into() };
    let whole = duration(Millis::try_from(seconds).unwrap_or(Millis::MAX / 1000).saturating_mul(1000));
    match sandbox.archive_after.filter(|_| sandbox.state.is_up()) {
        Some(at) if at > now => {
            // Nobody counts the seconds of an hour.
            let left = at - now;
            let unit = if left >= 600_000 { 60_000 } else { 1000 };
            format!("ttl {whole}, {} left", duration(left / unit * unit))
        }
        Some(_) => format!("ttl {whole}, over"),
        None => format!("ttl {whole}"),
    }
}

/// A span of time in its two largest units.
pub(super) fn duration(millis: Millis) -> String {
    let seconds = millis.max(0) / 1000;
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes, seconds % 60) {
        (0, 0, 0, _) if millis < 10_000 => format!("{:.1} s", millis.max(0) as f64 / 1000.0),
        (0, 0, 0, seconds) => format!("{seconds} s"),
        (0, 0, minutes, 0) => format!("{minutes} min"),
        (0, 0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (0, hours, 0, _) => format!("{hours} h"),
        (0, hours, minutes, _) => format!("{hours} h {minutes} min"),
        (days, 0, ..) => format!("{days} d"),
        (days, hours, ..) => format!("{days} d {hours} h"),
    }
}

/// A time of day, with the whole of it for those who ask.
pub(super) fn time(at: Millis) -> Markup {
    let whole = iso(at);
    let short = whole.get(11..19).unwrap_or(&whole).to_owned();
    html! { time datetime=(whole) title=(whole) { (short) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_written_in_two_units() {
        let cases = [
            (0, "0.0 s"),
            (1_540, "1.5 s"),
            (59_999, "59 s"),
            (60_000, "1 min"),
            (61_000, "1 min 1 s"),
            (3_600_000, "1 h"),
            (5_460_000, "1 h 31 min"),
            (86_400_000, "1 d"),
            (-5, "0.0 s"),
        ];
        for (millis, shown) in cases {
            assert_eq!(duration(millis), shown);
        }
    }
}
