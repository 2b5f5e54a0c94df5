//! A server that answers from memory, so that what is measured is the client.

use std::{io, thread};

use sandboxer::AsyncSandboxer;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

/// How many sandboxes the list holds.
pub(crate) const SANDBOXES: usize = 1000;
/// Bytes of output in a frame of a stream.
const FRAME: usize = 8 << 10;
/// How much is written to the socket at once.
const BATCH: usize = 128 << 10;

/// A server on a thread of its own; it ends when this is dropped.
pub(crate) struct Canned {
    url: String,
    _stop: oneshot::Sender<()>,
}

impl Canned {
    pub(crate) fn start() -> Self {
        Self::streaming(0)
    }

    /// The streams of a command bring `bytes` of output.
    pub(crate) fn streaming(bytes: u64) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        listener.set_nonblocking(true).expect("a socket for async use");
        let (stop, stopped) = oneshot::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listener = TcpListener::from_std(listener).expect("a listener");
                tokio::select! {
                    () = accept(&listener, bytes) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { url, _stop: stop }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    pub(crate) fn client(&self) -> AsyncSandboxer {
        let builder = AsyncSandboxer::builder().ignore_env().no_proxy();
        builder.base_url(self.url()).api_key("key").build().expect("a client")
    }
}

async fn accept(listener: &TcpListener, bytes: u64) {
    while let Ok((socket, _)) = listener.accept().await {
        tokio::spawn(async move {
            // A client that goes away is no matter here.
            let _ = serve(socket, bytes).await;
        });
    }
}

async fn serve(socket: TcpStream, bytes: u64) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut socket = BufReader::new(socket);
    let (one, all) = (answer(&one()), answer(&list()));
    loop {
        let (mut first, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if socket.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            if line == "\r\n" {
                break;
            }
            if first.is_empty() {
                first = line;
            }
        }
        tokio::io::copy(&mut (&mut socket).take(length), &mut tokio::io::sink()).await?;
        let path = first.split(' ').nth(1).unwrap_or_default();
        let socket = socket.get_mut();
        match path {
            _ if first.starts_with("POST") => stream(socket, bytes, false).await?,
            path if path.ends_with("/stream") || path.contains("/stream?") => {
                stream(socket, bytes, true).await?;
            }
            path if path.starts_with("/sandboxes/") => socket.write_all(&one).await?,
            _ => socket.write_all(&all).await?,
        }
    }
}

/// The frames of a command in the foreground, or of an attach.
async fn stream(socket: &mut TcpStream, bytes: u64, attach: bool) -> io::Result<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n";
    socket.write_all(head.as_bytes()).await?;
    let data = Value::from(text(FRAME)).to_string();
    let (first, last) = if attach {
        let first = json!({"type": "attached", "processId": 7, "stdoutOffset": 0, "stderrOffset": 0});
        (first, json!({"type": "exit", "exitCode": 0, "stdoutOffset": bytes, "stderrOffset": 0}))
    } else {
        let first = json!({"type": "started", "commandId": "cmd_1"});
        (first, json!({"type": "exit", "exitCode": 0, "success": true, "timedOut": false}))
    };
    let mut batch = Vec::with_capacity(BATCH + 2 * FRAME);
    chunk(&mut batch, &first.to_string());
    let mut sent = 0;
    while sent < bytes {
        sent += FRAME as u64;
        let offset = if attach { format!(",\"nextOffset\":{sent}") } else { String::new() };
        chunk(&mut batch, &format!("{{\"type\":\"stdout\",\"data\":{data}{offset}}}"));
        if batch.len() >= BATCH {
            socket.write_all(&batch).await?;
            batch.clear();
        }
    }
    chunk(&mut batch, &last.to_string());
    batch.extend_from_slice(b"0\r\n\r\n");
    socket.write_all(&batch).await
}

fn chunk(out: &mut Vec<u8>, frame: &str) {
    out.extend_from_slice(format!("{:x}\r\n", frame.len() + 1).as_bytes());
    out.extend_from_slice(frame.as_bytes());
    out.extend_from_slice(b"\n\r\n");
}

/// Plain text in lines of 80 bytes, the last of which may be cut.
pub(crate) fn text(length: usize) -> String {
    let line = format!("{}\n", "plain text of a line that a program prints ".repeat(2).split_at(79).0);
    let mut text = line.repeat(length / line.len() + 1);
    text.truncate(length);
    text
}

fn answer(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn one() -> Vec<u8> {
    json!({"ok": true, "type": "sandbox.info", "sandbox": sandbox(1)}).to_string().into_bytes()
}

/// The list's body.
pub(crate) fn list() -> Vec<u8> {
    let sandboxes: Vec<Value> = (0..SANDBOXES).map(sandbox).collect();
    let page = json!({"nextCursor": null, "hasMore": false, "limit": SANDBOXES});
    json!({"ok": true, "type": "sandbox.list", "sandboxes": sandboxes, "pageInfo": page})
        .to_string()
        .into_bytes()
}

fn sandbox(number: usize) -> Value {
    json!({
        "id": format!("bx_{number}"), "name": format!("sandbox {number}"), "state": "ready", "error": null,
        "health": "ok", "healthReason": null, "degradedSince": null, "hydrated": true, "hydratedAt": null,
        "type": "small", "vcpu": 2, "memoryGB": 4, "billingMultiplier": 1.0, "machineProvider": "baremetal",
        "url": null, "ip": "192.0.2.1", "sshEndpoint": null, "createdAt": "2026-01-01T00:00:00.000Z",
        "updatedAt": "2026-01-01T00:00:00.000Z", "archiveAfter": "2026-01-01T01:00:00.000Z",
        "desktopAvailable": false, "desktopUrl": null, "snapshots": true, "monitoring": true,
        "snapshotAvailable": false, "snapshotCompletedAt": null, "snapshotVerifiedAt": null,
        "team": {"id": "team_1", "name": "A team"}, "createdBy": "someone", "createdById": "user_1",
        "access": "owner", "holdsCreatorLogins": false, "wipePendingUntilRestart": false, "subdomain": null,
        "lastSnapshotAttemptAt": null, "lastSnapshotStatus": null, "setupStatus": null, "setupError": null,
        "environment": null, "environmentVersion": null, "stop": null,
    })
}
