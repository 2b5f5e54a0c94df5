//! Addresses that lead into sandboxes: who is let in, and that what comes out is what a program inside said.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use reqwest::{StatusCode, redirect};
use sandboxer_mock_server::{MockServer, RunnerKind, Scenario, StartError};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::http::{Api, guarded, until};

/// A little HTTP server: says what it was asked, repeats in capitals what comes after an upgrade, and tells in two pieces.
const PROGRAM: &str = r#"
use strict; use IO::Socket::INET;
$SIG{CHLD} = 'IGNORE';
my $listener = IO::Socket::INET->new(LocalAddr => $ARGV[0], LocalPort => $ARGV[1], Listen => 16, ReuseAddr => 1) or die;
$| = 1; print "up\n";
while (my $client = $listener->accept) {
  next if fork;
  my $head = '';
  while (my $line = <$client>) { $head .= $line; last if $line eq "\r\n"; }
  if ($head =~ /^upgrade: (\S+)/mi) {
    syswrite $client, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: $1\r\n\r\n";
    my $piece; while (sysread $client, $piece, 1024) { syswrite $client, uc $piece }
    exit;
  }
  if ($head =~ m{^GET /pieces}) {
    syswrite $client, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nfirst\r\n";
    select undef, undef, undef, 0.01 until -e "$ENV{HOME}/go";
    syswrite $client, "6\r\nsecond\r\n0\r\n\r\n";
    exit;
  }
  my ($size) = $head =~ /^content-length: (\d+)/mi;
  my $body = ''; read $client, $body, $size if $size;
  my $said = $head . length $body;
  print $client "HTTP/1.1 203 Fine\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nX-Own: 2\r\nContent-Length: ", length $said, "\r\n\r\n$said";
  exit;
}
"#;

struct Case {
    server: MockServer,
    api: Api,
    id: String,
    port: u16,
}

/// A sandbox on every runner that works here and really runs programs.
async fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in [RunnerKind::Process, RunnerKind::Isolated] {
        let server = match MockServer::builder().runner(kind).start() {
            Ok(server) => server,
            Err(StartError::Runner(_)) => continue,
            Err(error) => panic!("{error}"),
        };
        let api = Api::of(&server);
        let id = api.sandbox(json!({"name": "web", "snapshots": true})).await;
        cases.push(Case { server, api, id, port: free_port() });
    }
    cases
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

impl Case {
    fn path(&self, rest: &str) -> String {
        format!("/sandboxes/{}{rest}", self.id)
    }

    /// Starts the program and waits until it takes connections.
    async fn run(&self, address: &str) {
        let file = json!({"path": "/home/user/server.pl", "content": PROGRAM});
        let written = self.api.call("PUT", &self.path("/files"), file).await;
        assert!(written.status < 300, "{}", written.body);
        let started = self.api.start(&self.id, &format!("perl server.pl {address} {}", self.port)).await;
        let status = self.path(&format!("/commands/{}", started["processId"]));
        until(async || {
            let status = self.api.get(&status).await.body;
            assert_eq!(status["status"], "running", "{status}");
            status["stdout"] == "up\n"
        })
        .await;
    }

    async fn host(&self, body: Value) -> Value {
        let mut body = body;
        body["port"] = self.port.into();
        self.api.post(&self.path("/host"), body).await.succeeds(200, "port.hosted")
    }
}

fn plain() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().redirect(redirect::Policy::none()).build().unwrap()
}

async fn answer(request: reqwest::RequestBuilder) -> (StatusCode, String, String) {
    guarded(async {
        let response = request.send().await.unwrap();
        let error = response.headers().get("x-sandboxer-error").map(|code| code.to_str().unwrap().to_owned());
        (response.status(), error.unwrap_or_default(), response.text().await.unwrap())
    })
    .await
}

fn address(url: &str) -> SocketAddr {
    url.strip_prefix("http://").unwrap().split('/').next().unwrap().parse().unwrap()
}

