//! Prompts on their way in: which conversation, which agent, and the place in the queue.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    app::App,
    handlers::not_ready,
    reply::ApiError,
    store::{Reader, Writer, typed},
    world::{
        conversations::{self, Conversation, conversation_key},
        events::{self, Event},
        ids,
        prompts::{Prompt, Status},
        providers::{PROVIDERS, Provider, provider},
        sandboxes::Sandbox,
        seed_agents::AgentsSeed,
    },
};

/// Where an account signs in to an agent.
const SETUP_URL: &str = "http://127.0.0.1/providers";

/// A file that came with a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attachment {
    /// Its name.
    pub filename: String,
    /// Its media type.
    pub mime_type: String,
    /// Its content.
    pub content: Vec<u8>,
}

impl Attachment {
    /// A file of this name, media type and content.
    pub fn new(
        filename: impl Into<String>,
        mime_type: impl Into<String>,
        content: impl Into<Vec<u8>>,
    ) -> Self {
        Self { filename: filename.into(), mime_type: mime_type.into(), content: content.into() }
    }
}

/// An earlier event that a prompt refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Citation {
    /// The event.
    pub event_id: String,
    /// The event's type.
    pub kind: String,
    /// Who wrote it.
    pub author: String,
    /// The text that is cited.
    pub text: String,
}

impl Citation {
    /// This text of an event.
    pub fn new(
        event_id: impl Into<String>,
        kind: impl Into<String>,
        author: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        Self { event_id: event_id.into(), kind: kind.into(), author: author.into(), text: text.into() }
    }
}

/// A prompt as a person gives it in a browser: it may carry files and cite earlier events, which the API does not take.
/// See [`World::prompt`](crate::World::prompt).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PersonPrompt {
    /// The task.
    pub text: String,
    /// The conversation; the one that was prompted last if `None`.
    pub conversation: Option<String>,
    /// The files that come with it.
    pub attachments: Vec<Attachment>,
    /// The earlier events that it refers to.
    pub citations: Vec<Citation>,
}

impl PersonPrompt {
    /// A task for the conversation that was prompted last.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Goes on with this conversation.
    #[must_use]
    pub fn conversation(mut self, id: impl Into<String>) -> Self {
        self.conversation = Some(id.into());
        self
    }

    /// Adds a file.
    #[must_use]
    pub fn attach(mut self, file: Attachment) -> Self {
        self.attachments.push(file);
        self
    }

    /// Refers to an earlier event.
    #[must_use]
    pub fn cite(mut self, citation: Citation) -> Self {
        self.citations.push(citation);
        self
    }
}

/// Which conversation a prompt goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    New,
    Existing(String),
    /// The one that was prompted last; a new one if there is none.
    Current,
}

/// What is asked of an agent.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) text: String,
    pub(crate) provider: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<String>,
    pub(crate) fast: Option<bool>,
    pub(crate) target: Target,
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) citations: Vec<Citation>,
}

impl From<PersonPrompt> for Ask {
    fn from(prompt: PersonPrompt) -> Self {
        Self {
            text: prompt.text,
            provider: None,
            model: None,
            effort: None,
            fast: None,
            target: prompt.conversation.map_or(Target::Current, Target::Existing),
            attachments: prompt.attachments,
            citations: prompt.citations,
        }
    }
}

