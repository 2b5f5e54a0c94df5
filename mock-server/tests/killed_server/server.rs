//! The server program and calls to it.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use reqwest::Method;
use sandboxer::clock::{Clock as _, SystemClock};
use serde_json::Value;

use crate::GUARD;

pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) api: Api,
}

impl Server {
    pub(crate) fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[])
    }

    pub(crate) fn start_with(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_sandboxer-mock-server"))
            .args(["--api-key", "k", "--runner", "process", "--data-dir"])
            .arg(folder)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line:?}"));
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let api = Api { http, base: url.to_owned(), key: "k".to_owned() };
        Self { child, api }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) http: reqwest::Client,
    pub(crate) base: String,
    pub(crate) key: String,
}

impl Api {
    /// The answer; nothing if the connection broke before all of it was there.
    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Option<(u16, Value)> {
        let mut request =
            self.http.request(method.clone(), format!("{}{path}", self.base)).bearer_auth(&self.key);
        if method == Method::DELETE {
            request = request.header("X-Sandboxer-Confirm-Delete", path.rsplit('/').next().unwrap());
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        let body: Value = response.json().await.ok()?;
        assert!(status < 500, "{method} {path}: {status} {body}");
        Some((status, body))
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.call(Method::GET, path, None).await.unwrap_or_else(|| panic!("no answer to {path}"))
    }

    /// A call that must succeed.
    pub(crate) async fn done(&self, method: Method, path: &str, body: Value) -> Value {
        let (status, body) = self.call(method, path, Some(body)).await.unwrap();
        assert!(status < 300, "{path}: {body}");
        body
    }

    pub(crate) async fn until(&self, path: &str, reached: impl Fn(&Value) -> bool) -> Value {
        let clock = SystemClock::new();
        let asking = async {
            loop {
                let (_, body) = self.get(path).await;
                if reached(&body) {
                    return body;
                }
                clock.sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            body = asking => body,
            () = clock.sleep(GUARD) => panic!("{path} hangs"),
        }
    }
}