/// A connection that the program has switched to repeating in capitals.
async fn upgraded(url: &str) -> TcpStream {
    let mut socket = guarded(TcpStream::connect(address(url))).await.unwrap();
    let request =
        "GET /socket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(guarded(socket.read_u8()).await.unwrap());
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    assert!(head.starts_with("http/1.1 101 ") && head.contains("upgrade: websocket"), "{head}");
    socket
}

#[tokio::test]
async fn a_public_address_leads_to_the_program() {
    for case in cases().await {
        let hosted = case.host(json!({"public": true, "title": "my page"})).await;
        assert_eq!(
            (
                &hosted["success"],
                &hosted["port"],
                &hosted["isProtected"],
                &hosted["access"],
                &hosted["localhost"]
            ),
            (&json!(true), &json!(case.port), &json!(false), &json!("public"), &json!(false))
        );
        let url = hosted["url"].as_str().unwrap().to_owned();
        let http = plain();
        let (status, code, _) = answer(http.get(&url)).await;
        assert_eq!((status.as_u16(), code.as_str()), (502, "nobody_listens"));
        case.run("0.0.0.0").await;

        let request = http
            .post(format!("{url}a//b?x=%20y"))
            .header("connection", "x-mine")
            .header("x-mine", "1")
            .header("te", "trailers")
            .header("x-forwarded-for", "198.51.100.1")
            .body("twelve bytes");
        let response = guarded(request.send()).await.unwrap();
        assert_eq!(response.status(), 203);
        assert_eq!(response.headers()["x-own"], "2");
        assert!(!response.headers().contains_key("x-hop"));
        let said = response.text().await.unwrap().to_lowercase();
        assert!(said.starts_with("post /a//b?x=%20y http/1.1\r\n"), "{said}");
        assert!(said.ends_with("\r\n\r\n12"), "{said}");
        let host = address(&url).to_string();
        for (line, is_there) in [
            (format!("host: {host}"), true),
            ("x-forwarded-for: 127.0.0.1".into(), true),
            (format!("x-forwarded-host: {host}"), true),
            ("x-forwarded-proto: http".into(), true),
            ("x-mine".into(), false),
            ("te: ".into(), false),
            ("198.51.100.1".into(), false),
        ] {
            assert_eq!(said.contains(&line), is_there, "{line} in {said}");
        }

        // The same address again, and what a call leaves out is as if it had never been said; the title stays.
        assert_eq!(case.host(json!({"public": true, "localhost": true})).await["url"], url);
        let listed = case.api.get(&case.path("/host")).await.succeeds(200, "port.list");
        let expected = json!([{"port": case.port, "url": url, "isProtected": false, "access": "public",
            "localhost": true, "title": "my page"}]);
        assert_eq!(listed["ports"], expected);
        case.server.shutdown();
    }
}

