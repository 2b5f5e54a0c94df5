//! Making sandboxes without ever losing one.

use super::{
    Api, AsyncSandboxer,
    allowance::Allowance,
    given,
    lifecycle::NO_GRACE,
    options::{Create, Update, Waiting, check_name},
    reaper::{Guard, Target},
    sandbox::AsyncSandbox,
};
use crate::{
    call::CallOptions,
    error::{Error, Result},
    models::{Sandbox, SandboxVisibility},
    transport::Tries,
    wire::Patch,
};

impl AsyncSandboxer {
    /// Makes a sandbox and waits until it is ready unless told not to.
    ///
    /// All tries carry one `Idempotency-Key`, so a lost answer never makes a second sandbox. If the name cannot be set or
    /// the wait fails, the error carries the [id](Error::sandbox_id) of the sandbox, which stays. If the returned future
    /// is dropped after the call was sent, nobody would know the sandbox: the client then learns its id by sending the
    /// call again with the same key, and deletes it, in the background ([`close`](Self::close) waits for that). Where no
    /// connection had taken the call, or the service had turned it away, there is nothing to look for and nothing is sent.
    /// Nor is it when the key is your own ([`CallOptions::idempotency_key`]): then so is the recovery.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for an option out of its limits, before anything is sent;
    /// [`RateLimited`](crate::ErrorKind::RateLimited), [`PaymentRequired`](crate::ErrorKind::PaymentRequired) and the
    /// other refusals of the service; [`SandboxState`](crate::ErrorKind::SandboxState) when it failed or got no machine;
    /// [`WaitTimeout`](crate::ErrorKind::WaitTimeout) after 5 minutes or the option's own limit, or when a total limit of
    /// the client or view is used up, which covers the call and the waits together. Where the setup script was to be
    /// waited for ([`wait_for_setup`](Create::wait_for_setup)) and failed, [`SandboxState`](crate::ErrorKind::SandboxState)
    /// with the code `setup_failed`; the message and `setupError` in the details hold its exit code and the end of what it
    /// wrote.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::Create;
    /// use std::time::Duration;
    ///
    /// let sandbox = client.create(Create::new().kind("small").ttl(Duration::from_secs(1800)).env("CI", "1")).await?;
    /// assert_eq!(sandbox.exec("echo $CI").await?.stdout_text(), "1\n");
    /// # Ok(()) }
    /// ```
    pub async fn create(&self, options: Create) -> Result<AsyncSandbox> {
        check(&options)?;
        birth_of(self.api(), &options).run(async |api| post(&api, &options).await).await
    }

    /// Makes a sandbox whose deletion is the guard's from the first moment on.
    pub(super) async fn create_guarded(&self, options: Create) -> Result<(AsyncSandbox, Guard)> {
        check(&options)?;
        let birth = birth_of(self.api(), &options);
        let mut guard = Guard::new(self.api());
        // If it fails, what may have been made is for the guard to find and delete.
        let sandbox = birth.bear(&mut guard, true, async |api| post(&api, &options).await).await?;
        Ok((sandbox, guard))
    }
}

fn check(options: &Create) -> Result<()> {
    options.check()?;
    let org = match &options.request.org {
        Patch::Value(org) => Some(org.as_str()),
        _ => None,
    };
    given::filled("org", org)?;
    given::filled("visibility", options.request.visibility.as_ref().map(SandboxVisibility::as_str))
}

fn birth_of<'a>(api: &'a Api, options: &Create) -> Birth<'a> {
    let sets_up = options.sets_up();
    let Create { request, mut waiting, name } = options.clone();
    waiting.setup &= sets_up;
    Birth { api, name, waiting, target: Target::Create { request: Box::new(request) } }
}

async fn post(api: &Api, options: &Create) -> Result<Made> {
    let answer = api.create(options.request.clone()).await?;
    Ok(Made { id: answer.sandbox.id.clone(), info: Some(answer.sandbox) })
}

/// A sandbox the service has just made.
pub(super) struct Made {
    pub(super) id: String,
    pub(super) info: Option<Sandbox>,
}

/// What follows the call that makes a sandbox, and what has to be undone if it is dropped half-way.
pub(super) struct Birth<'a> {
    pub(super) api: &'a Api,
    pub(super) name: Option<String>,
    pub(super) waiting: Waiting,
    pub(super) target: Target,
}

impl Birth<'_> {
    /// Makes the sandbox; dropped half-way, it is cleaned up, but an error leaves it to the caller.
    pub(super) async fn run(self, post: impl AsyncFnOnce(Api) -> Result<Made>) -> Result<AsyncSandbox> {
        let mut guard = Guard::new(self.api);
        let born = self.bear(&mut guard, false, post).await;
        guard.disarm();
        born
    }

    /// Makes the sandbox with the guard armed; a total limit that was set covers all of it. With a key of the caller's own the guard is armed only if it must be.
    async fn bear(
        self,
        guard: &mut Guard,
        must_guard: bool,
        post: impl AsyncFnOnce(Api) -> Result<Made>,
    ) -> Result<AsyncSandbox> {
        let Self { api, name, waiting, target } = self;
        check_name(name.as_deref())?;
        let allowance = Allowance::of(api);
        let own_key = api.options().idempotency_key.clone();
        let guarded = must_guard || own_key.is_none();
        let key = own_key.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let tries = Tries::default();
        if guarded {
            guard.arm_replay(&tries, Target::Replay { key: key.clone(), call: Box::new(target) });
        }
        let made = post(api.with(CallOptions::new().idempotency_key(key)).noting(&tries)).await?;
        if guarded {
            guard.arm(Target::Sandbox(made.id.clone()));
        }
        let sandbox = AsyncSandbox::new(api, &made.id, made.info);
        let label = |error: Error| error.with_sandbox_id(Some(made.id.clone()));
        if let Some(name) = name {
            sandbox.within(&allowance).update(Update::new().name(name)).await.map_err(label)?;
        }
        if waiting.wait {
            let began = api.clock().elapsed();
            sandbox.within(&allowance).wait_started(waiting.limit, NO_GRACE).await.map_err(label)?;
            if waiting.setup {
                let waited = api.clock().elapsed().saturating_sub(began);
                let left = waiting.limit.map(|limit| limit.saturating_sub(waited));
                let set_up = sandbox.within(&allowance).wait_for_setup(left).await;
                set_up.map_err(|error| label(with_setup_error(error, &sandbox)))?;
            }
        }
        Ok(sandbox)
    }
}

/// The error of a script that failed, with what the service says of it where a program finds it.
fn with_setup_error(error: Error, sandbox: &AsyncSandbox) -> Error {
    let Some(info) = sandbox.info().filter(|_| error.code() == "setup_failed") else { return error };
    error.with_details(serde_json::json!({ "state": info.state.as_str(), "setupError": info.setup_error }))
}
