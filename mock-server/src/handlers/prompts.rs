//! Asking agents to do something, speaking into what they do, and stopping it.

use std::sync::Arc;

use serde_json::json;

use super::{Call, limits::check_paid};
use crate::{
    agent::{self, Ask, Target},
    app::App,
    auth::Caller,
    reply::{Answer, ApiError, Outcome},
    store::{Reader, typed},
    world::{
        accounts::Organisation,
        conversations::{Conversation, conversation_key},
        prompts::{self, Prompt, prompt_key},
        providers::PROVIDERS,
        sandboxes::Sandbox,
    },
};

/// Refuses what is only for those who pay when whoever pays for the sandbox cannot.
pub(super) fn check_wallet(tx: &dyn Reader, caller: &Caller, sandbox: &Sandbox) -> Result<(), ApiError> {
    let pays = match &sandbox.organisation {
        Some(id) => typed::get::<Organisation>(tx, id)?,
        None => None,
    };
    check_paid(&caller.wallet(tx, pays)?)
}

/// A conversation of a sandbox.
pub(super) fn conversation(tx: &dyn Reader, sandbox: &str, id: &str) -> Result<Conversation, ApiError> {
    typed::get(tx, &conversation_key(sandbox, id))?.ok_or_else(|| ApiError::not_found("conversation"))
}

pub(super) fn prompt(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let target = match (call.flag("new"), call.text("conversationId")) {
        (true, Some(_)) => {
            let problem = "cannot be given together with new";
            return Err(ApiError::invalid("invalid_request", "conversationId", problem));
        }
        (true, None) => Target::New,
        (false, Some(id)) => Target::Existing(id.to_owned()),
        (false, None) => Target::Current,
    };
    let text = |name| call.text(name).map(str::to_owned);
    let ask = Ask {
        text: text("prompt").unwrap_or_default(),
        provider: text("provider"),
        model: text("model"),
        effort: text("reasoningEffort"),
        fast: call.body.get("fast").and_then(serde_json::Value::as_bool),
        target,
        attachments: Vec::new(),
        citations: Vec::new(),
    };
    let prompt =
        agent::submit(app, &sandbox.id, &ask, |tx, sandbox| check_wallet(tx, &call.caller, sandbox))?;
    app.tasks.spawn(agent::wake(app.clone(), sandbox.id.clone()));
    let body = json!({
        "id": sandbox.id,
        "promptId": prompt.id,
        "conversationId": prompt.conversation,
        "promptRun": prompts::view(&prompt),
        "status": "queued",
        "provider": prompt.provider,
        "model": prompt.model,
        "reasoningEffort": prompt.effort,
        "fast": prompt.fast,
    });
    Ok(Answer::new(202, "prompt.queued", body))
}

pub(super) fn status(app: &App, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let found: Option<Prompt> =
        app.read(|tx| typed::get(tx, &prompt_key(&sandbox.id, call.id("promptId"))))?;
    let prompt = found.filter(|prompt| !prompt.is_steer).ok_or_else(|| ApiError::not_found("prompt"))?;
    Ok(Answer::ok("prompt.run", json!({"id": sandbox.id, "promptRun": prompts::view(&prompt)})))
}

pub(super) async fn interrupt(app: &Arc<App>, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let named = call.query("conversation");
    app.read(|tx| {
        check_wallet(tx, &call.caller, &sandbox)?;
        if let Some(id) = named {
            conversation(tx, &sandbox.id, id)?;
        }
        Ok::<_, ApiError>(())
    })?;
    if !sandbox.state.is_up() && !sandbox.state.is_starting() {
        return Err(super::not_ready(sandbox.state));
    }
    // Carried through even if the caller goes away.
    let (stopping, stopped, id) = (app.clone(), sandbox.clone(), named.map(str::to_owned));
    let work = async move { agent::interrupt(&stopping, &stopped, id.as_deref()).await };
    app.tasks.spawn(work).await.map_err(ApiError::internal)??;
    app.tasks.spawn(agent::wake(app.clone(), sandbox.id.clone()));
    let body = json!({"id": sandbox.id, "status": "interrupted", "conversationId": named});
    Ok(Answer::ok("sandbox.interrupted", body))
}

pub(super) fn provider_models() -> Outcome {
    let providers: Vec<_> = PROVIDERS.iter().map(|provider| provider.view()).collect();
    Ok(Answer::ok("provider.models", json!({ "providers": providers })))
}
