//! Addresses for files of any size, which the other dialect asks for: what goes in and out there, and who is let in.

use std::time::Duration;

use reqwest::{Response, StatusCode, header};
use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, Scenario};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::{self, Sender},
    task::JoinHandle,
};

use crate::http::{Answer, Api, guarded, until};

type Piece = Result<Vec<u8>, std::io::Error>;

struct Files {
    server: MockServer,
    api: Api,
    id: String,
    /// It knows no key.
    http: reqwest::Client,
}

impl Files {
    async fn of(server: MockServer) -> Self {
        let api = Api::of(&server);
        let id = api.sandbox(json!({})).await;
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { server, api, id, http }
    }

    async fn tell(&self, what: &str) -> Answer {
        self.api.post(&format!("/sandboxes/{}/{what}", self.id), json!({})).await
    }

    /// An upload that goes on until its sender is dropped; three mebibytes of it have been taken.
    async fn begin_put(&self, url: &str) -> (Sender<Piece>, JoinHandle<reqwest::Result<Response>>) {
        let (sender, pieces) = mpsc::channel(1);
        let pieces =
            futures_util::stream::unfold(pieces, async |mut pieces| Some((pieces.recv().await?, pieces)));
        let body = reqwest::Body::wrap_stream(Box::pin(pieces));
        let putting = tokio::spawn(self.http.put(url).body(body).send());
        for _ in 0..3 {
            guarded(sender.send(Ok(vec![b'n'; 1 << 20]))).await.unwrap();
        }
        (sender, putting)
    }

    async fn ask(&self, way: &str, body: Value) -> Value {
        let answer = self.api.post(&format!("/sandboxes/{}/files/{way}-url", self.id), body).await;
        answer.succeeds(200, &format!("file.{way}_url"))
    }

    async fn url(&self, way: &str, path: &str) -> String {
        self.ask(way, json!({"path": path})).await["url"].as_str().unwrap().to_owned()
    }

    async fn put(&self, url: &str, body: impl Into<reqwest::Body>) -> Response {
        guarded(self.http.put(url).body(body).send()).await.unwrap()
    }

    async fn get(&self, url: &str) -> Response {
        guarded(self.http.get(url).send()).await.unwrap()
    }

    async fn shell(&self, lines: &str) -> String {
        self.api.exec(&self.id, lines).await["stdout"].as_str().unwrap().to_owned()
    }
}

