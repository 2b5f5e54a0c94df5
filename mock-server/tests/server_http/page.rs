//! The page for people: what it shows, what it hides, whom it lets in.

use std::time::Duration;

use reqwest::{Client, Method, StatusCode, header, redirect::Policy};
use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, RunnerKind};
use serde_json::json;
use url::Url;

use crate::{
    http::{Api, guarded, until},
    receiver::Receiver,
};

/// A browser of sorts: keeps the cookie it was given.
struct Visitor {
    http: Client,
    origin: String,
    cookie: String,
}

fn client() -> Client {
    Client::builder().no_proxy().redirect(Policy::none()).build().unwrap()
}

fn origin(server: &MockServer) -> String {
    server.url().strip_suffix("/api/v1").unwrap().to_owned()
}

impl Visitor {
    async fn of(server: &MockServer) -> Self {
        let http = client();
        let entered = http.get(server.page_url()).send().await.unwrap();
        assert_eq!(entered.status(), StatusCode::SEE_OTHER);
        assert_eq!(entered.headers()[header::LOCATION], "/");
        let set = entered.headers()[header::SET_COOKIE].to_str().unwrap();
        assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{set}");
        let cookie = set.split(';').next().unwrap().to_owned();
        Self { http, origin: origin(server), cookie }
    }

    async fn get(&self, address: &str) -> (StatusCode, String) {
        guarded(async {
            let request =
                self.http.get(format!("{}{address}", self.origin)).header(header::COOKIE, &self.cookie);
            let answer = request.send().await.unwrap();
            (answer.status(), answer.text().await.unwrap())
        })
        .await
    }

    async fn sees(&self, address: &str) -> String {
        let (status, page) = self.get(address).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        page
    }
}

fn token(server: &MockServer) -> String {
    let url = Url::parse(&server.page_url()).unwrap();
    url.query_pairs().find(|(name, _)| name == "token").unwrap().1.into_owned()
}

async fn rename(api: &Api, id: &str, name: &str) {
    api.call("PATCH", &format!("/sandboxes/{id}"), json!({"name": name}))
        .await
        .succeeds(200, "sandbox.updated");
}

