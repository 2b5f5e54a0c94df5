//! A turn, as the agent that answers it sees it.

use std::{fmt, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{AgentError, Attachment, Citation, desk::Running};
use crate::{
    handlers::commands,
    world::commands::{OUTPUT_LIMIT, Status, Stream},
};

/// What a command that an agent ran came to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// Its exit code; `None` if it did not exit by itself.
    pub exit_code: Option<i32>,
    /// What it wrote to its standard output, up to 8 MiB; bytes that are no UTF-8 are replaced.
    pub stdout: String,
    /// What it wrote to its standard error, alike.
    pub stderr: String,
}

impl ToolOutput {
    /// Whether it exited with 0.
    pub fn is_success(&self) -> bool {
        self.exit_code == Some(0)
    }
}

/// A prompt that an agent is to answer: what was asked, and the hands to do it with.
///
/// The turn ends when the agent's future does; it is dropped when the turn is interrupted. What is said is told at once,
/// as a response that grows until a tool is used or the turn ends.
pub struct Turn {
    running: Arc<Running>,
    input: String,
    data: Value,
    is_continuation: bool,
    pass: CancellationToken,
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").field("prompt_id", &self.prompt_id()).finish_non_exhaustive()
    }
}

impl Turn {
    pub(super) fn new(
        running: Arc<Running>,
        input: String,
        data: Value,
        is_continuation: bool,
        pass: CancellationToken,
    ) -> Self {
        Self { running, input, data, is_continuation, pass }
    }

    /// What is asked: the text of the prompt, or of the message that the agent goes on with.
    pub fn prompt(&self) -> &str {
        &self.input
    }

    /// Whether it goes on with a steering message: one that it was interrupted for, or that nobody had taken when it came
    /// to its end.
    pub fn is_continuation(&self) -> bool {
        self.is_continuation
    }

    /// The id of the prompt, or of the steering message that is a turn of its own.
    pub fn prompt_id(&self) -> &str {
        &self.running.prompt.id
    }

    /// The sandbox.
    pub fn sandbox_id(&self) -> &str {
        &self.running.prompt.sandbox
    }

    /// The conversation.
    pub fn conversation_id(&self) -> &str {
        &self.running.prompt.conversation
    }

    /// The agent that was asked for, such as `claude-code`.
    pub fn provider(&self) -> &str {
        &self.running.prompt.provider
    }

    /// The model that was asked for; `None` for the agent's own choice.
    pub fn model(&self) -> Option<&str> {
        self.running.prompt.model.as_deref()
    }

    /// How hard it is to think; `None` for the agent's own choice.
    pub fn reasoning_effort(&self) -> Option<&str> {
        self.running.prompt.effort.as_deref()
    }

    /// The files that came with the prompt.
    pub fn attachments(&self) -> Vec<Attachment> {
        let all = self.data["attachments"].as_array();
        let read = |it: &Value| Attachment {
            filename: text(it, "filename"),
            mime_type: text(it, "mimeType"),
            content: STANDARD.decode(text(it, "base64Data")).unwrap_or_default(),
        };
        all.into_iter().flatten().map(read).collect()
    }

    /// The earlier events that the prompt refers to.
    pub fn citations(&self) -> Vec<Citation> {
        let all = self.data["citations"].as_array();
        let read = |it: &Value| Citation {
            event_id: text(it, "eventId"),
            kind: text(it, "type"),
            author: text(it, "author"),
            text: text(it, "text"),
        };
        all.into_iter().flatten().map(read).collect()
    }

    /// Says something: it is added to the response, of which everybody who follows is told at once. At most 1 MiB goes
    /// into a response; what is said after the turn was interrupted is not heard.
    pub async fn say(&self, text: impl AsRef<str>) {
        self.running.say(text.as_ref());
        tokio::task::yield_now().await;
    }

    /// Completes the response; what is said next is another one.
    pub fn end_response(&self) {
        self.running.end_response();
    }

