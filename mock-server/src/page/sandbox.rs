//! One sandbox: what it is, what runs in it, its files and what its agents did.

use maud::{Markup, html};

use super::{
    Wanted,
    data::{Chosen, Disk, MOST, Output, Shown, Text},
    frame::{duration, state, table, time, ttl},
    mask::Mask,
};
use crate::{
    space::{Listed, LocatedKind},
    world::{
        commands::{Command, Status},
        events::Event,
        sandboxes::Sandbox,
    },
};

/// The most characters that are shown of a line.
const LINE: usize = 200;

/// The most bytes of a command or of what an event says that are looked at, and the most characters of an event that are
/// shown.
const LOOKED_AT: usize = 1 << 10;
const EVENT_SHOWN: usize = 600;

pub(super) fn chosen(shown: &Shown, chosen: &Chosen) -> Markup {
    html! {
        h1 { (shown.mask.text(&chosen.sandbox.name)) }
        div id="facts" data-live { (facts(shown, &chosen.sandbox)) }
        section aria-labelledby="commands-title" {
            h2 id="commands-title" { "Commands" }
            div id="commands" data-live { (commands(shown, chosen)) }
            div id="output" data-live { @if let Some(one) = &chosen.output { (output(shown, one)) } }
        }
        section aria-labelledby="files-title" {
            h2 id="files-title" { "Files" }
            div id="files" data-live {
                @match &chosen.disk {
                    Ok(disk) => (files(shown, disk)),
                    Err(problem) => p class="quiet" { (shown.mask.text(problem)) },
                }
            }
        }
        section aria-labelledby="events-title" {
            h2 id="events-title" { "Events" }
            div id="events" data-live { (events(shown, &chosen.events)) }
        }
    }
}

fn facts(shown: &Shown, sandbox: &Sandbox) -> Markup {
    html! {
        dl class="facts" {
            dt { "State" }
            dd {
                (state(sandbox.state))
                @if let Some(error) = &sandbox.error { " " (shown.mask.text(error)) }
                @if let Some(reason) = &sandbox.health_reason { " degraded: " (shown.mask.text(reason)) }
            }
            dt { "Id" }
            dd { code { (sandbox.id) } }
            dt { "Type" }
            dd { (sandbox.kind) }
            dt { "TTL" }
            dd { (ttl(sandbox, shown.now)) }
            dt { "Created" }
            dd { (time(sandbox.created_at)) }
            @if let Some(environment) = &sandbox.environment {
                dt { "Environment" }
                dd {
                    (shown.mask.text(environment))
                    @if let Some(number) = sandbox.environment_version { ", version " (number) }
                }
            }
            @if let Some(status) = &sandbox.setup_status {
                dt { "Setup" }
                dd {
                    (status)
                    @if let Some(error) = &sandbox.setup_error {
                        " " (shown.mask.text(error).chars().take(EVENT_SHOWN).collect::<String>())
                    }
                }
            }
        }
    }
}

fn with(shown: &Shown, change: impl FnOnce(&mut Wanted)) -> String {
    let mut wanted = shown.wanted.clone();
    wanted.account = None;
    change(&mut wanted);
    wanted.address()
}

fn commands(shown: &Shown, chosen: &Chosen) -> Markup {
    let current = chosen.output.as_ref().map(|output| output.command.id.as_str());
    html! {
        @if !chosen.sandbox.monitoring {
            p class="quiet" { "Monitoring is off: no command is kept." }
        } @else if chosen.commands.is_empty() {
            p class="quiet" { "Nothing has run yet." }
        } @else {
            (table("Commands", &["Started", "Status", "Took", "Command"], html! {
                @for command in &chosen.commands {
                    (one_command(shown, command, current == Some(command.id.as_str())))
                }
            }))
            @if chosen.commands.len() >= MOST { p class="quiet" { "The newest " (MOST) " are shown." } }
        }
    }
}

fn one_command(shown: &Shown, command: &Command, is_current: bool) -> Markup {
    let address = with(shown, |wanted| wanted.command = Some(command.id.clone()));
    html! {
        tr class=[is_current.then_some("current")] {
            td { (time(command.started_at)) }
            td { (status(command)) }
            td { (duration(command.finished_at.unwrap_or(shown.now) - command.started_at)) }
            td {
                a href={ (address) "#output" } aria-current=[is_current.then_some("true")] {
                    code { (line(&shown.mask, &command.text)) }
                }
            }
        }
    }
}

fn status(command: &Command) -> Markup {
    let class = match (command.status, command.exit_code) {
        (Status::Running, _) => "badge busy",
        (Status::Exited, Some(0)) => "badge good",
        _ => "badge bad",
    };
    html! {
        span class=(class) {
            (command.status.as_str().replace('_', " "))
            @if let Some(code) = command.exit_code { " " (code) }
            @else if let Some(signal) = command.signal { " by signal " (signal) }
        }
    }
}