#[tokio::test]
async fn it_shows_a_sandbox_with_all_that_belongs_to_it() {
    let receiver = Receiver::start().await;
    let server = MockServer::builder().allow_loopback_targets().start().unwrap();
    let (api, visitor) = (Api::of(&server), Visitor::of(&server).await);
    assert!(visitor.sees("/").await.contains("There is no sandbox yet"));

    let hook = json!({"url": receiver.url("/in?token=t0p"), "name": "hook", "events": ["sandbox.ready"]});
    let made = api.post("/webhooks", hook).await;
    assert!(made.status < 300, "{}", made.body);
    let id = api.sandbox(json!({"ttlSeconds": 3600})).await;
    rename(&api, &id, "demo").await;
    api.exec(&id, "echo out; echo err >&2; echo content > note.txt; mkdir folder").await;
    api.start(&id, "echo begun; sleep 300").await;
    receiver.wait_for(1).await;

    let overview = visitor.sees("/").await;
    for part in ["demo", "ready", "ttl 1 h", "left", &format!("/?sandbox={}", id.replace('_', "%5F"))] {
        assert!(overview.contains(part), "{part} is not in {overview}");
    }
    let address = format!("/?sandbox={id}");
    until(async || visitor.sees(&address).await.contains("\nbegun\n")).await;
    let page = visitor.sees(&address).await;
    for part in
        ["echo begun; sleep 300", "running", "exited 0", "note.txt", "folder/", "sandbox.ready", "hook"]
    {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    until(async || visitor.sees(&address).await.contains(">delivered<")).await;
    assert!(page.contains("/api/v1/sandboxes"), "the last requests");
    assert!(page.contains("No agent has done anything yet"));

    let commands = api.get(&format!("/sandboxes/{id}/command-history")).await.succeeds(200, "command.list");
    let first =
        commands["commands"].as_array().unwrap().last().unwrap()["commandId"].as_str().unwrap().to_owned();
    let page = visitor.sees(&format!("{address}&command={first}&path=note.txt")).await;
    for part in ["\nout\n", "\nerr\n", "\ncontent\n", "File <code>/home/user/note.txt</code>"] {
        assert!(page.contains(part), "{part:?} is not in {page}");
    }
    let page = visitor.sees(&format!("{address}&path=/etc")).await;
    assert!(page.contains("cannot be shown") && !page.contains("passwd"), "{page}");

    let run =
        api.post(&format!("/sandboxes/{id}/prompt"), json!({"prompt": "```sh\necho by-agent\n```"})).await;
    assert!(run.status < 300, "{}", run.body);
    until(async || visitor.sees(&address).await.contains("by-agent")).await;
    until(async || visitor.sees(&address).await.contains(">response<")).await;

    let (status, page) = visitor.get("/?sandbox=bx_nothing").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(page.contains("no such sandbox"));
    assert_eq!(visitor.get("/?account=acc_nothing").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn processes_that_commands_left_running_are_no_commands() {
    let (period, clock) = (Duration::from_millis(30_001), ManualClock::new());
    let server = MockServer::builder().clock(clock.shared()).runner(RunnerKind::Process).start().unwrap();
    let (api, visitor) = (Api::of(&server), Visitor::of(&server).await);
    let id = api.sandbox(json!({"ttlSeconds": null})).await;
    api.exec(&id, "echo is up; sleep 4321 > /dev/null 2>&1 &").await;
    let path = format!("/sandboxes/{id}/command-history?mode=process");
    let left = async || api.get(&path).await.body["commands"].as_array().unwrap().clone();
    // A process is young for a second of real time.
    until(async || {
        clock.wait_for_sleep_of(period).await;
        clock.advance(period);
        !left().await.is_empty()
    })
    .await;
    let address = format!("/?sandbox={id}");
    let page = visitor.sees(&address).await;
    for part in ["<h3>Output of <code>echo is up; ", "\nis up\n", "<code>/home/user</code>"] {
        assert!(page.contains(part), "{part:?} is not in {page}");
    }
    assert!(!page.contains("<code>sleep 4321</code>"), "{page}");
    let left = left().await[0]["commandId"].as_str().unwrap().to_owned();
    let page = visitor.sees(&format!("{address}&command={left}")).await;
    assert!(!page.contains("Output of") && page.contains("<code>echo is up; "), "{page}");
}

#[tokio::test]
async fn hostile_text_stays_text() {
    let server = MockServer::start();
    let (api, visitor) = (Api::of(&server), Visitor::of(&server).await);
    let hostile = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&";
    let id = api.sandbox(json!({})).await;
    rename(&api, &id, hostile).await;
    api.exec(&id, "printf '%s' '<script>alert(2)</script>'; printf '</pre><b>x' >&2; touch '<i>\"name'")
        .await;
    let query =
        reqwest::get(format!("{}/sandboxes?x=<script>alert(3)</script>", server.url())).await.unwrap();
    drop(query);
    let header = api.request("GET", "/account").header("X-Odd", "<script>alert(4)</script>");
    api.send(header).await;
    let address = format!("/?sandbox={id}&path=%3Cscript%3Ealert(5)%3C/script%3E");
    for page in [
        visitor.sees("/").await,
        visitor.sees(&format!("/?sandbox={id}")).await,
        visitor.sees(&address).await,
    ] {
        assert_eq!(page.matches("<script").count(), 1, "{page}");
        assert!(page.contains("<script src=\"/page.js\" defer></script>"));
        for bad in ["<img", "<b>x", "<i>", "onerror=alert(1)>\""] {
            assert!(!page.contains(bad), "{bad} is in {page}");
        }
    }
    let page = visitor.sees(&format!("/?sandbox={id}")).await;
    for part in ["&lt;script&gt;alert(2)&lt;/script&gt;", "&lt;/pre&gt;&lt;b&gt;x", "&lt;i&gt;&quot;name"] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
}

#[tokio::test]
async fn secrets_are_not_shown() {
    let key = "sbx_live_0123456789abcdefpagekey";
    let server = MockServer::builder().api_key(key).allow_loopback_targets().start().unwrap();
    let (api, visitor) = (Api::of(&server), Visitor::of(&server).await);
    let hook = json!({"url": "http://127.0.0.1:9/in?token=hooktoken", "events": ["sandbox.ready"]});
    let secret = api.post("/webhooks", hook).await.body.to_string();
    let secret = &secret[secret.find("whsec_").unwrap()..][..70];
    let id = api.sandbox(json!({"env": {"SANDBOX_SETTING": "sandboxenvvalue"}})).await;
    let body = json!({"command": "true", "env": {"OWN_SETTING": "commandenvvalue"}});
    api.post(&format!("/sandboxes/{id}/commands"), body).await.succeeds(200, "command.finished");
    api.exec(&id, &format!("echo {key} Authorization: Bearer bearervalue; echo MY_TOKEN=assigned > .env"))
        .await;
    // A secret that is cut in two is still hidden.
    let long = format!("printf '%s' '{secret} '; head -c 16340 /dev/zero | tr '\\0' 'x'; printf ' end'");
    api.exec(&id, &long).await;
    let odd = api.request("GET", "/account?access_token=querytoken").header("Cookie", "a=cookievalue");
    api.send(odd.header("X-Api-Key", "headervalue")).await;
    let address = format!("/?sandbox={id}");
    let command = |index: usize| {
        let api = api.clone();
        let id = id.clone();
        async move {
            let list = api.get(&format!("/sandboxes/{id}/command-history")).await.body;
            list["commands"][index]["commandId"].as_str().unwrap().to_owned()
        }
    };
    let older = command(1).await;
    let pages =
        [visitor.sees(&address).await, visitor.sees(&format!("{address}&command={older}&path=.env")).await];
    assert!(pages[1].contains("MY_TOKEN=••••") && pages[1].contains("sbx_live_••••"), "{}", pages[1]);
    assert!(pages[0].contains("access_token=••••") && pages[0].contains("http://127.0.0.1:9/in?••••"));
    let tail = &secret[secret.len() - 20..];
    let own = token(&server);
    for bad in [
        key,
        "pagekey",
        "hooktoken",
        secret,
        tail,
        "sandboxenvvalue",
        "commandenvvalue",
        "bearervalue",
        "assigned",
        "querytoken",
        "cookievalue",
        "headervalue",
        &own,
    ] {
        // The command line itself is the user's own words; what it assigns is hidden there as well.
        assert!(pages.iter().all(|page| !page.contains(bad)), "{bad} is shown");
    }
}

#[tokio::test]
async fn what_the_server_knows_for_a_secret_is_not_shown() {
    let server = MockServer::start();
    let (api, visitor) = (Api::of(&server), Visitor::of(&server).await);
    let secrets = json!({
        "envContents": "PHRASE='correct horse battery'\nMODE=abc",
        "secretFiles": [
            {"path": "token.txt", "contents": "plainvalue"},
            {"path": "folder/netrc", "contents": "login somebody\npin 1234\n"},
        ],
    });
    api.post("/secrets", secrets).await.succeeds(200, "secrets.updated");
    let id = api.sandbox(json!({"env": {"STRIPE": "chargeablevalue"}})).await;
    // Repeated by output, by a command, by an agent, and in files of other names.
    api.exec(&id, "echo mode $MODE, phrase $PHRASE, stripe $STRIPE; cat token.txt folder/netrc >&2").await;
    api.exec(&id, "cp token.txt copy.txt; echo chargeablevalue >> copy.txt; ln -s token.txt link.txt").await;
    api.exec(&id, "printf '%s' \"$PHRASE\"; head -c 16370 /dev/zero | tr '\\0' 'x'; printf ' end'").await;
    let prompt = json!({"prompt": "```sh\necho \"agent $PHRASE\"\n```"});
    assert!(api.post(&format!("/sandboxes/{id}/prompt"), prompt).await.status < 300);
    let address = format!("/?sandbox={id}");
    until(async || visitor.sees(&address).await.contains(">response<")).await;

    let commands = api.get(&format!("/sandboxes/{id}/command-history")).await.succeeds(200, "command.list");
    let mut pages = Vec::new();
    for command in commands["commands"].as_array().unwrap() {
        let command = command["commandId"].as_str().unwrap();
        pages.push(visitor.sees(&format!("{address}&command={command}")).await);
    }
    assert_eq!(pages.len(), 4);
    let oldest = pages.last().unwrap();
    assert!(oldest.contains("\nmode abc, phrase ••••, stripe ••••\n"), "{oldest}");
    assert!(pages[0].contains("\nagent ••••\n"), "{}", pages[0]);
    for path in ["token.txt", "link.txt", "folder/netrc"] {
        pages.push(visitor.sees(&format!("{address}&path={path}")).await);
        assert!(pages.last().unwrap().contains("\n(a secret file)<"), "{path}");
    }
    pages.push(visitor.sees(&format!("{address}&path=copy.txt")).await);
    assert!(pages.last().unwrap().contains("\n••••••••\n"), "{}", pages.last().unwrap());
    // What was written before them says the old ones still.
    for phrase in ["'a new phrase'", "'and the next'"] {
        let secrets = json!({
            "envContents": format!("PHRASE={phrase}"),
            "secretFiles": [{"path": "token.txt", "contents": phrase}],
        });
        api.post("/secrets", secrets).await.succeeds(200, "secrets.updated");
    }
    for command in commands["commands"].as_array().unwrap() {
        let command = command["commandId"].as_str().unwrap();
        pages.push(visitor.sees(&format!("{address}&command={command}&path=copy.txt")).await);
    }
    for bad in ["horse", "battery", "plainvalue", "somebody", "pin 1234", "chargeablevalue"] {
        assert!(pages.iter().all(|page| !page.contains(bad)), "{bad} is shown");
    }
}

#[tokio::test]
async fn only_who_has_the_token_and_comes_by_the_right_name_is_let_in() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).page_host("box.lan").start().unwrap();
    let (visitor, http, origin) = (Visitor::of(&server).await, client(), origin(&server));
    let port = server.address().port();
    let fetch = async |address: &str, cookie: &str, host: Option<&str>| {
        let mut request = http.get(format!("{origin}{address}")).header(header::COOKIE, cookie);
        if let Some(host) = host {
            request = request.header(header::HOST, host);
        }
        let answer = request.send().await.unwrap();
        let policy = answer.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'") && !policy.contains("unsafe"));
        assert_eq!(answer.headers()[header::CACHE_CONTROL], "no-store");
        assert_eq!(answer.headers()["cross-origin-resource-policy"], "same-origin");
        assert!(!answer.headers().contains_key("access-control-allow-origin"));
        answer.status().as_u16()
    };
    assert_eq!(fetch("/", &visitor.cookie, None).await, 200);
    let wrong = format!("sandboxer_token_page_{port}=0123");
    let other_port = visitor.cookie.replace(&port.to_string(), "1");
    for cookie in ["", &wrong, &other_port] {
        assert_eq!(fetch("/", cookie, None).await, 401, "{cookie}");
    }
    for address in ["/?token=", "/?token=abc", &format!("/?access_token={}", server.api_key())] {
        assert_eq!(fetch(address, "", None).await, 401, "{address}");
    }
    let bearer = http.get(format!("{origin}/")).bearer_auth(server.api_key()).send().await.unwrap();
    assert_eq!(bearer.status(), 401);
    let printed = server.page_url();
    let printed = printed.strip_prefix(&origin).unwrap();
    for bad in ["evil.example", &format!("evil.example:{port}"), "127.0.0.1.evil.example", "192.168.0.1"] {
        for address in ["/", printed, "/page.js", "/page.css"] {
            assert_eq!(fetch(address, &visitor.cookie, Some(bad)).await, 421, "{bad}{address}");
        }
    }
    for good in ["localhost", &format!("localhost:{port}"), "[::1]:1", "box.lan:8080"] {
        assert_eq!(fetch("/", &visitor.cookie, Some(good)).await, 200, "{good}");
    }
    // The cookie opens nothing but the page.
    let api = http.get(format!("{}/sandboxes", server.url())).header(header::COOKIE, &visitor.cookie);
    assert_eq!(api.send().await.unwrap().status(), 401);
    let onward = http.get(format!("{origin}{printed}&sandbox=bx_1%0d%0aX:y")).send().await.unwrap();
    assert_eq!(onward.headers()[header::LOCATION], "/?sandbox=bx%5F1%0D%0AX%3Ay");
}

#[tokio::test]
async fn a_hosted_program_is_not_shown_the_cookie() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().unwrap();
    let visitor = Visitor::of(&server).await;
    // The doors of hosted ports take away every cookie whose name begins like this.
    assert!(visitor.cookie.starts_with("sandboxer_token_"), "{}", visitor.cookie);
}

