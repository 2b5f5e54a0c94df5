//! A server with a data folder that is killed in the middle of its work, twenty times on the same folder.

mod server;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use reqwest::Method;
use sandboxer::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use server::{Api, Server};

const ROUNDS: usize = 20;
const WRITERS: usize = 4;

/// How many writes a round has at most; the kill comes somewhere before.
const WRITES: usize = 200;

/// No round takes longer unless something hangs.
const GUARD: Duration = Duration::from_secs(120);

/// What somebody was told, or is about to be told, of one thing.
#[derive(Clone, Debug)]
enum Told {
    Sandbox {
        deleted: bool,
        name: String,
        stopped: bool,
    },
    /// A command that ended, with what it wrote.
    Ended {
        sandbox: String,
        output: String,
    },
    /// A command in the background.
    Background {
        sandbox: String,
    },
    File {
        sandbox: String,
        content: String,
    },
    /// A key; the secret works.
    Key {
        secret: String,
    },
    Webhook {
        name: String,
    },
    Environment,
    /// A snapshot with a name, saved or being saved.
    Snapshot,
}

/// What a writer was told. Of the last write, the answer to which was lost, either may be true.
#[derive(Default)]
struct Model {
    told: BTreeMap<String, Told>,
    /// The things that the write without an answer was about.
    in_doubt: Vec<String>,
    /// What never changes and was found once: it is looked for again at the very end.
    found: BTreeSet<String>,
}

struct Writer {
    api: Api,
    number: usize,
    random: u64,
    model: Model,
    sandboxes: Vec<String>,
}