    /// Runs a shell line in the sandbox, in `/home/user` and without a time limit, and tells of it as the use of a tool.
    /// It is ended with everything it started when the turn is interrupted.
    ///
    /// # Errors
    ///
    /// It could not be started, or the sandbox went away meanwhile. That it failed is no error.
    pub async fn run(&self, command: impl Into<String>) -> Result<ToolOutput, AgentError> {
        let command = command.into();
        let call = self.running.tool_used("bash", &json!({ "command": command }));
        let output = self.run_untold(command).await;
        let (is_error, content) = match &output {
            Ok(output) => (!output.is_success(), shown(output)),
            Err(error) => (true, error.to_string()),
        };
        self.running.tool_answered(&call, is_error, &content);
        output
    }

    async fn run_untold(&self, command: String) -> Result<ToolOutput, AgentError> {
        let (running, pass) = (self.running.clone(), self.pass.clone());
        // On its own, so that nobody who is dropped meanwhile leaves a command behind that nobody knows of.
        let begun = self.running.app.tasks.spawn(async move {
            let job = commands::begin_for_agent(&running.app, &running.prompt.sandbox, command).await?;
            running.add_job(job.clone(), &pass).await;
            Ok::<_, crate::reply::ApiError>(job)
        });
        let job = match begun.await {
            Ok(Ok(job)) => job,
            Ok(Err(error)) => return Err(AgentError(error.message().to_owned())),
            Err(_) => return Err("the command was not started".into()),
        };
        job.ended().await;
        self.running.forget_job(&job);
        let record = job.record();
        if record.status == Status::Lost {
            return Err("the sandbox went away while the command ran".into());
        }
        let text = |stream| String::from_utf8_lossy(&job.output(stream, 0, OUTPUT_LIMIT).1).into_owned();
        Ok(ToolOutput {
            exit_code: record.exit_code,
            stdout: text(Stream::Stdout),
            stderr: text(Stream::Stderr),
        })
    }

    /// Tells of the use of a tool that needed no sandbox: its name, what it was given and what it answered.
    pub async fn tool(&self, name: &str, input: Value, answer: &str, is_error: bool) {
        let call = self.running.tool_used(name, &input);
        self.running.tool_answered(&call, is_error, answer);
        tokio::task::yield_now().await;
    }

    /// Tells of something else, such as `compaction_complete` or `usage_limit`; `data` is an object. Kinds have 1 to 64
    /// letters, digits and underscores; others are not told.
    pub async fn event(&self, kind: &str, data: Value) {
        let is_kind = (1..=64).contains(&kind.len())
            && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_kind && data.is_object() {
            self.running.note_event(kind, &data);
            tokio::task::yield_now().await;
        }
    }

    /// Takes the messages that were sent into the turn and that nobody has taken yet. Those that are still there when the
    /// turn comes to its end are put to the agent as a continuation.
    pub fn take_steers(&self) -> Vec<String> {
        self.running.take_letters().into_iter().map(|letter| letter.message).collect()
    }

    /// Waits for the next message that is sent into the turn, and takes it.
    pub async fn next_steer(&self) -> String {
        loop {
            let arrived = self.running.arrived.notified();
            if let Some(letter) = self.running.take_letter() {
                return letter.message;
            }
            arrived.await;
        }
    }

    /// Waits until the turn is interrupted. An agent that waits for this is given a second to end by itself before it is
    /// dropped; what it says then is not heard.
    pub async fn interrupted(&self) {
        self.running.looks();
        self.running.interrupted().cancelled().await;
    }

    /// Whether the turn was interrupted.
    pub fn is_interrupted(&self) -> bool {
        self.running.looks();
        self.running.interrupted().is_cancelled()
    }
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

/// What a tool is said to have answered.
fn shown(output: &ToolOutput) -> String {
    let mut shown = output.stdout.clone();
    if !output.stderr.is_empty() {
        if !shown.is_empty() && !shown.ends_with('\n') {
            shown.push('\n');
        }
        shown.push_str(&output.stderr);
    }
    if !output.is_success() {
        if !shown.is_empty() && !shown.ends_with('\n') {
            shown.push('\n');
        }
        match output.exit_code {
            Some(code) => shown.push_str(&format!("exit code {code}")),
            None => shown.push_str("ended by a signal"),
        }
    }
    shown
}