#[tokio::test]
async fn a_private_address_takes_its_token() {
    for case in cases().await {
        case.run("0.0.0.0").await;
        let hosted = case.host(json!({})).await;
        assert_eq!((&hosted["isProtected"], &hosted["access"]), (&json!(true), &json!("private")));
        let url = hosted["url"].as_str().unwrap();
        let (bare, token) = url.split_once("?_token=").unwrap();
        let http = plain();
        for refused in [bare.to_owned(), format!("{bare}?_token="), format!("{bare}?_token={token}x")] {
            let (status, code, _) = answer(http.get(&refused)).await;
            assert_eq!((status.as_u16(), code.as_str()), (401, "token_required"), "{refused}");
        }
        // A plain client is let in by the address alone; the program does not see the token.
        let (status, _, said) = answer(http.get(format!("{url}&a=1"))).await;
        assert_eq!(status, 203);
        assert!(said.starts_with("GET /?a=1 HTTP/1.1\r\n") && !said.contains(token), "{said}");
        let (status, _, said) = answer(http.get(bare).header("x-sandboxer-token", token)).await;
        assert!(status == 203 && !said.contains(token), "{said}");
        // A browser gets a cookie and an address without the token.
        let entered =
            guarded(http.get(format!("{url}&a=1")).header("accept", "text/html").send()).await.unwrap();
        assert_eq!(entered.status(), 302);
        assert_eq!(entered.headers()["location"], format!("{bare}?a=1"));
        let cookie = entered.headers()["set-cookie"].to_str().unwrap();
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax"), "{cookie}");
        let cookie = format!("mine=1; {}", cookie.split(';').next().unwrap());
        let (status, _, said) = answer(http.get(bare).header("cookie", cookie)).await;
        assert!(status == 203 && said.contains("mine=1") && !said.contains(token), "{said}");

        // Made public and private again it is the same one.
        assert_eq!(case.host(json!({"public": true})).await["url"], bare);
        assert_eq!(answer(http.get(bare)).await.0, 203);
        assert_eq!(case.host(json!({"public": false})).await["url"], url);
        assert_eq!(answer(http.get(bare)).await.0, 401);
        case.server.shutdown();
    }
}

#[tokio::test]
async fn names_lead_where_they_should_and_nothing_else_is_let_in() {
    for case in cases().await {
        case.run("0.0.0.0").await;
        let url = case.host(json!({"public": true})).await["url"].as_str().unwrap().to_owned();
        let http = plain();
        let by_name = async |name: &str| answer(http.get(&url).header("host", name)).await;
        let named = async |subdomain: &str| {
            let body = json!({"subdomain": subdomain});
            case.api.call("PATCH", &case.path(""), body).await.succeeds(200, "sandbox.updated");
        };
        named("first-name").await;
        let first = format!("first-name-{}.localhost:1", case.port);
        assert_eq!(by_name(&first).await.0, 203);
        named("second-name").await;
        assert_eq!(by_name(&format!("second-name-{}.localhost", case.port)).await.0, 203);
        for other in [first.as_str(), "evil.example", "192.0.2.7"] {
            let (status, code, _) = by_name(other).await;
            assert_eq!((status.as_u16(), code.as_str()), (421, "wrong_host"), "{other}");
        }
        // It is no proxy to anywhere.
        for (line, status) in
            [("CONNECT 127.0.0.1:80 HTTP/1.1", 405), ("GET http://example.com/ HTTP/1.1", 421)]
        {
            let said = guarded(async {
                let mut stream = TcpStream::connect(address(&url)).await.unwrap();
                let request = format!("{line}\r\nHost: localhost\r\nConnection: close\r\n\r\n");
                stream.write_all(request.as_bytes()).await.unwrap();
                let mut said = String::new();
                stream.read_to_string(&mut said).await.unwrap();
                said
            })
            .await;
            assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{said}");
        }
        case.server.shutdown();
    }
}

#[tokio::test]
async fn upgraded_connections_and_pieces_flow_both_ways_and_end_with_the_hosting() {
    for case in cases().await {
        case.run("127.0.0.1").await;
        let hosted = case.host(json!({"public": true})).await;
        let url = hosted["url"].as_str().unwrap();
        let http = plain();
        // It listens on loopback alone, which has to be allowed.
        let (status, code, said) = answer(http.get(url)).await;
        assert_eq!((status.as_u16(), code.as_str()), (502, "nobody_listens"));
        assert!(said.contains("loopback"), "{said}");
        case.host(json!({"public": true, "localhost": true})).await;

        let mut pieces = guarded(http.get(format!("{url}pieces")).send()).await.unwrap();
        assert_eq!(guarded(pieces.chunk()).await.unwrap().unwrap(), "first");
        case.api.exec(&case.id, "touch ~/go").await;
        assert_eq!(guarded(pieces.chunk()).await.unwrap().unwrap(), "second");
        assert_eq!(guarded(pieces.chunk()).await.unwrap(), None);

        let mut socket = upgraded(url).await;
        for word in ["hello", "again"] {
            socket.write_all(word.as_bytes()).await.unwrap();
            let mut echo = vec![0; word.len()];
            guarded(socket.read_exact(&mut echo)).await.unwrap();
            assert_eq!(echo, word.to_uppercase().as_bytes());
        }
        let unhosted = case.path(&format!("/host?port={}", case.port));
        for _ in 0..2 {
            let request = case.api.request("DELETE", &unhosted);
            case.api.send(request).await.succeeds(200, "port.unhosted");
        }
        // Cut, or ended: nothing more comes.
        assert!(!matches!(guarded(socket.read(&mut [0; 8])).await, Ok(1..)));
        assert!(guarded(http.get(url).send()).await.is_err());
        assert_eq!(case.api.get(&case.path("/host")).await.succeeds(200, "port.list")["ports"], json!([]));
        case.server.shutdown();
    }
}

