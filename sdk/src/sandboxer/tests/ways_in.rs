//! Hosted ports, SSH and the desktop.

use std::time::Duration;

use serde_json::{Value, json};

use super::service::{Reply, Service, failure};
use crate::{Desktop, ErrorKind, Host, clock::ManualClock};

fn hosted(url: &str) -> Reply {
    Reply::Json(200, json!({"ok": true, "type": "port.hosted", "port": 3000, "url": url}))
}

fn desktop(fields: Value) -> Reply {
    let mut body = json!({"ok": true, "type": "desktop.url"});
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    Reply::Json(200, body)
}

#[tokio::test]
async fn every_host_option_is_sent_and_nothing_else() {
    let service = Service::start(|_, _| hosted("https://calm-3000.example/?_token=hush"));
    let sandbox = service.client().sandbox("bx_1");
    let url = sandbox.host(3000).await.unwrap();
    assert_eq!(url.expose(), "https://calm-3000.example/?_token=hush");
    assert!(!format!("{url}{url:?}").contains("hush"));
    let all = Host::new().public(false).localhost(true).title("preview");
    sandbox.host_with(65535, all).await.unwrap();
    assert_eq!(service.calls(), ["POST /sandboxes/bx_1/host"; 2]);
    let bodies: Vec<_> = service.requests().into_iter().map(|request| request.body).collect();
    let all = json!({"port": 65535, "public": false, "localhost": true, "title": "preview"});
    assert_eq!(bodies, [json!({"port": 3000}), all]);
}

#[tokio::test]
async fn ports_are_listed_and_taken_away() {
    let service = Service::start(|request, _| match request.call.as_str() {
        "GET /sandboxes/bx_1/host" => Reply::Json(
            200,
            json!({"ok": true, "type": "port.list", "ports": [{"port": 1, "url": "https://a.example/?_token=hush"}]}),
        ),
        _ => Reply::Json(200, json!({"ok": true, "type": "port.unhosted"})),
    });
    let sandbox = service.client().sandbox("bx_1");
    let ports = sandbox.hosted_ports().await.unwrap();
    assert_eq!(ports[0].port, 1);
    assert!(!format!("{ports:?}").contains("hush"));
    sandbox.unhost(8080).await.unwrap();
    assert_eq!(service.calls(), ["GET /sandboxes/bx_1/host", "DELETE /sandboxes/bx_1/host?port=8080"]);
}

#[tokio::test]
async fn a_list_of_ports_that_is_not_there_is_no_empty_one() {
    let service = Service::start(|_, _| Reply::Json(200, json!({"ok": true, "hostedPorts": [{"port": 1}]})));
    let error = service.client().sandbox("bx_1").hosted_ports().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unexpected);
}

#[tokio::test]
async fn bad_input_is_refused_with_nothing_sent() {
    let service = Service::start(|_, _| hosted("https://calm.example/"));
    let sandbox = service.client().sandbox("bx_1");
    let title = |text: &str| Host::new().title(text);
    let refusals = [
        sandbox.host(0).await.unwrap_err(),
        sandbox.host_with(1, title("")).await.unwrap_err(),
        sandbox.host_with(1, title(&"x".repeat(201))).await.unwrap_err(),
        sandbox.host_with(1, title("a\0b")).await.unwrap_err(),
        sandbox.unhost(0).await.unwrap_err(),
        sandbox.ssh_key("-----BEGIN OPENSSH PRIVATE KEY-----\nhush").await.unwrap_err(),
        sandbox.ssh_key("").await.unwrap_err(),
    ];
    for error in refusals {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(!error.to_string().contains("hush"));
    }
    assert!(service.calls().is_empty());
}

#[tokio::test]
async fn what_is_no_web_address_is_an_error_that_does_not_tell_it() {
    for odd in ["", "calm.example?_token=hush", "javascript:hush"] {
        let service = Service::start(move |_, _| hosted(odd));
        let error = service.client().sandbox("bx_1").host(3000).await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Unexpected, "invalid_url"), "{odd}");
        assert!(!format!("{error}{error:?}").contains("hush"));
    }
}

#[tokio::test]
async fn a_public_key_is_sent_as_one_line() {
    let service = Service::start(|_, _| {
        Reply::Json(200, json!({"ok": true, "type": "ssh_key.configured", "sshEndpoint": "a.example:2222"}))
    });
    let key =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f me@example.org";
    let login = service.client().sandbox("bx_1").ssh_key(&format!("{key}\n")).await.unwrap();
    assert_eq!(login.ssh_endpoint.as_deref(), Some("a.example:2222"));
    assert_eq!(service.calls(), ["POST /sandboxes/bx_1/sshkey"]);
    assert_eq!(service.requests()[0].body, json!({"key": key}));
}

#[tokio::test]
async fn a_desktop_is_asked_for_until_it_has_a_url() {
    let service = Service::start(|_, before| match before {
        0 => desktop(json!({"type": "desktop.provisioning", "provisioning": true, "message": "soon"})),
        _ => desktop(json!({"success": true, "desktopUrl": "https://d.example/?t=hush"})),
    });
    let clock = ManualClock::new();
    let sandbox = service.client_on(clock.shared()).sandbox("bx_1");
    let asking =
        tokio::spawn(async move { sandbox.desktop(Desktop::new().theme("dark").public(true)).await });
    service.arrived(1).await;
    clock.wait_for_sleep_of(Duration::from_secs(2)).await;
    clock.advance(Duration::from_secs(2));
    assert_eq!(asking.await.unwrap().unwrap().expose(), "https://d.example/?t=hush");
    assert_eq!(service.calls(), ["POST /sandboxes/bx_1/desktop?theme=dark&vnc=1"; 2]);
    assert_eq!(service.requests()[1].body, json!({"publicAccess": true}));
}

#[tokio::test]
async fn a_desktop_never_comes_without_a_url() {
    for answer in
        [json!({"success": false, "message": "no screen"}), json!({"success": true, "desktopUrl": ""})]
    {
        let service = Service::start(move |_, _| desktop(answer.clone()));
        let error = service.client().sandbox("bx_1").desktop(Desktop::new()).await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::SandboxState, "desktop_failed"));
    }
    let service = Service::start(|_, _| failure(400, "machine_not_running"));
    let error = service.client().sandbox("bx_1").desktop(Desktop::new().vnc(false)).await.unwrap_err();
    assert_eq!(error.code(), "machine_not_running");
    assert_eq!(service.calls(), ["POST /sandboxes/bx_1/desktop?vnc=0"]);
    let service = Service::start(|_, _| Reply::Hang);
    let clock = ManualClock::new();
    let sandbox = service.client_on(clock.shared()).sandbox("bx_1");
    let options = Desktop::new().wait_limit(Duration::from_secs(7));
    let asking = tokio::spawn(async move { sandbox.desktop(options).await });
    service.arrived(1).await;
    clock.wait_for_sleep_of(Duration::from_secs(7)).await;
    clock.advance(Duration::from_secs(7));
    assert_eq!(asking.await.unwrap().unwrap_err().kind(), ErrorKind::WaitTimeout);
}
