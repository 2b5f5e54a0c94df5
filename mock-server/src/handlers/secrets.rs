//! The variables and secret files of the default environment.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Call,
    environment_rules::{self as rules, Scope},
    environments::{push_to_active, show_files},
};
use crate::{
    app::App,
    reply::{Answer, ApiError, Outcome},
    world::environments::{self, Environment, Version},
};

pub(super) fn get(app: &App, call: &Call) -> Outcome {
    let scope = Scope::of(call);
    scope.prepare(app)?;
    app.read(|tx| {
        let environment = scope.default(tx, call)?;
        let latest = environments::latest(tx, &environment)?;
        Ok(Answer::ok("secrets.info", show(&environment, &latest)))
    })
}

fn show(environment: &Environment, version: &Version) -> Value {
    json!({
        "success": true,
        "environmentId": version.id,
        "subenvironmentId": environment.id,
        "envContents": version.contents.env,
        "secretFiles": show_files(&version.contents.secret_files),
    })
}

pub(super) async fn update(app: &Arc<App>, call: &Call) -> Outcome {
    let scope = Scope::to_change(call)?;
    scope.prepare(app)?;
    let files = rules::secret_files(call)?.unwrap_or_default();
    let text = call.text("envContents").unwrap_or_default();
    rules::check_env(text, "envContents")?;
    let (environment, version) = app.write(|tx| {
        let mut environment = scope.default(&*tx, call)?;
        let version = rules::change(tx, &mut environment, app.now(), |_, contents| {
            text.clone_into(&mut contents.env);
            contents.secret_files = files;
            Ok(())
        })?;
        Ok::<_, ApiError>((environment, version))
    })?;
    let (updated, failed) = push_to_active(app, &environment).await?;
    let mut body = show(&environment, &version);
    body["pushed"] = json!({"updated": updated, "failed": failed});
    Ok(Answer::ok("secrets.updated", body))
}