#[tokio::test]
async fn nothing_goes_through_to_a_machine_that_does_not_answer() {
    for case in cases().await {
        case.run("0.0.0.0").await;
        let hosted = case.host(json!({"public": true})).await;
        let url = hosted["url"].as_str().unwrap();
        let http = plain();
        let set = |scenario, on| case.server.world().set_scenario_for(&case.id, scenario, on).unwrap();
        let mut pieces = guarded(http.get(format!("{url}pieces")).send()).await.unwrap();
        assert_eq!(guarded(pieces.chunk()).await.unwrap().unwrap(), "first");
        let mut socket = upgraded(url).await;
        for scenario in [Scenario::Restoring, Scenario::BoatRestoring, Scenario::Unreachable] {
            // What is open stays open but for a machine that is not there any more.
            socket.write_all(b"x").await.unwrap();
            assert_eq!(guarded(socket.read_u8()).await.unwrap(), b'X');
            set(scenario, true);
            let (status, code, _) = answer(http.get(url)).await;
            assert_eq!((status.as_u16(), code.as_str()), (502, "sandbox_unreachable"));
            if scenario == Scenario::Unreachable {
                assert!(!matches!(guarded(socket.read(&mut [0; 8])).await, Ok(1..)));
                assert!(guarded(pieces.chunk()).await.is_err());
            }
            set(scenario, false);
        }
        assert_eq!(answer(http.get(url)).await.0, 203);
        case.server.shutdown();
    }
}

#[tokio::test]
async fn a_program_of_the_host_or_of_another_sandbox_is_out_of_reach() {
    for case in cases().await {
        let foreign = TcpListener::bind((Ipv4Addr::UNSPECIFIED, case.port));
        let Ok(foreign) = foreign else { continue };
        let url =
            case.host(json!({"public": true, "localhost": true})).await["url"].as_str().unwrap().to_owned();
        case.api.exec(&case.id, "true").await;
        assert_eq!(answer(plain().get(&url)).await.1, "nobody_listens");
        drop(foreign);
        case.run("0.0.0.0").await;
        let other = case.api.sandbox(json!({})).await;
        case.api.exec(&other, "true").await;
        let body = json!({"port": case.port, "public": true, "localhost": true});
        let hosted =
            case.api.post(&format!("/sandboxes/{other}/host"), body).await.succeeds(200, "port.hosted");
        assert_ne!(hosted["url"], url);
        assert_eq!(answer(plain().get(hosted["url"].as_str().unwrap())).await.1, "nobody_listens");
        assert_eq!(answer(plain().get(&url)).await.0, 203);
        case.server.shutdown();
    }
}

