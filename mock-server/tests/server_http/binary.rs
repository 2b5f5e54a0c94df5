//! The server as a program.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    net::TcpListener,
    process::{Child, Command, Stdio},
};

use serde_json::json;

use crate::http::{Api, until};

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sandboxer-mock-server"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A server that is killed with the test that started it.
pub(crate) struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl std::ops::Deref for Served {
    type Target = Child;
    fn deref(&self) -> &Child {
        &self.0
    }
}

impl std::ops::DerefMut for Served {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

/// Starts it and reads the one line it prints.
pub(crate) fn start(arguments: &[&str]) -> (Served, String) {
    let mut child = Served(program().args(arguments).spawn().unwrap());
    let mut line = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let url = line
        .trim_end()
        .strip_prefix("listening on ")
        .unwrap_or_else(|| panic!("printed {line:?}"))
        .to_owned();
    assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/api/v1"), "{url}");
    (child, url)
}

pub(crate) fn kill(child: &Child, signal: &str) {
    let status = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Runs it to its end and hands back the status and what it said.
fn refused(arguments: &[&str]) -> String {
    let output = program().args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(output.stdout, b"");
    String::from_utf8(output.stderr).unwrap()
}

fn one_line(text: &str) {
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
}

#[tokio::test]
async fn it_serves_and_leaves_nothing_behind() {
    let temporary = tempfile::tempdir().unwrap();
    let mut command = program();
    command.env("TMPDIR", temporary.path()).args(["--api-key", "k"]);
    let mut child = Served(command.spawn().unwrap());
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let api = Api::with_key(line.trim_end().strip_prefix("listening on ").unwrap(), "k");
    let id = api.sandbox(json!({})).await;
    api.start(&id, "exec sleep 300.125").await;
    assert_eq!(api.exec(&id, "echo hi").await["stdout"], "hi\n");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 1);
    kill(&child, "-TERM");
    let status = tokio::task::spawn_blocking(move || child.wait()).await.unwrap().unwrap();
    assert!(status.success(), "{status}");
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    let page = rest.strip_prefix("page at ").and_then(|rest| rest.strip_suffix('\n'));
    let origin = line.trim_end().strip_prefix("listening on ").unwrap().strip_suffix("/api/v1").unwrap();
    let page = page.and_then(|page| page.strip_prefix(origin)).unwrap_or_else(|| panic!("printed {rest:?}"));
    assert!(page.starts_with("/?token=") && page.len() > 40 && !page.contains('\n'), "{rest}");
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
    until(async || !is_running("300.125")).await;
}

fn is_running(mark: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains("sleep") && line.contains(mark)
    })
}

#[tokio::test]
async fn nothing_isolated_survives_a_killed_server() {
    let mut child = Served(program().args(["--api-key", "k", "--runner", "isolated"]).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let Some(url) = line.trim_end().strip_prefix("listening on ") else {
        // Isolation does not work on this machine, which the server says in its own way.
        let mut said = String::new();
        child.stderr.as_mut().unwrap().read_to_string(&mut said).unwrap();
        one_line(&said);
        assert_eq!(child.wait().unwrap().code(), Some(2), "{said}");
        return;
    };
    let api = Api::with_key(url, "k");
    let id = api.sandbox(json!({})).await;
    api.start(&id, "exec setsid sleep 300.375").await;
    until(async || is_running("300.375")).await;
    child.kill().unwrap();
    child.wait().unwrap();
    until(async || !is_running("300.375")).await;
}

#[tokio::test]
async fn leftovers_of_a_killed_server_are_swept_by_the_next() {
    let temporary = tempfile::tempdir().unwrap();
    let count = || std::fs::read_dir(temporary.path()).unwrap().count();
    let start = || {
        let mut command = program();
        command.env("TMPDIR", temporary.path()).args(["--api-key", "k"]);
        let mut child = Served(command.spawn().unwrap());
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        child
    };
    let mut first = start();
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(count(), 1);
    let mut second = start();
    assert_eq!(count(), 1, "its own folder and no other");
    kill(&second, "-INT");
    assert!(second.wait().unwrap().success());
    assert_eq!(count(), 0);
}

#[test]
fn what_cannot_be_served_is_refused_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let odd = path("odd.toml", "[[accounts]]\nlogin = 'a'\ncolour = 'red'\n");
    let broken = path("broken.json", "{");
    let data = folder.path().join("data").to_str().unwrap().to_owned();
    let cases: [(&[&str], &str); 8] = [
        (&[], "--api-key"),
        (&["--api-key", "k", "--listen", &address], &address),
        (&["--api-key", "k", "--listen", "0.0.0.0:0"], "--allow-remote"),
        (&["--world", "/nowhere.toml"], "/nowhere.toml"),
        (&["--world", &odd], "colour"),
        (&["--world", &broken], "broken.json"),
        (&["--api-key", "k", "--data-dir", "/proc/nowhere"], "/proc/nowhere"),
        (&["--api-key", "k", "--data-dir", &data, "--listen", &address], &address),
    ];
    for (arguments, part) in cases {
        let said = refused(arguments);
        one_line(&said);
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    for flag in ["--runner", "--network", "--listen"] {
        let said = refused(&["--api-key", "k", flag, "odd"]);
        assert!(said.contains(flag), "{said}");
    }
}

#[test]
fn a_data_folder_is_served_once_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let arguments = ["--api-key", "k", "--data-dir", data, "--runner", "scripted"];
    let (mut child, _) = start(&arguments);
    let said = refused(&arguments);
    one_line(&said);
    assert!(said.contains("in use"), "{said}");
    kill(&child, "-TERM");
    assert!(child.wait().unwrap().success());
    let (mut child, _) = start(&arguments);
    kill(&child, "-TERM");
    child.wait().unwrap();
    assert!(folder.path().join("state.redb").exists());
}