#[tokio::test]
async fn it_is_only_looked_at_and_leaves_no_trace() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().unwrap();
    let visitor = Visitor::of(&server).await;
    let send = async |method: Method, address: &str| {
        let url = format!("{}{address}", visitor.origin);
        visitor.http.request(method, url).header(header::COOKIE, &visitor.cookie).send().await.unwrap()
    };
    let head = send(Method::HEAD, "/").await;
    assert_eq!(head.status(), 200);
    assert_eq!(head.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
    assert_eq!(head.bytes().await.unwrap().len(), 0);
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS] {
        let refused = send(method.clone(), "/").await;
        assert_eq!(refused.status(), 405, "{method}");
        assert_eq!(refused.headers()[header::ALLOW], "GET, HEAD");
    }
    for (address, kind) in
        [("/page.css", "text/css; charset=utf-8"), ("/page.js", "text/javascript; charset=utf-8")]
    {
        let part = send(Method::GET, address).await;
        assert_eq!(part.headers()[header::CONTENT_TYPE], kind);
        assert_eq!(part.headers()["x-content-type-options"], "nosniff");
        let text = part.text().await.unwrap();
        assert!(!text.contains("http:") && !text.contains("https:"), "no other host is asked");
    }
    assert!(server.requests().is_empty());
    // What is no part of the page is answered as ever.
    let other = send(Method::GET, "/other").await;
    assert_eq!(other.status(), 404);
    assert_eq!(other.headers()[header::CONTENT_TYPE], "application/json");
}

