//! The two questions a program asks first: what went wrong, and may it have happened all the same.

use std::fmt;

/// What went wrong, for a program to branch on.
///
/// ```
/// use sandboxer::{AsyncSandboxer, ErrorKind};
///
/// let refused = AsyncSandboxer::builder().api_key("key").base_url("ftp://example.com").build().unwrap_err();
/// assert_eq!(refused.kind(), ErrorKind::Config);
/// assert!(refused.to_string().contains("base_url"));
///
/// let unsure = |kind: ErrorKind| matches!(kind, ErrorKind::Connection | ErrorKind::Timeout | ErrorKind::StreamCut);
/// assert!(!unsure(refused.kind()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The client cannot be built from what it was given: no key, a bad base URL, no trusted certificates.
    ///
    /// ```
    /// use sandboxer::{AsyncSandboxer, ErrorKind};
    ///
    /// let error = AsyncSandboxer::builder().ignore_env().build().unwrap_err();
    /// assert_eq!((error.kind(), error.code()), (ErrorKind::Config, "missing_api_key"));
    /// ```
    Config,
    /// An argument was refused before anything was sent; the message names the field and what is allowed.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::{Create, ErrorKind};
    ///
    /// let error = client.create(Create::new().name("")).await.unwrap_err();
    /// assert_eq!((error.kind(), error.attempts()), (ErrorKind::InvalidInput, 0));
    /// assert!(error.message().contains("name"));
    /// # Ok(()) }
    /// ```
    InvalidInput,
    /// The service that was chosen by its [`Dialect`](crate::Dialect) does not have the operation; nothing was sent.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::{AsyncSandboxer, Dialect, ErrorKind};
    ///
    /// let client = AsyncSandboxer::builder().api_key("key").ignore_env().dialect(Dialect::Boat).build()?;
    /// let error = client.api().provider_models().await.unwrap_err();
    /// assert_eq!((error.kind(), error.attempts()), (ErrorKind::Unsupported, 0));
    /// # Ok(()) }
    /// ```
    Unsupported,
    /// 400, or another 4xx without a kind of its own: the service refused the request.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::ErrorKind;
    ///
    /// let error = sandbox.files().read("/etc/passwd").await.unwrap_err();
    /// assert_eq!((error.kind(), error.code()), (ErrorKind::BadRequest, "invalid_path"));
    /// # Ok(()) }
    /// ```
    BadRequest,
    /// 401: the key is missing or unknown to the service.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::{AsyncSandboxer, ErrorKind};
    ///
    /// let url = server.url();
    /// let stranger = AsyncSandboxer::builder().api_key("nobody").base_url(url).no_proxy().build()?;
    /// let error = stranger.api().me().await.unwrap_err();
    /// assert_eq!((error.kind(), error.code()), (ErrorKind::Authentication, "unauthorized"));
    /// # Ok(()) }
    /// ```
    Authentication,
    /// 402: the wallet is empty or blocked.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::{MockServer, Reply};
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let broke = Reply::code(402, "billing_required", "the wallet is empty");
    /// # server.on(sandboxer::Operation::Create).reply(broke.detail("billingUrl", "https://example.com/pay"));
    /// use sandboxer::{Create, ErrorKind};
    ///
    /// let error = client.create(Create::new()).await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::PaymentRequired);
    /// assert_eq!(error.details().unwrap()["billingUrl"], "https://example.com/pay");
    /// # Ok(()) }
    /// ```
    PaymentRequired,
    /// 403: the key or the account may not do this.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::{MockServer, Reply};
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let small = Reply::code(403, "machine_class_plan_required", "the plan has no such machine");
    /// # server.on(sandboxer::Operation::Create).reply(small);
    /// use sandboxer::{Create, ErrorKind};
    ///
    /// let error = client.create(Create::new().kind("xlarge")).await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    /// assert_eq!(error.code(), "machine_class_plan_required");
    /// # Ok(()) }
    /// ```
    PermissionDenied,
    /// 404: there is nothing of that id that this key may see.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::ErrorKind;
    ///
    /// let error = client.get("bx_22222222").await.unwrap_err();
    /// assert_eq!((error.kind(), error.code()), (ErrorKind::NotFound, "not_found"));
    /// # Ok(()) }
    /// ```
    NotFound,
    /// 409: the resource is in a state that cannot take the request.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::{ErrorKind, Resume};
    ///
    /// let error = sandbox.resume(Resume::new()).await.unwrap_err(); // it is up
    /// assert_eq!((error.kind(), error.code()), (ErrorKind::Conflict, "sandbox_not_ready"));
    /// # Ok(()) }
    /// ```
    Conflict,
    /// 429: a rate, a quota or a limit of active sandboxes is used up.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::{MockServer, Reply};
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let quota = Reply::code(429, "rate_limited", "20 starts a day").detail("window", "day");
    /// # server.on(sandboxer::Operation::Create).reply(quota);
    /// use sandboxer::{Create, ErrorKind};
    ///
    /// let error = client.create(Create::new()).await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::RateLimited);
    /// assert_eq!(error.details().unwrap()["window"], "day");
    /// # Ok(()) }
    /// ```
    RateLimited,
    /// 5xx: the service failed.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::{MockServer, Reply};
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # server.on(sandboxer::Operation::Me).reply(Reply::status(503));
    /// use sandboxer::{CallOptions, ErrorKind};
    ///
    /// let once = client.with(CallOptions::new().retries(0));
    /// let error = once.api().me().await.unwrap_err();
    /// assert_eq!((error.kind(), error.status()), (ErrorKind::Server, Some(503)));
    /// assert!(error.is_retryable());
    /// # Ok(()) }
    /// ```
    Server,
    /// An answer that is not what the API promises: a redirect, a body that cannot be read, `ok: false` under a success.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::{MockServer, Reply};
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let page = Reply::body("<html>Log in first</html>", "text/html");
    /// # server.on(sandboxer::Operation::Me).reply(page).always();
    /// use sandboxer::ErrorKind;
    ///
    /// let error = client.api().me().await.unwrap_err();
    /// assert_eq!((error.kind(), error.status()), (ErrorKind::Unexpected, Some(200)));
    /// # Ok(()) }
    /// ```
    Unexpected,
    /// An answer, or one line of a stream, is longer than this client takes.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::ErrorKind;
    ///
    /// sandbox.files().write("big", vec![0; 4096]).await?;
    /// let error = sandbox.files().download("big").await?.collect(1024).await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::TooLarge);
    /// # Ok(()) }
    /// ```
    TooLarge,
    /// No connection, or it broke before the answer was complete.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::{AsyncSandboxer, Delivery, ErrorKind};
    ///
    /// // Nothing listens on port 1.
    /// let client = AsyncSandboxer::builder().api_key("key").base_url("http://127.0.0.1:1").retries(0).build()?;
    /// let error = client.api().me().await.unwrap_err();
    /// assert_eq!((error.kind(), error.delivery()), (ErrorKind::Connection, Delivery::NotSent));
    /// # Ok(()) }
    /// ```
    Connection,
    /// A time limit of this client ran out; the message says which one and how long it was.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::{MockServer, Reply};
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # server.on(sandboxer::Operation::Me).reply(Reply::delay(std::time::Duration::from_secs(600)));
    /// use sandboxer::{CallOptions, Delivery, ErrorKind};
    /// use std::time::Duration;
    ///
    /// let hasty = client.with(CallOptions::new().attempt(Duration::from_millis(50)).retries(0));
    /// let error = hasty.api().me().await.unwrap_err();
    /// assert_eq!((error.kind(), error.delivery()), (ErrorKind::Timeout, Delivery::Unknown));
    /// assert!(error.message().contains("attempt"));
    /// # Ok(()) }
    /// ```
    Timeout,
    /// A stream ended, broke or fell silent before its final frame.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::{MockServer, Reply};
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # server.on(sandboxer::Operation::CommandStream).reply(Reply::ndjson([
    /// #     r#"{"type":"started","commandId":"c1"}"#, r#"{"type":"stdout","data":"one\n"}"#,
    /// # ]));
    /// use sandboxer::ErrorKind;
    ///
    /// let error = sandbox.exec_stream("make").await?.wait().await.unwrap_err();
    /// assert_eq!((error.kind(), error.command_id()), (ErrorKind::StreamCut, Some("c1")));
    /// assert_eq!(error.partial_output().unwrap().stdout_text(), "one\n");
    /// # Ok(()) }
    /// ```
    StreamCut,
    /// The service ended a stream with an error frame.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::{MockServer, Reply};
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// # server.on(sandboxer::Operation::CommandStream).reply(Reply::ndjson([
    /// #     r#"{"type":"started","commandId":"c1"}"#, r#"{"type":"error","message":"the disk is full"}"#,
    /// # ]));
    /// use sandboxer::ErrorKind;
    ///
    /// let error = sandbox.exec_stream("make").await?.wait().await.unwrap_err();
    /// assert_eq!((error.kind(), error.message()), (ErrorKind::StreamFailed, "the disk is full"));
    /// # Ok(()) }
    /// ```
    StreamFailed,
    /// A command ended in another way than exit code 0, and the caller asked for that to be an error
    /// ([`Output::check`](crate::Output::check)); or the run of a prompt failed or was interrupted, and the caller asked for
    /// its final answer ([`AsyncPromptRun::text`](crate::AsyncPromptRun::text)).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::ErrorKind;
    ///
    /// let error = sandbox.exec("echo bad >&2; exit 3").await?.check().unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::CommandFailed);
    /// assert_eq!(error.partial_output().unwrap().stderr_text(), "bad\n");
    /// # Ok(()) }
    /// ```
    CommandFailed,
    /// The sandbox is in a state from which the one waited for cannot be reached.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::ErrorKind;
    ///
    /// sandbox.stop().await?;
    /// let error = sandbox.wait_until_ready().await.unwrap_err();
    /// assert_eq!((error.kind(), error.code()), (ErrorKind::SandboxState, "sandbox_archived"));
    /// assert_eq!(error.details().unwrap()["state"], "archived");
    /// # Ok(()) }
    /// ```
    SandboxState,
    /// What was waited for did not happen within the limit of the wait.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # let sandbox = client.create(sandboxer::Create::new()).await?;
    /// use sandboxer::{ErrorKind, models::SandboxState};
    /// use std::time::Duration;
    ///
    /// let error = sandbox.wait_for_state(&[SandboxState::Archived], Some(Duration::from_millis(50))).await.unwrap_err();
    /// assert_eq!((error.kind(), error.code()), (ErrorKind::WaitTimeout, "wait_timeout"));
    /// # Ok(()) }
    /// ```
    WaitTimeout,
    /// The client was closed.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::ErrorKind;
    ///
    /// client.close().await;
    /// let error = client.get("bx_22222222").await.unwrap_err();
    /// assert_eq!((error.kind(), error.code()), (ErrorKind::Closed, "client_closed"));
    /// # Ok(()) }
    /// ```
    Closed,
}