impl Writer {
    fn random(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random % below as u64).unwrap()
    }

    /// One write; false if the server went away.
    async fn write(&mut self, count: usize) -> bool {
        let own = self.sandboxes.clone();
        if own.is_empty() {
            return self.create(count).await;
        }
        let sandbox = own[self.random(own.len())].clone();
        match self.random(23) {
            0..=2 => self.create(count).await,
            3..=6 => self.exec(&sandbox, count).await,
            7 => self.start(&sandbox).await,
            8..=11 => self.file(&sandbox, count).await,
            12 | 13 => self.rename(&sandbox, count).await,
            14 => self.turn(&sandbox, "stop").await,
            15 => self.turn(&sandbox, "resume").await,
            16 => self.delete(&sandbox).await,
            17 | 18 => self.key(count).await,
            19 | 20 => self.environment(count).await,
            21 => self.snapshot(&sandbox, count).await,
            _ => self.webhook(count).await,
        }
    }

    async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: Value,
        about: &[&str],
    ) -> Option<(u16, Value)> {
        let answer = self.api.call(method, path, Some(body)).await;
        if answer.is_none() {
            self.model.in_doubt = about.iter().map(|what| (*what).to_owned()).collect();
        }
        answer
    }

    async fn create(&mut self, count: usize) -> bool {
        let Some((status, body)) = self.send(Method::POST, "/sandboxes", json!({}), &[]).await else {
            return false;
        };
        assert_eq!(status, 202, "{body}");
        let id = body["sandbox"]["id"].as_str().unwrap().to_owned();
        self.model
            .told
            .insert(id.clone(), Told::Sandbox { deleted: false, name: id.clone(), stopped: false });
        self.sandboxes.push(id.clone());
        self.rename(&id, count).await
    }

    async fn exec(&mut self, sandbox: &str, count: usize) -> bool {
        let output = format!("{}-{count}\n", self.number);
        let command = json!({"command": format!("echo {}", output.trim_end())});
        let Some((status, body)) =
            self.send(Method::POST, &format!("/sandboxes/{sandbox}/commands"), command, &[]).await
        else {
            return false;
        };
        if status == 200 {
            assert_eq!(body["stdout"], output);
            let id = body["commandId"].as_str().unwrap().to_owned();
            self.model.told.insert(id, Told::Ended { sandbox: sandbox.to_owned(), output });
        } else {
            assert_eq!(status, 409, "{body}");
        }
        true
    }

    async fn start(&mut self, sandbox: &str) -> bool {
        let command = json!({"command": "exec sleep 100", "detached": true});
        let Some((status, body)) =
            self.send(Method::POST, &format!("/sandboxes/{sandbox}/commands"), command, &[]).await
        else {
            return false;
        };
        if status == 200 {
            let id = body["commandId"].as_str().unwrap().to_owned();
            self.model.told.insert(id, Told::Background { sandbox: sandbox.to_owned() });
        }
        true
    }

    async fn file(&mut self, sandbox: &str, count: usize) -> bool {
        let path = format!("file-{}", count % 3);
        let content = format!("{}-{count}", self.number);
        let what = format!("{sandbox}:{path}");
        let body = json!({"path": path, "content": content});
        let Some((status, _)) =
            self.send(Method::PUT, &format!("/sandboxes/{sandbox}/files"), body, &[&what]).await
        else {
            return false;
        };
        if status == 200 {
            self.model.told.insert(what, Told::File { sandbox: sandbox.to_owned(), content });
        }
        true
    }

    async fn rename(&mut self, sandbox: &str, count: usize) -> bool {
        let to = format!("name-{}-{count}", self.number);
        let path = format!("/sandboxes/{sandbox}");
        let Some((status, body)) = self.send(Method::PATCH, &path, json!({"name": to}), &[sandbox]).await
        else {
            return false;
        };
        assert_eq!(status, 200, "{body}");
        if let Some(Told::Sandbox { name, .. }) = self.model.told.get_mut(sandbox) {
            *name = to;
        }
        true
    }

    async fn turn(&mut self, sandbox: &str, verb: &str) -> bool {
        let path = format!("/sandboxes/{sandbox}/{verb}");
        let Some((status, _)) = self.send(Method::POST, &path, json!({}), &[sandbox]).await else {
            return false;
        };
        if let (202, Some(Told::Sandbox { stopped, .. })) = (status, self.model.told.get_mut(sandbox)) {
            *stopped = verb == "stop";
        }
        true
    }

    async fn delete(&mut self, sandbox: &str) -> bool {
        let path = format!("/sandboxes/{sandbox}");
        let Some((status, body)) = self.send(Method::DELETE, &path, json!({}), &[sandbox]).await else {
            return false;
        };
        assert_eq!(status, 202, "{body}");
        if let Some(Told::Sandbox { deleted, .. }) = self.model.told.get_mut(sandbox) {
            *deleted = true;
        }
        self.sandboxes.retain(|id| id != sandbox);
        true
    }

    async fn key(&mut self, count: usize) -> bool {
        let body = json!({"name": format!("key-{count}"), "preset": "read-only"});
        let Some((status, body)) = self.send(Method::POST, "/api-keys/scoped", body, &[]).await else {
            return false;
        };
        assert_eq!(status, 201, "{body}");
        let secret = body["secret"].as_str().unwrap().to_owned();
        self.model.told.insert(format!("key {secret}"), Told::Key { secret });
        true
    }

    async fn webhook(&mut self, count: usize) -> bool {
        let name = format!("hook-{}-{count}", self.number);
        let url = format!("https://93.184.216.34/{name}");
        let body = json!({"name": name, "url": url, "events": ["sandbox.archived"]});
        let Some((status, body)) = self.send(Method::POST, "/webhooks", body, &[]).await else {
            return false;
        };
        if status == 201 {
            let id = body["webhook"]["id"].as_str().unwrap().to_owned();
            self.model.told.insert(id, Told::Webhook { name });
        } else {
            assert_eq!((status, &body["code"]), (409, &json!("webhook_limit")), "{body}");
        }
        true
    }

    async fn environment(&mut self, count: usize) -> bool {
        let name = format!("env-{}-{count}", self.number);
        let Some((status, body)) = self.send(Method::POST, "/environments", json!({"name": name}), &[]).await
        else {
            return false;
        };
        assert_eq!(status, 200, "{body}");
        self.model.told.insert(name, Told::Environment);
        true
    }

    async fn snapshot(&mut self, sandbox: &str, count: usize) -> bool {
        let name = format!("snap-{}-{count}", self.number);
        let body = json!({"sandboxId": sandbox, "name": name});
        let Some((status, body)) = self.send(Method::POST, "/named-snapshots", body, &[]).await else {
            return false;
        };
        match status {
            202 => drop(self.model.told.insert(name, Told::Snapshot)),
            // The sandbox is on its way somewhere, has nothing to save, or the plan has no room.
            _ => assert_eq!(status, 409, "{body}"),
        }
        true
    }

    /// Everything that was told is there, as it was told.
    async fn verify(&mut self, api: &Api, is_last: bool) {
        let in_doubt = std::mem::take(&mut self.model.in_doubt);
        let told = self.model.told.clone();
        let deleted = |sandbox: &str| matches!(told.get(sandbox), Some(Told::Sandbox { deleted: true, .. }));
        for (what, told) in &told {
            let doubt = in_doubt.contains(what);
            let changes = matches!(told, Told::Sandbox { .. } | Told::File { .. });
            if !changes && !self.model.found.insert(what.clone()) && !is_last {
                continue;
            }
            match told {
                Told::Sandbox { deleted, name, stopped } => {
                    let (status, body) = api.get(&format!("/sandboxes/{what}")).await;
                    if status == 404 {
                        assert!(*deleted || doubt, "{what} is gone");
                        let gone = Told::Sandbox { deleted: true, name: name.clone(), stopped: *stopped };
                        self.model.told.insert(what.clone(), gone);
                        self.sandboxes.retain(|id| id != what);
                        continue;
                    }
                    assert!(!deleted, "{what} is back");
                    let state = body["sandbox"]["state"].as_str().unwrap();
                    let now = body["sandbox"]["name"].as_str().unwrap().to_owned();
                    assert!(doubt || now == *name, "{what}: {now} for {name}");
                    let is_stopped = matches!(state, "archiving" | "archived");
                    assert!(doubt || is_stopped == *stopped, "{what} is {state}");
                    let seen = Told::Sandbox { deleted: false, name: now, stopped: is_stopped };
                    self.model.told.insert(what.clone(), seen);
                }
                Told::Ended { sandbox, output } if !deleted(sandbox) => {
                    let path = format!("/sandboxes/{sandbox}/command-history/{what}");
                    let (status, body) = api.get(&path).await;
                    if status == 404 && in_doubt.contains(sandbox) {
                        continue;
                    }
                    assert_eq!((status, &body["command"]["status"]), (200, &json!("exited")), "{body}");
                    let (_, logs) = api.get(&format!("{path}/logs")).await;
                    assert_eq!((&logs["data"], &logs["done"]), (&json!(output), &json!(true)));
                }
                Told::Background { sandbox } if !deleted(sandbox) => {
                    let path = format!("/sandboxes/{sandbox}/command-history/{what}");
                    let (status, body) = api.get(&path).await;
                    if status == 404 && in_doubt.contains(sandbox) {
                        continue;
                    }
                    assert_eq!((status, &body["command"]["status"]), (200, &json!("lost")), "{body}");
                }
                Told::File { sandbox, content } if !deleted(sandbox) => {
                    let file = what.rsplit(':').next().unwrap();
                    let (status, body) = api.get(&format!("/sandboxes/{sandbox}/files?path={file}")).await;
                    match (status, body["content"].as_str()) {
                        (200, Some(now)) => {
                            assert!(doubt || now == content, "{what}: {body} for {content}");
                            // Whether a write that was not answered came through is known from here on.
                            let seen = Told::File { sandbox: sandbox.clone(), content: now.to_owned() };
                            self.model.told.insert(what.clone(), seen);
                        }
                        // Stopped, or gone with a deletion that was not answered.
                        _ => {
                            assert!(matches!(status, 404 | 409), "{body}");
                            if doubt {
                                self.model.told.remove(what);
                            }
                        }
                    }
                }
                Told::Key { secret } => {
                    let own = Api { key: secret.clone(), ..api.clone() };
                    assert_eq!(own.get("/me").await.0, 200, "a key is gone");
                }
                Told::Webhook { name } => {
                    let (status, body) = api.get(&format!("/webhooks/{what}")).await;
                    assert_eq!((status, &body["webhook"]["name"]), (200, &json!(name)), "{body}");
                }
                Told::Environment => {
                    let (_, body) = api.get("/environments").await;
                    let all = body["environments"].as_array().unwrap();
                    assert!(all.iter().any(|it| it["name"] == what.as_str()), "{what} is gone");
                }
                Told::Snapshot => {
                    let path = format!("/named-snapshots/{what}");
                    let body = api.until(&path, |body| body["snapshot"]["status"] != "saving").await;
                    let status = body["snapshot"]["status"].as_str();
                    assert!(matches!(status, Some("ready" | "failed")), "{body}");
                }
                _ => {}
            }
        }
    }
}