/// Puts a prompt into the queue of its conversation; [`wake`](super::wake) then sees what can begin. `allow` may refuse
/// it once it is known that the agent is signed in.
pub(crate) fn submit(
    app: &App,
    id: &str,
    ask: &Ask,
    allow: impl FnOnce(&dyn Reader, &Sandbox) -> Result<(), ApiError>,
) -> Result<Prompt, ApiError> {
    let now = app.now();
    let settings = app.agents.settings();
    let prompt = app.write(|tx| {
        let sandbox: Sandbox = typed::get(&*tx, id)?.ok_or_else(|| ApiError::not_found("sandbox"))?;
        let existing = match &ask.target {
            Target::New => None,
            Target::Current => conversations::current(&*tx, id)?,
            Target::Existing(conversation) => {
                let found: Option<Conversation> = typed::get(&*tx, &conversation_key(id, conversation))?;
                Some(found.ok_or_else(|| ApiError::not_found("conversation"))?)
            }
        };
        let chosen = choose(ask, existing.as_ref(), &settings)?;
        allow(&*tx, &sandbox)?;
        let status = match sandbox.state {
            state if state.is_starting() || app.scenarios().cut_off(&sandbox) => Status::Sending,
            state if state.is_up() => Status::Queued,
            state => return Err(not_ready(state)),
        };
        let new = || Conversation::new(id, &uuid::Uuid::new_v4().to_string(), now);
        let mut conversation = existing.unwrap_or_else(new);
        let prompt = Prompt {
            id: ids::in_order("prm", now),
            sandbox: id.to_owned(),
            conversation: conversation.id.clone(),
            created_at: now,
            status,
            provider: chosen.id.to_owned(),
            model: ask.model.clone(),
            effort: ask.effort.clone(),
            fast: ask.fast,
            ended_at: None,
            error: None,
            is_steer: false,
            growing: Vec::new(),
        };
        typed::put(tx, &prompt)?;
        let at = events::record(tx, event(&prompt, ask), now)?;
        conversation.prompted(&ask.text, now);
        conversation.active_at = at;
        conversation.provider = Some(prompt.provider.clone());
        conversation.model = Some(ask.model.as_deref().unwrap_or(chosen.default_model()).to_owned());
        conversation.last_turn = Some(prompt.id.clone());
        typed::put(tx, &conversation)?;
        Ok::<_, ApiError>(prompt)
    })?;
    app.agents.changed(id);
    Ok(prompt)
}

/// The agent: the one that is named, else the conversation's, else the account's own choice.
fn choose(
    ask: &Ask,
    conversation: Option<&Conversation>,
    settings: &AgentsSeed,
) -> Result<&'static Provider, ApiError> {
    let named = ask.provider.as_deref().or(conversation.and_then(|it| it.provider.as_deref()));
    let own =
        settings.signed_in.as_ref().map_or(Some(PROVIDERS[0].id), |all| all.first().map(String::as_str));
    let chosen = named.or(own).and_then(provider).unwrap_or(&PROVIDERS[0]);
    if settings.signed_in.as_ref().is_some_and(|all| !all.iter().any(|id| id == chosen.id)) {
        let problem = format!("the account is not signed in to {}", chosen.id);
        return Err(ApiError::new(409, "provider_not_configured", problem)
            .retryable(false)
            .detail("provider", chosen.id)
            .detail("setupUrl", format!("{SETUP_URL}/{}", chosen.id)));
    }
    let model = ask.model.as_deref().unwrap_or(chosen.default_model());
    if ask.fast == Some(true) && chosen.has_fast_mode(model) == Some(false) {
        let problem = format!("the model {model} has no fast mode");
        return Err(ApiError::new(400, "fast_mode_not_supported", problem).detail("model", model));
    }
    Ok(chosen)
}

fn event(prompt: &Prompt, ask: &Ask) -> Event {
    let mut data = json!({"prompt": ask.text, "status": prompt.status.as_str()});
    if !ask.attachments.is_empty() {
        let show = |it: &Attachment| {
            json!({
                "filename": it.filename,
                "mimeType": it.mime_type,
                "base64Data": STANDARD.encode(&it.content),
            })
        };
        data["attachments"] = ask.attachments.iter().map(show).collect::<Vec<Value>>().into();
    }
    if !ask.citations.is_empty() {
        let show = |it: &Citation| json!({"eventId": it.event_id, "type": it.kind, "author": it.author, "text": it.text});
        data["citations"] = ask.citations.iter().map(show).collect::<Vec<Value>>().into();
    }
    Event {
        sandbox: prompt.sandbox.clone(),
        id: prompt.id.clone(),
        kind: "prompt".into(),
        at: 0,
        task: prompt.id.clone(),
        conversation: prompt.conversation.clone(),
        data,
    }
}

/// Puts a steering message that came too late into the queue, as a turn of its own. Its event is written already.
pub(crate) fn queue_steer(
    tx: &mut dyn Writer,
    conversation: &mut Conversation,
    letter_id: &str,
    after: &Prompt,
    now: crate::world::time::Millis,
) -> Result<(), crate::store::StoreError> {
    let prompt = Prompt {
        id: letter_id.to_owned(),
        created_at: now,
        status: Status::Queued,
        ended_at: None,
        error: None,
        is_steer: true,
        growing: Vec::new(),
        ..after.clone()
    };
    typed::put(tx, &prompt)?;
    conversation.last_turn = Some(prompt.id);
    typed::put(tx, conversation)
}