impl ErrorKind {
    /// The kind an answer with this status is reported as.
    pub(crate) fn of_status(status: u16) -> Self {
        match status {
            401 => Self::Authentication,
            402 => Self::PaymentRequired,
            403 => Self::PermissionDenied,
            404 => Self::NotFound,
            409 => Self::Conflict,
            429 => Self::RateLimited,
            400..=499 => Self::BadRequest,
            500..=599 => Self::Server,
            _ => Self::Unexpected,
        }
    }
}

/// How far a failed call got.
///
/// For a call that was tried more than once this speaks of all its tries: `NotSent` only if none of them reached the
/// service, and `Unknown` if an earlier one may have had an effect, whatever a later one was answered; unless every try
/// was answered and the last one with a 5xx, which leaves the same open itself. A refusal proves that the try it answers did
/// nothing, and not that the one before did nothing; only a success settles that, and then there is no error. For reads, which
/// have no effect, the last answer counts.
///
/// ```
/// use sandboxer::{AsyncSandboxer, Delivery, ErrorKind};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// // Nothing listens on port 1, so nothing can have run.
/// let client = AsyncSandboxer::builder().api_key("key").base_url("http://127.0.0.1:1").retries(0).build().unwrap();
/// let error = client.api().request(http::Method::GET, "/me", Default::default()).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Connection);
/// assert_eq!(error.delivery(), Delivery::NotSent);
/// assert!(error.is_retryable());
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Delivery {
    /// Nothing reached the service: refused before sending, connection refused, name not resolved, TLS or proxy failed,
    /// or the service said that it had not looked at the request.
    ///
    /// ```
    /// use sandboxer::{AsyncSandboxer, Delivery};
    ///
    /// let refused = AsyncSandboxer::builder().ignore_env().build().unwrap_err();
    /// assert_eq!(refused.delivery(), Delivery::NotSent);
    /// ```
    NotSent,
    /// The service answered; what it said is in the error, and a fault of the service (a 5xx) does not prove that nothing
    /// was done.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// use sandboxer::Delivery;
    ///
    /// let error = client.get("bx_22222222").await.unwrap_err();
    /// assert_eq!((error.delivery(), error.status()), (Delivery::Answered, Some(404)));
    /// # Ok(()) }
    /// ```
    Answered,
    /// The request may have reached the service, and its whole answer never came back; or an earlier try met that or a
    /// fault of the service, and status and code are those of a later one that is no such fault itself.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> sandboxer::Result<()> {
    /// # use sandboxer_mock_server::{MockServer, Reply};
    /// # let server = sandboxer_mock_server::MockServer::start(); let client = server.client();
    /// # server.on(sandboxer::Operation::Me).reply(Reply::drop_answer());
    /// use sandboxer::{CallOptions, Delivery};
    ///
    /// let once = client.with(CallOptions::new().retries(0));
    /// let error = once.api().me().await.unwrap_err();
    /// assert_eq!((error.delivery(), error.status()), (Delivery::Unknown, None));
    /// # Ok(()) }
    /// ```
    Unknown,
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotSent => "not sent",
            Self::Answered => "answered",
            Self::Unknown => "unknown",
        })
    }
}
