//! The conversations of a sandbox.

use serde_json::json;

use super::{Call, prompts::check_wallet};
use crate::{
    app::App,
    reply::{Answer, ApiError, Outcome},
    store::typed,
    view::time_or_null,
    world::{conversations, prompts, providers::provider, time::iso},
};

pub(super) fn list(app: &App, call: &Call) -> Outcome {
    let sandbox = call.sandbox(app)?;
    let all = app.read(|tx| {
        check_wallet(tx, &call.caller, &sandbox)?;
        let mut shown = Vec::new();
        for (index, it) in conversations::latest(tx, &sandbox.id, usize::MAX)?.into_iter().enumerate() {
            let runs = typed::row(tx, &prompts::running(&sandbox.id, &it.id))?.is_some();
            shown.push(json!({
                "id": it.id,
                "createdAt": iso(it.created_at),
                "lastPromptAt": time_or_null(it.prompted_at),
                "prompts": it.prompts,
                "running": runs,
                "lastHarness": it.provider.as_deref().and_then(provider).map(|provider| provider.harness),
                "lastModel": it.model,
                "lastPromptPreview": it.preview,
                "current": index == 0,
            }));
        }
        Ok::<_, ApiError>(shown)
    })?;
    Ok(Answer::ok("conversation.list", json!({"id": sandbox.id, "conversations": all})))
}