#[tokio::test]
async fn a_stopped_sandbox_says_so_and_a_deleted_one_is_gone() {
    for case in cases().await {
        case.run("0.0.0.0").await;
        let url = case.host(json!({"public": true})).await["url"].as_str().unwrap().to_owned();
        case.api.post(&case.path("/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
        case.api.wait_for(&case.id, "archived").await;
        let request = plain().get(&url).header("accept", "text/html");
        let response = guarded(request.send()).await.unwrap();
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["content-type"], "text/html; charset=utf-8");
        assert!(response.text().await.unwrap().contains("the sandbox is archived"));
        for (path, body) in [
            ("/host", json!({"port": 80})),
            ("/desktop", json!({})),
            ("/sshkey", json!({"key": "ssh-ed25519 AAAA"})),
        ] {
            let details = case.api.post(&case.path(path), body).await;
            assert_eq!(details.fails(400, "machine_not_running")["state"], "archived");
        }
        case.api.post(&case.path("/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
        case.api.wait_for(&case.id, "ready").await;
        // Programs do not survive, addresses do.
        assert_eq!(answer(plain().get(&url)).await.1, "nobody_listens");
        case.api.delete(&case.id).await.succeeds(202, "sandbox.deleting");
        until(async || plain().get(&url).send().await.is_err()).await;
        case.server.shutdown();
    }
}

#[tokio::test]
async fn addresses_outlive_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let builder = MockServer::builder().runner(RunnerKind::Process).api_key("sbx_live_kept");
        builder.data_dir(folder.path().join("data")).start().unwrap()
    };
    let server = start();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let path = format!("/sandboxes/{id}/host");
    let before = api.post(&path, json!({"port": 3000})).await.succeeds(200, "port.hosted")["url"].clone();
    let sign_in = async |api: &Api, comment: &str| {
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
        let body = json!({"key": format!("{key} {comment}")});
        let added = api.post(&format!("/sandboxes/{id}/sshkey"), body).await;
        added.succeeds(200, "ssh_key.configured")["sshEndpoint"].as_str().unwrap().to_owned()
    };
    let endpoint = sign_in(&api, "before").await;
    server.shutdown();
    let server = start();
    // It is there before anybody asks for it again.
    drop(tokio::net::TcpStream::connect(&endpoint).await.unwrap());
    assert_eq!(sign_in(&Api::of(&server), "after").await, endpoint);
    let url = before.as_str().unwrap();
    assert_eq!(answer(plain().get(url)).await.1, "nobody_listens");
    assert_eq!(answer(plain().get(url.split('?').next().unwrap())).await.0, 401);
    let again = Api::of(&server).post(&path, json!({"port": 3000})).await.succeeds(200, "port.hosted");
    assert_eq!(again["url"], before);
}

#[tokio::test]
async fn without_programs_there_is_nothing_to_reach() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let path = format!("/sandboxes/{id}/host");
    let hosted = api.post(&path, json!({"port": 1, "public": true})).await.succeeds(200, "port.hosted");
    let (status, code, _) = answer(plain().get(hosted["url"].as_str().unwrap())).await;
    assert_eq!((status.as_u16(), code.as_str()), (502, "runner_has_no_network"));
    for bad in [json!({"port": 0}), json!({"port": 65536}), json!({"port": "80"}), json!({})] {
        let answer = api.post(&path, bad).await;
        assert_eq!((answer.status, answer.body["error"]["details"]["field"].as_str()), (400, Some("port")));
    }
    // As many as there may be, and the ones there are can be changed.
    for port in 2..=50 {
        api.post(&path, json!({"port": port})).await.succeeds(200, "port.hosted");
    }
    assert_eq!(api.post(&path, json!({"port": 51})).await.fails(400, "invalid_request")["field"], "port");
    api.post(&path, json!({"port": 50, "public": true})).await.succeeds(200, "port.hosted");
    assert_eq!(api.get(&path).await.body["ports"].as_array().unwrap().len(), 50);
    api.post("/sandboxes/bx_other/host", json!({"port": 1})).await.fails(404, "not_found");
    api.get("/sandboxes/bx_other/host").await.fails(404, "not_found");
}