/// Nothing that can be listed is half-written: each of it can be read in full.
async fn read_all(api: &Api) {
    let mut cursor = String::new();
    loop {
        let (status, page) = api.get(&format!("/sandboxes?limit=50{cursor}")).await;
        assert_eq!(status, 200);
        for sandbox in page["sandboxes"].as_array().unwrap() {
            let id = sandbox["id"].as_str().unwrap();
            let (status, body) = api.get(&format!("/sandboxes/{id}")).await;
            assert_eq!(status, 200, "{body}");
            let (status, history) = api.get(&format!("/sandboxes/{id}/command-history?limit=100")).await;
            assert_eq!(status, 200, "{history}");
            for command in history["commands"].as_array().unwrap() {
                assert_ne!(command["status"], "running", "nothing runs after a kill: {command}");
            }
        }
        match page["pageInfo"]["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={}", next.replace('+', "%2B").replace('=', "%3D")),
            None => return,
        }
    }
}

async fn round(folder: &Path, round: usize, mut writers: Vec<Writer>) -> Vec<Writer> {
    let mut server = Server::start(folder);
    for writer in &mut writers {
        writer.verify(&server.api, false).await;
        writer.api = server.api.clone();
    }
    read_all(&server.api).await;
    let issued = Arc::new(AtomicUsize::new(0));
    // Somewhere in the middle, another place each time.
    let until = 20 + (round * 67) % (WRITES - 40);
    let at_work: Vec<_> = writers
        .into_iter()
        .map(|mut writer| {
            let issued = issued.clone();
            tokio::spawn(async move {
                loop {
                    let count = issued.fetch_add(1, Ordering::SeqCst);
                    if count >= WRITES || !writer.write(round * WRITES + count).await {
                        return writer;
                    }
                }
            })
        })
        .collect();
    let clock = SystemClock::new();
    while issued.load(Ordering::SeqCst) < until && !at_work.iter().all(|work| work.is_finished()) {
        clock.sleep(Duration::from_millis(1)).await;
    }
    server.kill();
    let mut writers = Vec::new();
    for work in at_work {
        writers.push(work.await.unwrap());
    }
    writers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_was_acknowledged_outlives_twenty_kills() {
    let folder = tempfile::tempdir().unwrap();
    let api = Server::start(folder.path()).api.clone();
    let mut writers: Vec<Writer> = (0..WRITERS)
        .map(|number| Writer {
            api: api.clone(),
            number,
            random: 0x9e37_79b9_7f4a_7c15 ^ (number as u64 + 1),
            model: Model::default(),
            sandboxes: Vec::new(),
        })
        .collect();
    for number in 0..ROUNDS {
        let work = round(folder.path(), number, writers);
        writers = tokio::select! {
            writers = work => writers,
            () = SystemClock::new().sleep(GUARD) => panic!("round {number} hangs"),
        };
    }
    let server = Server::start(folder.path());
    for writer in &mut writers {
        writer.verify(&server.api, true).await;
    }
    read_all(&server.api).await;
    let told: usize = writers.iter().map(|writer| writer.model.told.len()).sum();
    assert!(told > 300, "only {told} things were acknowledged");
}

#[tokio::test]
async fn what_a_running_command_has_written_outlives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    let api = server.api.clone();
    let created = api.done(Method::POST, "/sandboxes", json!({})).await;
    let sandbox = format!("/sandboxes/{}", created["sandbox"]["id"].as_str().unwrap());
    let command = json!({"command": "seq 1 30000; echo err >&2; exec sleep 100", "detached": true});
    let started = api.done(Method::POST, &format!("{sandbox}/commands"), command).await;
    let process = format!("{sandbox}/commands/{}", started["processId"]);
    let whole: String = (1..=30000).map(|number| format!("{number}\n")).collect();
    api.until(&process, |body| body["stdout"] == whole.as_str() && body["stderr"] == "err\n").await;
    // It is stored within the half second after it was written.
    SystemClock::new().sleep(Duration::from_millis(1500)).await;
    server.kill();

    let server = Server::start(folder.path());
    let command = format!("{sandbox}/command-history/{}", started["commandId"].as_str().unwrap());
    let (_, body) = server.api.get(&command).await;
    assert_eq!(
        (&body["command"]["status"], &body["command"]["stdoutBytes"]),
        (&json!("lost"), &json!(whole.len()))
    );
    let (_, logs) = server.api.get(&format!("{command}/logs")).await;
    assert_eq!((&logs["data"], &logs["done"]), (&json!(whole), &json!(true)));
    let (_, logs) = server.api.get(&format!("{command}/logs?stream=stderr")).await;
    assert_eq!(logs["data"], "err\n");
    let (_, status) = server.api.get(&process).await;
    assert_eq!((&status["status"], &status["stdout"]), (&json!("lost"), &json!(whole)));
}