fn output(shown: &Shown, output: &Output) -> Markup {
    html! {
        h3 { "Output of " code { (line(&shown.mask, &output.command.text)) } " " (status(&output.command)) }
        p class="quiet" {
            "In " code { (shown.mask.text(&output.command.cwd)) } ", " (output.command.mode.as_str())
            @if let Some(pid) = output.command.process_id { ", process " (pid) }
            ", started " (time(output.command.started_at)) ", "
            @match output.command.finished_at {
                Some(end) => { "took " (duration(end - output.command.started_at)) },
                None => { "running for " (duration(shown.now - output.command.started_at)) },
            }
        }
        (stream(&shown.mask, "Standard output", "stdout", &output.stdout))
        (stream(&shown.mask, "Standard error", "stderr", &output.stderr))
    }
}

fn stream(mask: &Mask, title: &str, id: &str, text: &Text) -> Markup {
    let masked = text.masked(mask);
    html! {
        h4 id=(id) { (title) }
        @if text.is_cut() { p class="quiet" { "The last part" } }
        @if masked.is_empty() {
            p class="quiet" { "Nothing" }
        } @else {
            // A line feed right after the tag would be dropped.
            pre tabindex="0" role="region" aria-labelledby=(id) data-tail { "\n" (masked) }
        }
    }
}

fn files(shown: &Shown, disk: &Disk) -> Markup {
    let parent =
        disk.folder.rsplit_once('/').map(|(parent, _)| parent).filter(|parent| parent.len() > "/home".len());
    html! {
        h3 { "Folder " code { (shown.mask.text(&disk.folder)) } }
        ul class="plain files" {
            @if let Some(parent) = parent {
                li { a href={ (with(shown, |wanted| wanted.path = Some(parent.into()))) "#files" } { "One folder up" } }
            }
            @if !disk.folder.starts_with("/tmp") {
                li { a href={ (with(shown, |wanted| wanted.path = Some("/tmp".into()))) "#files" } { "/tmp" } }
            } @else {
                li { a href={ (with(shown, |wanted| wanted.path = Some("/home/user".into()))) "#files" } { "/home/user" } }
            }
            @for entry in &disk.entries { li { (file(shown, disk, entry)) } }
        }
        @if disk.entries.is_empty() { p class="quiet" { "The folder is empty." } }
        @if disk.has_more { p class="quiet" { "There are more." } }
        @if let Some((path, text)) = &disk.file {
            h3 id="file-title" { "File " code { (shown.mask.text(path)) } }
            @if text.is_cut() { p class="quiet" { "The first part" } }
            pre tabindex="0" role="region" aria-labelledby="file-title" { "\n" (text.masked(&shown.mask)) }
        }
    }
}

fn file(shown: &Shown, disk: &Disk, entry: &Listed) -> Markup {
    let name = entry.name.to_string_lossy().into_owned();
    let address = || {
        let path = format!("{}/{name}", disk.folder);
        format!("{}#files", with(shown, |wanted| wanted.path = Some(path)))
    };
    let is_named = entry.name.to_str().is_ok();
    html! {
        @match entry.kind {
            LocatedKind::Folder if is_named => a href=(address()) { (shown.mask.text(&name)) "/" },
            LocatedKind::File(size) if is_named => {
                a href=(address()) { (shown.mask.text(&name)) } " " span class="quiet" { (bytes(size)) }
            },
            _ => { (shown.mask.text(&name)) " " span class="quiet" { "not a file" } },
        }
    }
}

fn bytes(size: u64) -> String {
    match size {
        0..1024 => format!("{size} B"),
        1024..1_048_576 => format!("{:.1} KiB", size as f64 / 1024.0),
        _ => format!("{:.1} MiB", size as f64 / 1_048_576.0),
    }
}

fn events(shown: &Shown, events: &[Event]) -> Markup {
    html! {
        @if events.is_empty() {
            p class="quiet" { "No agent has done anything yet." }
        } @else {
            (table("Events", &["Time", "Type", "Content"], html! {
                @for event in events {
                    tr {
                        td { (time(event.at)) }
                        td { (event.kind) }
                        td { code class="wrap" { (content(&shown.mask, event)) } }
                    }
                }
            }))
        }
    }
}

fn content(mask: &Mask, event: &Event) -> String {
    mask.json(&event.data, LOOKED_AT).chars().take(EVENT_SHOWN).collect()
}

/// The first line of a command, without its secrets.
fn line(mask: &Mask, text: &str) -> String {
    let masked = mask.first(text, LOOKED_AT);
    let mut shown: String = masked.lines().next().unwrap_or_default().chars().take(LINE).collect();
    if shown.len() < masked.len() || text.len() > LOOKED_AT {
        shown.push('…');
    }
    shown
}
