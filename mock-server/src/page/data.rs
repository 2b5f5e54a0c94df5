//! What is shown, read in bounded parts: the newest of each, and never all of anything.

use std::{ffi::OsStr, ops::ControlFlow};

use futures_util::StreamExt as _;

use super::{Wanted, mask::Mask};
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
        commands::{Command, Mode, Status, Stream},
        deliveries::Delivery,
        dotenv,
        endpoints::{self, Endpoint},
        environments,
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
    /// What hides secrets, those of the chosen sandbox as well.
    pub(super) mask: Mask,
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

/// A text as it is, with its secrets.
pub(super) struct Text {
    bytes: Vec<u8>,
    part: Part,
}

/// Which part of a text there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    Start,
    End,
}

impl Text {
    fn whole(text: &str) -> Self {
        Self { bytes: text.into(), part: Part::Whole }
    }

    /// Whether that is not all of it.
    pub(super) fn is_cut(&self) -> bool {
        self.part != Part::Whole
    }

    /// The text without its secrets.
    pub(super) fn masked(&self, mask: &Mask) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        match self.part {
            Part::Whole => mask.text(&text),
            Part::Start => mask.start_of_text(&text),
            Part::End => mask.end_of_text(&self.bytes),
        }
    }
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
    let found = app.read(|tx| {
        let Some(sandbox) = typed::get::<Sandbox>(tx, id)? else { return Ok::<_, StoreError>(None) };
        Ok(Some((secrets(tx, &sandbox)?, sandbox)))
    })?;
    if let Some((mask, sandbox)) = found {
        shown.chosen = Some(choose(app, sandbox, wanted).await?);
        shown.mask = mask;
    }
    Ok(shown)
}

/// How many versions of a sandbox's environment are looked through for secrets: the one that it uses, and those before it,
/// which it may have used when it wrote what is shown.
const VERSIONS: u64 = 5;

/// Hides what the server knows for a secret of a sandbox: its own variables, and the variables and files of its
/// environment.
fn secrets(tx: &dyn Reader, sandbox: &Sandbox) -> Result<Mask, StoreError> {
    let mut versions = Vec::new();
    if let (Some(environment), Some(number)) = (&sandbox.environment_id, sandbox.environment_version) {
        for number in number.saturating_sub(VERSIONS - 1)..=number {
            versions.extend(environments::version(tx, environment, number)?);
        }
    }
    // Those that are not passed on (any more) are secrets all the same.
    let given: Vec<_> =
        versions.iter().map(|version| dotenv::parse(&version.contents.env).unwrap_or_default()).collect();
    let variables = sandbox.env.values().chain(given.iter().flat_map(|variables| variables.values()));
    let files = versions.iter().flat_map(|version| &version.contents.secret_files);
    Ok(Mask::of(variables.chain(files.map(|file| &file.contents)).map(String::as_str)))
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
        mask: Mask::default(),
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
            // Nobody ran it as a command. The history keeps so few of these that they do not make this long.
            if command.mode == Mode::Process {
                return ControlFlow::Continue(());
            }
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
        Some(id) => {
            let source = Source::command(app, &sandbox, id)?;
            let source = source.filter(|source| source.record().mode != Mode::Process);
            source.map(|source| output(app, &source)).transpose()?
        }
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
        let is_whole = part.offset == 0;
        Ok::<_, ApiError>(Text {
            bytes: part.bytes.into(),
            part: if is_whole { Part::Whole } else { Part::End },
        })
    };
    let (stdout, stderr) = (last(Stream::Stdout)?, last(Stream::Stderr)?);
    Ok(Output { command, stdout, stderr })
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
            let text = match is_secret(&files, sandbox, &located.path).await {
                true => Text::whole("(a secret file)"),
                false => head_of(&files, path).await.map_err(problem)?,
            };
            (folder, Some((resolved, text)))
        }
        LocatedKind::Folder => (resolved, None),
        LocatedKind::Missing => return Err(format!("There is nothing at {path}.")),
        _ => return Err(format!("{path} is a pipe, a socket or a device.")),
    };
    let (entries, has_more) = files.list(&folder, MOST).await.map_err(problem)?;
    Ok(Disk { folder, entries, has_more, file })
}

/// Whether the sandbox's environment put this file there; links may lead to where it did.
async fn is_secret(files: &Files, sandbox: &Sandbox, resolved: &OsStr) -> bool {
    for path in &sandbox.secret_files {
        if files.locate(path).await.is_ok_and(|placed| placed.path == resolved) {
            return true;
        }
    }
    false
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
    if bytes.contains(&0) {
        bytes = b"(not text)".to_vec();
    }
    Ok(Text { bytes, part: if is_cut { Part::Start } else { Part::Whole } })
}