#[tokio::test]
async fn what_was_under_way_is_taken_up() {
    let (folder, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let world = |name: &str, text: &str| {
        let path = files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let quick = world("quick.toml", "");
    let slow = world(
        "slow.toml",
        "[machines]\nboot_delay_ms = 600000\nstop_delay_ms = 600000\ndelete_delay_ms = 600000\n\
         recover_delay_ms = 600000\n[[scenarios]]\nname = 'unreachable'\nsandbox = 'ill'\n\
         [[scenarios]]\nname = 'broken_disk'\nsandbox = 'broken'\n",
    );
    let server = Server::start_with(folder.path(), &["--world", &quick]);
    let mut up = Vec::new();
    for name in ["stopped", "deleted", "ill", "broken"] {
        let created = server.api.done(Method::POST, "/sandboxes", json!({})).await;
        let path = format!("/sandboxes/{}", created["sandbox"]["id"].as_str().unwrap());
        server.api.done(Method::PATCH, &path, json!({"name": name})).await;
        server.api.until(&path, |body| body["sandbox"]["state"] == "ready").await;
        up.push(path);
    }
    drop(server);

    let mut server = Server::start_with(folder.path(), &["--world", &slow]);
    let api = server.api.clone();
    let created = api.done(Method::POST, "/sandboxes", json!({})).await;
    let created = format!("/sandboxes/{}", created["sandbox"]["id"].as_str().unwrap());
    let stop = api.done(Method::POST, &format!("{}/stop", up[0]), json!({})).await;
    let deletion = api.done(Method::DELETE, &up[1], json!({})).await;
    api.done(Method::POST, &format!("{}/recover", up[2]), json!({})).await;
    api.done(Method::POST, &format!("{}/stop", up[3]), json!({})).await;
    api.until(&up[3], |body| body["sandbox"]["stop"]["status"] == "failing").await;
    assert_eq!(api.get(&created).await.1["sandbox"]["state"], "provisioning");
    server.kill();

    let server = Server::start_with(folder.path(), &["--world", &quick]);
    let api = server.api.clone();
    api.until(&created, |body| body["sandbox"]["state"] == "ready").await;
    let stop = format!("{}/stops/{}", up[0], stop["stop"]["id"].as_str().unwrap());
    api.until(&stop, |body| body["stop"]["status"] == "completed").await;
    assert_eq!(api.get(&up[0]).await.1["sandbox"]["state"], "archived");
    assert_eq!(api.get(&up[1]).await.0, 404);
    let deletion = format!("/deletion-operations/{}", deletion["operation"]["id"].as_str().unwrap());
    api.until(&deletion, |body| body["operation"]["status"] == "completed").await;
    // The disk is well again, and with it the stop.
    api.until(&up[3], |body| body["sandbox"]["state"] == "archived").await;
    // The restart goes on for as long as it was to take.
    assert_eq!(api.get(&up[2]).await.1["sandbox"]["state"], "ready");
}
