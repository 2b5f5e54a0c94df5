//! What is shown, read in bounded parts: the newest of each, and never all of anything.

use std::ops::ControlFlow;

use futures_util::StreamExt as _;

use super::{Wanted, mask};
use crate::{
    app::App,
    environment,
    output::Source,
    record::{Recorded, Recorder},
    reply::ApiError,
    space::{FileError, Files, HOME, Listed, LocatedKind},
    store::{Order, Reader, StoreError, typed},
    world::{
        accounts::Account,
        commands::{Command, Status, Stream},
        deliveries::Delivery,
        endpoints::{self, Endpoint},
        events::{self, Event, Filter},
        keys::Key,
        sandboxes::{Sandbox, listed},
        time::Millis,
    },
};

/// How many of each kind are shown.
pub(super) const MOST: usize = 100;

/// The most bytes of a stream or of a file that are shown.
pub(super) const TEXT_SHOWN: usize = 16 << 10;

/// Everything that is on the page.
pub(super) struct Shown {
    pub(super) now: Millis,
    pub(super) runner: &'static str,
    pub(super) wanted: Wanted,
    pub(super) accounts: Vec<Account>,
    pub(super) account: Option<Account>,
    pub(super) sandboxes: Vec<Sandbox>,
    /// Whether there are more than that.
    pub(super) has_more: bool,
    pub(super) chosen: Option<Chosen>,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) deliveries: Vec<Delivery>,
    pub(super) requests: Vec<Recorded>,
}

impl Shown {
    /// Whether something was asked for that there is not.
    pub(super) fn is_missing(&self) -> bool {
        (self.wanted.sandbox.is_some() && self.chosen.is_none())
            || (self.wanted.account.is_some() && self.account.is_none())
    }
}

/// One sandbox in full.
pub(super) struct Chosen {
    pub(super) sandbox: Sandbox,
    pub(super) commands: Vec<Command>,
    pub(super) output: Option<Output>,
    pub(super) events: Vec<Event>,
    /// What its disk holds, or why that cannot be shown.
    pub(super) disk: Result<Disk, String>,
}

/// What a command wrote.
pub(super) struct Output {
    pub(super) command: Command,
    pub(super) stdout: Text,
    pub(super) stderr: Text,
}

/// A part of a text, secrets masked.
pub(super) struct Text {
    pub(super) text: String,
    /// Whether that is not all of it.
    pub(super) is_cut: bool,
}

/// A folder, and the file in it that was chosen.
pub(super) struct Disk {
    pub(super) folder: String,
    pub(super) entries: Vec<Listed>,
    pub(super) has_more: bool,
    pub(super) file: Option<(String, Text)>,
}

/// Reads all that is shown.
pub(super) async fn gather(
    app: &App,
    recorder: &Recorder,
    wanted: &Wanted,
    first_key: &str,
) -> Result<Shown, ApiError> {
    let mut shown = app.read(|tx| read(tx, app, recorder, wanted, first_key))?;
    let Some(id) = &wanted.sandbox else { return Ok(shown) };
    let Some(sandbox) = app.read::<Option<Sandbox>, StoreError>(|tx| typed::get(tx, id))? else {
        return Ok(shown);
    };
    shown.chosen = Some(choose(app, sandbox, wanted).await?);
    Ok(shown)
}