#[tokio::test]
async fn its_size_has_a_bound() {
    let server = MockServer::start();
    let (api, visitor) = (Api::of(&server), Visitor::of(&server).await);
    for number in 0..105 {
        let made = api.post("/sandboxes", json!({})).await.succeeds(202, "sandbox.created");
        rename(&api, made["sandbox"]["id"].as_str().unwrap(), &format!("box-{number:03}")).await;
    }
    let page = visitor.sees("/").await;
    let shown = page.matches("class=\"name\"").count();
    assert_eq!(shown, 100);
    assert!(page.contains("The newest 100 are shown"));
    let newest = page.find("box-104").unwrap();
    assert!(newest < page.find("box-103").unwrap() && !page.contains("box-004"), "newest first");
    assert_eq!(page.matches("<details>").count(), 100, "of the requests, too");

    let id = api.sandbox(json!({})).await;
    api.exec(&id, "head -c 3000000 /dev/zero | tr '\\0' 'y' | fold; echo last line").await;
    api.exec(&id, "mkdir many; cd many; seq 1 300 | xargs touch; head -c 3000000 /dev/zero > ../big").await;
    let commands = api.get(&format!("/sandboxes/{id}/command-history")).await.succeeds(200, "command.list");
    let first = commands["commands"][1]["commandId"].as_str().unwrap();
    let page = visitor.sees(&format!("/?sandbox={id}&command={first}&path=many")).await;
    assert!(page.contains("last line") && page.contains("The last part"));
    assert!(page.contains("There are more."));
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    let page = visitor.sees(&format!("/?sandbox={id}&path=big")).await;
    assert!(page.contains("The first part") && page.contains("(not text)"));
}