async fn code(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let body: Value = guarded(response.json()).await.unwrap();
    (status, body["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn what_is_put_to_an_address_comes_out_of_another() {
    let files = Files::of(MockServer::start()).await;
    let name = "deep/er/it's a ü%20#?.bin";
    let up = files.ask("upload", json!({"path": name})).await;
    assert_eq!((&up["method"], &up["path"]), (&json!("PUT"), &json!(format!("/home/user/{name}"))));
    let content: Vec<u8> = (0..6 << 20).map(|at: u32| (at % 251) as u8).collect();
    let put = files.put(up["url"].as_str().unwrap(), content.clone()).await;
    assert_eq!(put.status(), StatusCode::OK);
    let told: Value = guarded(put.json()).await.unwrap();
    assert_eq!((&told["type"], &told["size"]), (&json!("file.uploaded"), &json!(6 << 20)));
    assert_eq!(files.shell("stat -c '%s %a' deep/er/*").await, "6291456 644\n");

    let down = files.ask("download", json!({"path": name, "ttlSeconds": 1})).await;
    assert_eq!(down["method"], "GET");
    let got = files.get(down["url"].as_str().unwrap()).await;
    assert_eq!(got.headers()[header::CONTENT_TYPE], "application/octet-stream");
    assert_eq!(got.headers()[header::CONTENT_LENGTH], "6291456");
    assert!(guarded(got.bytes()).await.unwrap() == content);

    // Nothing at all is a file, too.
    let url = files.url("upload", "/tmp/nothing").await;
    assert_eq!(files.put(&url, "").await.status(), StatusCode::OK);
    let url = files.url("download", "/tmp/nothing").await;
    assert_eq!(guarded(files.get(&url).await.bytes()).await.unwrap(), "");
    assert!(files.server.requests().iter().all(|request| !format!("{request:?}").contains("signature=")
        || format!("{request:?}").contains("signature=[redacted]")));
}

#[tokio::test]
async fn a_replaced_file_keeps_its_permissions_and_is_seen_whole_or_not() {
    let files = Files::of(MockServer::start()).await;
    files.shell("printf old > run && chmod 750 run && ln -s run link").await;
    let url = files.url("upload", "link").await;
    let (sender, putting) = files.begin_put(&url).await;
    assert_eq!(files.shell("cat run; ls -A").await, "oldlink\nrun\n");
    drop(sender);
    assert_eq!(guarded(putting).await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!(files.shell("wc -c < run; stat -c %a run; readlink link").await, "3145728\n750\nrun\n");
}

#[tokio::test]
async fn an_upload_that_breaks_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = MockServer::builder().data_dir(folder.path()).start().unwrap();
    let files = Files::of(server).await;
    files.shell("printf old > kept").await;
    for name in ["kept", "new/er"] {
        let url = files.url("upload", name).await;
        let pieces = [Ok(vec![b'x'; 3 << 20]), Err(std::io::Error::other("worn out"))];
        let body = reqwest::Body::wrap_stream(futures_util::stream::iter(pieces));
        assert!(guarded(files.http.put(&url).body(body).send()).await.is_err());
    }
    // Less than was announced.
    let url = files.url("upload", "kept").await;
    let parsed: url::Url = url.parse().unwrap();
    let target = format!("{}?{}", parsed.path(), parsed.query().unwrap());
    let address = files.server.address();
    let mut stream = guarded(tokio::net::TcpStream::connect(address)).await.unwrap();
    let head = format!("PUT {target} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 100\r\n\r\nonly this");
    guarded(tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes())).await.unwrap();
    drop(stream);
    let scratch = folder.path().join("scratch");
    let is_empty = || {
        std::fs::read_dir(&scratch)
            .unwrap()
            .all(|entry| !entry.unwrap().file_name().to_string_lossy().starts_with("upload-"))
    };
    until(async || is_empty()).await;
    assert_eq!(files.shell("cat kept; ls -A").await, "oldkept\n");
}

#[tokio::test]
async fn an_address_is_good_for_its_file_its_method_and_its_time() {
    let clock = ManualClock::new();
    let files = Files::of(MockServer::builder().clock(clock.shared()).start().unwrap()).await;
    let other = files.api.sandbox(json!({})).await;
    files.shell("printf one > a; printf two > b").await;
    let (up, down) = (files.url("upload", "a").await, files.url("download", "a").await);

    let key = format!("signature={}", down.split("signature=").nth(1).unwrap());
    let without = down.replace(&format!("&{key}"), "");
    let expires = down.split("expires=").nth(1).unwrap().split('&').next().unwrap();
    let later = format!("expires={}", expires.parse::<i64>().unwrap() + 1);
    let longer = down.replace(&format!("expires={expires}"), &later);
    let flipped = if down.ends_with('0') {
        format!("{}1", &down[..down.len() - 1])
    } else {
        format!("{}0", &down[..down.len() - 1])
    };
    for forged in [
        without.as_str(),
        &longer,
        &flipped,
        &down.replace("/a?", "/b?"),
        &down.replace("/a?", "/../../etc/passwd?"),
        &down.replace(&files.id, &other),
        &down.replace("/download/", "/upload/"),
        &up.replace("/upload/", "/download/"),
        &down.replace(&key, "signature=zz"),
        &down.replace(&key, "signature="),
    ] {
        let (status, code) = code(files.get(forged).await).await;
        assert!(
            matches!((status, code.as_str()), (403, "forbidden") | (404, "not_found")),
            "{forged}: {status} {code}"
        );
    }
    assert_eq!(code(files.put(&up.replace("/a?", "/b?"), "x").await).await, (403, "forbidden".to_owned()));
    let wrong = files.put(&down, "x").await;
    assert_eq!(wrong.headers()[header::ALLOW], "GET");
    assert_eq!(code(wrong).await, (405, "method_not_allowed".to_owned()));
    let wrong = files.get(&up).await;
    assert_eq!(wrong.headers()[header::ALLOW], "PUT");
    assert_eq!(code(wrong).await, (405, "method_not_allowed".to_owned()));
    let part = files.http.put(&up).header("content-range", "bytes 0-0/2").body("x").send();
    assert_eq!(code(guarded(part).await.unwrap()).await, (400, "invalid_request".to_owned()));
    assert_eq!(files.shell("cat a b").await, "onetwo");

    clock.advance(Duration::from_secs(899));
    assert_eq!(files.get(&down).await.text().await.unwrap(), "one");
    clock.advance(Duration::from_secs(1));
    assert_eq!(code(files.get(&down).await).await, (403, "forbidden".to_owned()));
    assert_eq!(code(files.put(&up, vec![b'x'; 2 << 20]).await).await, (403, "forbidden".to_owned()));
    assert_eq!(files.shell("cat a").await, "one");
    let path = format!("/sandboxes/{}/files/download-url", files.id);
    for bad in [0, 3601, -1] {
        let wrong = files.api.post(&path, json!({"path": "a", "ttlSeconds": bad})).await;
        wrong.fails(400, "invalid_request");
    }
}

#[tokio::test]
async fn an_address_leads_where_it_led_when_it_was_made() {
    let files = Files::of(MockServer::start()).await;
    files
        .shell("mkdir real && printf in > real/f && ln -s real dir && ln -s /etc out && printf x > plain")
        .await;
    let down = files.ask("download", json!({"path": "dir/f"})).await;
    assert_eq!(down["path"], "/home/user/real/f");
    let (down, up) = (down["url"].as_str().unwrap().to_owned(), files.url("upload", "dir/g").await);
    let missing = files.ask("upload", json!({"path": "dir/no/../er/h"})).await;
    assert_eq!(missing["path"], "/home/user/real/er/h");
    // What was a folder is a link to somewhere else by now.
    files.shell("mv real moved && ln -s /etc real").await;
    for (url, method) in [(&down, "GET"), (&up, "PUT")] {
        let request = files.http.request(method.parse().unwrap(), url.as_str()).body("x");
        let refused = code(guarded(request.send()).await.unwrap()).await;
        assert_eq!(refused, (400, "invalid_path".to_owned()), "{method}");
    }
    files.shell("rm real && mkdir real").await;
    assert_eq!(code(files.get(&down).await).await, (404, "path_not_found".to_owned()));
    files.shell("mkdir real/g").await;
    assert_eq!(code(files.put(&up, "x").await).await, (400, "invalid_path".to_owned()));
    files.shell("rmdir real/g && ln -s /tmp/else real/g").await;
    assert_eq!(code(files.put(&up, "x").await).await, (400, "invalid_path".to_owned()));
    files.shell("rm real/g").await;
    assert_eq!(files.put(&up, "x").await.status(), StatusCode::OK);
    assert_eq!(files.shell("cat real/g").await, "x");

    for (way, path, status, code) in [
        ("upload", "/etc/x", 400, "invalid_path"),
        ("upload", "out/x", 400, "invalid_path"),
        ("upload", "../x", 400, "invalid_path"),
        ("upload", "real", 400, "invalid_path"),
        ("upload", "new/", 400, "invalid_path"),
        ("upload", "plain/x", 400, "invalid_path"),
        ("upload", "", 400, "invalid_path"),
        ("download", "real", 400, "invalid_path"),
        ("download", "out/passwd", 400, "invalid_path"),
        ("download", "none", 404, "path_not_found"),
        ("download", "/tmp/else", 404, "path_not_found"),
        ("download", "no/ne", 404, "path_not_found"),
    ] {
        let asked = format!("/sandboxes/{}/files/{way}-url", files.id);
        files.api.post(&asked, json!({"path": path})).await.fails(status, code);
    }
}

#[tokio::test]
async fn parts_of_a_download_can_be_asked_for() {
    let files = Files::of(MockServer::start()).await;
    files.shell("printf 0123456789 > digits && touch -d 2024-01-01 digits").await;
    let url = files.url("download", "digits").await;
    // A file that was changed this very moment has no tag that proves anything.
    let tag = guarded(async {
        loop {
            let tag = files.get(&url).await.headers()[header::ETAG].to_str().unwrap().to_owned();
            if !tag.starts_with("W/") {
                return tag;
            }
        }
    })
    .await;
    let part = async |range: &str, held: Option<&str>| {
        let mut request = files.http.get(&url).header(header::RANGE, range);
        if let Some(held) = held {
            request = request.header(header::IF_RANGE, held);
        }
        let answer = guarded(request.send()).await.unwrap();
        let about =
            answer.headers().get(header::CONTENT_RANGE).map(|range| range.to_str().unwrap().to_owned());
        (answer.status().as_u16(), about.unwrap_or_default(), guarded(answer.text()).await.unwrap())
    };
    assert_eq!(part("bytes=2-4", None).await, (206, "bytes 2-4/10".into(), "234".into()));
    assert_eq!(part("bytes=7-", Some(&tag)).await, (206, "bytes 7-9/10".into(), "789".into()));
    assert_eq!(part("bytes=7-", Some("\"other\"")).await, (200, String::new(), "0123456789".into()));
    assert_eq!(part("bytes=5-2", None).await, (200, String::new(), "0123456789".into()));
    assert_eq!(part("bytes=0-99999999999999999999", None).await.0, 206);
    let (status, about, _) = part("bytes=10-", None).await;
    assert_eq!((status, about.as_str()), (416, "bytes */10"));
    files.shell("printf 9876543210 > digits").await;
    assert_eq!(part("bytes=7-", Some(&tag)).await, (200, String::new(), "9876543210".into()));
}

#[tokio::test]
async fn an_address_leads_to_a_machine_that_answers() {
    let files = Files::of(MockServer::start()).await;
    files.shell("printf x > f").await;
    let (up, down) = (files.url("upload", "g").await, files.url("download", "f").await);
    let set = |scenario, on| files.server.world().set_scenario_for(&files.id, scenario, on).unwrap();
    let failed = || (502, "sandbox_direct_failed".to_owned());
    for scenario in [Scenario::Unreachable, Scenario::Restoring] {
        set(scenario, true);
        assert_eq!(code(files.get(&down).await).await, failed());
        assert_eq!(code(files.put(&up, "y").await).await, failed());
        set(scenario, false);
    }
    // Also when it stops answering while the file comes.
    let (sender, mut pieces) = tokio::sync::mpsc::channel::<Result<Vec<u8>, std::io::Error>>(1);
    let pieces = futures_util::stream::poll_fn(move |context| pieces.poll_recv(context));
    let putting = tokio::spawn(files.http.put(&up).body(reqwest::Body::wrap_stream(pieces)).send());
    for _ in 0..3 {
        guarded(sender.send(Ok(vec![0; 1 << 20]))).await.unwrap();
    }
    set(Scenario::Unreachable, true);
    drop(sender);
    assert_eq!(code(guarded(putting).await.unwrap().unwrap()).await, failed());
    set(Scenario::Unreachable, false);
    assert_eq!(files.shell("ls -A").await, "f\n");
    assert_eq!(guarded(files.get(&down).await.text()).await.unwrap(), "x");
}

#[tokio::test]
async fn an_upload_ends_with_its_sandbox() {
    let files = Files::of(MockServer::start()).await;
    let down = {
        files.shell("printf x > f").await;
        files.url("download", "f").await
    };
    let url = files.url("upload", "big").await;
    let (sender, putting) = files.begin_put(&url).await;
    files.tell("stop").await.succeeds(202, "sandbox.stopping");
    // It does not wait for an upload that goes on.
    files.api.wait_for(&files.id, "archived").await;
    drop(sender);
    let ended = guarded(putting).await.unwrap();
    assert!(ended.is_err() || ended.unwrap().status() == StatusCode::CONFLICT);
    assert_eq!(code(files.get(&down).await).await, (409, "machine_not_running".to_owned()));
    files.tell("resume").await.succeeds(202, "sandbox.resuming");
    files.api.wait_for(&files.id, "ready").await;
    assert_eq!(files.shell("ls -A").await, "f\n");
    assert_eq!(guarded(files.get(&down).await.text()).await.unwrap(), "x");
    files.api.delete(&files.id).await.succeeds(202, "sandbox.deleting");
    assert_eq!(code(files.get(&down).await).await, (404, "not_found".to_owned()));
    assert_eq!(code(files.put(&url, "x").await).await, (404, "not_found".to_owned()));
}
