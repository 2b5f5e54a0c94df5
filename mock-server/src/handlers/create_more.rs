//! What a create of the other dialect may ask for besides: a name, several at once, files, ports, members who may use it.

use std::{collections::HashSet, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{Call, files::is_outside, hosting};
use crate::{
    app::App,
    reply::ApiError,
    store::{StoreError, Writer, typed},
    world::{
        given_files::{GivenFile, GivenFiles},
        hosted_ports::{HostedPort, hosted_key},
        sandboxes::Sandbox,
    },
};

/// The most bytes that all files have together.
const MOST_BYTES: usize = 256 << 10;

/// What was asked for.
pub(super) struct More {
    name: Option<String>,
    /// How many sandboxes.
    pub(super) count: usize,
    files: Vec<GivenFile>,
    is_shared: bool,
}

impl More {
    /// Reads a body that has been checked.
    pub(super) fn of(call: &Call, in_organisation: bool) -> Result<Self, ApiError> {
        let refuse = |code, field, why| Err(ApiError::invalid(code, field, why));
        let count = call.body["count"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(1);
        let (is_hasty, ports) = (call.flag("failFast"), list(call, "hostedPorts"));
        if count > 1 && call.text("from").is_none() {
            return refuse("count_requires_from", "count", "of more than 1 needs `from`");
        }
        if count > 1 && is_hasty {
            return refuse("count_with_fail_fast", "count", "of more than 1 does not go with `failFast`");
        }
        if count > 1 && !ports.is_empty() {
            return refuse(
                "count_with_hosted_ports",
                "count",
                "of more than 1 does not go with `hostedPorts`",
            );
        }
        if is_hasty && !ports.is_empty() {
            return refuse("fail_fast_with_hosted_ports", "hostedPorts", "do not go with `failFast`");
        }
        let mut seen = HashSet::new();
        if ports.iter().any(|port| !seen.insert(port["port"].as_u64())) {
            return refuse("invalid_hosted_ports", "hostedPorts", "name a port twice");
        }
        let is_shared = call.text("visibility") == Some("shared");
        if is_shared && !in_organisation {
            return refuse("invalid_access", "visibility", "can be `shared` only where an organisation pays");
        }
        let name = call.text("name").map(str::to_owned);
        Ok(Self { name, count, files: files(list(call, "files"))?, is_shared })
    }

    /// Gives a new sandbox what it is to have.
    pub(super) fn give(&self, sandbox: &mut Sandbox) {
        if let Some(name) = &self.name {
            sandbox.name.clone_from(name);
        }
        sandbox.shared |= self.is_shared;
        if !self.files.is_empty() {
            sandbox.setup_status = Some("pending".into());
        }
    }

    /// Keeps the files until the sandbox is up.
    pub(super) fn keep(&self, tx: &mut dyn Writer, sandbox: &str) -> Result<(), StoreError> {
        match self.files.is_empty() {
            true => Ok(()),
            false => typed::put(tx, &GivenFiles { sandbox: sandbox.to_owned(), files: self.files.clone() }),
        }
    }
}

fn list<'a>(call: &'a Call, name: &str) -> &'a [Value] {
    call.body[name].as_array().map_or(&[], Vec::as_slice)
}

fn files(given: &[Value]) -> Result<Vec<GivenFile>, ApiError> {
    let mut total = 0;
    let mut files = Vec::with_capacity(given.len());
    for (index, file) in given.iter().enumerate() {
        let refuse = |field: &str, why: String| {
            Err(ApiError::invalid("invalid_files", &format!("files[{index}].{field}"), why))
        };
        let (path, content) = (file["path"].as_str().unwrap_or_default(), file["content"].as_str());
        if is_outside(path) || path.ends_with('/') {
            return refuse("path", "must name a file in /home/user or /tmp".into());
        }
        let content = content.unwrap_or_default();
        let content = match file["encoding"].as_str() {
            Some("base64") => match STANDARD.decode(content) {
                Ok(bytes) => bytes,
                Err(_) => return refuse("content", "is not base64".into()),
            },
            _ => content.as_bytes().to_vec(),
        };
        total += content.len();
        if total > MOST_BYTES {
            return refuse("content", format!("makes more than {MOST_BYTES} bytes in all"));
        }
        files.push(GivenFile { path: path.to_owned(), content: STANDARD.encode(content) });
    }
    Ok(files)
}

/// Hosts the ports that a create asks for; what came of each is in its answer. One that could not be hosted does not keep
/// the sandbox from starting.
pub(super) async fn host(app: &Arc<App>, call: &Call, sandbox: &str) {
    for wanted in list(call, "hostedPorts") {
        if let Err(error) = hosting::host_port(app, sandbox, wanted, |_| Ok(())).await {
            tracing::error!(%sandbox, problem = error.message(), "a port could not be hosted");
        }
    }
}

/// What came of the ports, as it is now; nothing where none was asked for.
pub(super) fn hosted(
    tx: &dyn crate::store::Reader,
    call: &Call,
    sandbox: &str,
) -> Result<Option<Value>, ApiError> {
    let mut shown = Vec::new();
    for wanted in list(call, "hostedPorts") {
        let port = wanted["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or_default();
        shown.push(match typed::get::<HostedPort>(tx, &hosted_key(sandbox, port))? {
            Some(hosted) => hosting::view(&hosted),
            None => json!({"port": port, "error": "not_hosted", "message": "the port is not hosted"}),
        });
    }
    Ok((!shown.is_empty()).then(|| shown.into()))
}