fn read(
    tx: &dyn Reader,
    app: &App,
    recorder: &Recorder,
    wanted: &Wanted,
    first_key: &str,
) -> Result<Shown, StoreError> {
    let mut accounts: Vec<Account> = Vec::new();
    typed::scan(tx, "", None, Order::Ascending, |_, account| {
        accounts.push(account);
        if accounts.len() < MOST { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    let of_sandbox = match &wanted.sandbox {
        Some(id) => typed::get::<Sandbox>(tx, id)?.map(|sandbox| sandbox.account),
        None => None,
    };
    let account = match of_sandbox.as_ref().or(wanted.account.as_ref()) {
        Some(id) => typed::get::<Account>(tx, id)?,
        None => {
            let first = typed::get::<Key>(tx, first_key)?.map(|key| key.account);
            let first = first.map_or(Ok(None), |id| typed::get::<Account>(tx, &id))?;
            first.or_else(|| accounts.first().cloned())
        }
    };
    let mut shown = Shown {
        now: app.now(),
        runner: app.runner.name(),
        wanted: wanted.clone(),
        accounts,
        account,
        sandboxes: Vec::new(),
        has_more: false,
        chosen: None,
        endpoints: Vec::new(),
        deliveries: Vec::new(),
        requests: recorder.last(MOST),
    };
    if let Some(account) = &shown.account {
        let rows = listed(&format!("account/{}", account.id), None);
        let mut ids = Vec::new();
        typed::rows(tx, &rows, typed::after_prefix(&rows).as_deref(), Order::Descending, |_, id| {
            ids.push(id.to_owned());
            if ids.len() <= MOST { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        shown.has_more = ids.len() > MOST;
        for id in ids.iter().take(MOST) {
            shown.sandboxes.extend(typed::get::<Sandbox>(tx, id)?);
        }
        shown.endpoints = endpoints::of_account(tx, &account.id)?;
        shown.deliveries = deliveries(tx, &shown.endpoints)?;
    }
    Ok(shown)
}

/// The newest deliveries of some endpoints, of which an account has few.
fn deliveries(tx: &dyn Reader, endpoints: &[Endpoint]) -> Result<Vec<Delivery>, StoreError> {
    let mut found: Vec<Delivery> = Vec::new();
    for endpoint in endpoints {
        let (prefix, before) = (format!("{}/", endpoint.id), found.len());
        let to = typed::after_prefix(&prefix);
        typed::scan(tx, &prefix, to.as_deref(), Order::Descending, |_, delivery| {
            found.push(delivery);
            if found.len() - before < MOST { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    found.sort_by(|a, b| (b.created_at, &b.event).cmp(&(a.created_at, &a.event)));
    found.truncate(MOST);
    Ok(found)
}

async fn choose(app: &App, sandbox: Sandbox, wanted: &Wanted) -> Result<Chosen, ApiError> {
    let live = app.live(&sandbox);
    let prefix = format!("{}/", sandbox.id);
    let (commands, events) = app.read(|tx| {
        let mut commands: Vec<Command> = Vec::new();
        let to = typed::after_prefix(&prefix);
        typed::scan::<Command>(tx, &prefix, to.as_deref(), Order::Descending, |_, command| {
            // One that runs is shown as it is now, not as it was when it started.
            let now = (command.status == Status::Running).then(|| live.job(&command.id)).flatten();
            commands.push(now.map_or(command, |job| job.record()));
            if commands.len() < MOST { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let page = events::page(tx, &sandbox.id, &Filter::default(), None, Order::Descending, MOST)?;
        Ok::<_, StoreError>((commands, page.events))
    })?;
    let id = wanted.command.as_deref().or(commands.first().map(|command| command.id.as_str()));
    let output = match id {
        Some(id) => Source::command(app, &sandbox, id)?.map(|source| output(app, &source)).transpose()?,
        None => None,
    };
    let disk = match sandbox.state.is_up() {
        true => look(app, &sandbox, wanted.path.as_deref().unwrap_or(HOME)).await,
        false => Err(format!("Files can be seen while the sandbox is up; it is {}.", sandbox.state.as_str())),
    };
    Ok(Chosen { sandbox, commands, output, events, disk })
}

fn output(app: &App, source: &Source) -> Result<Output, ApiError> {
    let command = source.record();
    let last = |stream: Stream| {
        let (shown, end) = (TEXT_SHOWN as u64, stream.kept(&command).end);
        let part = source.part(app, stream, end.saturating_sub(shown), TEXT_SHOWN)?;
        Ok::<_, ApiError>(match part.offset {
            0 => Text { text: mask::text(&String::from_utf8_lossy(&part.bytes)), is_cut: false },
            _ => Text { text: mask::text(&whole_words(&part.bytes)), is_cut: true },
        })
    };
    let (stdout, stderr) = (last(Stream::Stdout)?, last(Stream::Stderr)?);
    Ok(Output { command, stdout, stderr })
}

/// The bytes from the first space on: the end of a secret alone would not be known for one.
fn whole_words(bytes: &[u8]) -> String {
    const LONGEST: usize = 1024;
    let start =
        bytes.iter().position(u8::is_ascii_whitespace).unwrap_or(LONGEST).min(LONGEST).min(bytes.len());
    String::from_utf8_lossy(&bytes[start..]).into_owned()
}

/// A folder of a sandbox, or the folder of a file and the file.
async fn look(app: &App, sandbox: &Sandbox, path: &str) -> Result<Disk, String> {
    let problem = |error: FileError| format!("{path} cannot be shown: {error}");
    let files = environment::files(app, &sandbox.id).map_err(problem)?;
    let located = files.locate(path).await.map_err(problem)?;
    let resolved = located.path.to_string_lossy().into_owned();
    let (folder, file) = match located.kind {
        LocatedKind::File(_) => {
            let folder = resolved.rsplit_once('/').map_or(HOME, |(folder, _)| folder).to_owned();
            let text = head_of(&files, path).await.map_err(problem)?;
            (folder, Some((resolved, text)))
        }
        LocatedKind::Folder => (resolved, None),
        LocatedKind::Missing => return Err(format!("There is nothing at {path}.")),
        _ => return Err(format!("{path} is a pipe, a socket or a device.")),
    };
    let (entries, has_more) = files.list(&folder, MOST).await.map_err(problem)?;
    Ok(Disk { folder, entries, has_more, file })
}

/// The first part of a file.
async fn head_of(files: &Files, path: &str) -> Result<Text, FileError> {
    let mut stream = files.stream(path, u64::MAX).await?;
    let is_cut = stream.size() > TEXT_SHOWN as u64;
    let mut bytes = Vec::new();
    while let Some(chunk) = stream.next().await {
        bytes.extend_from_slice(&chunk?);
        if bytes.len() >= TEXT_SHOWN {
            bytes.truncate(TEXT_SHOWN);
            break;
        }
    }
    let text = match bytes.contains(&0) {
        true => "(not text)".to_owned(),
        false => mask::text(&String::from_utf8_lossy(&bytes)),
    };
    Ok(Text { text, is_cut })
}
