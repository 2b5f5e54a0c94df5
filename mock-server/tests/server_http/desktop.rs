//! Desktops and SSH keys: what the local server has in their place.

use std::time::Duration;

use sandboxer::clock::ManualClock;
use sandboxer_mock_server::{MockServer, RunnerKind, Scenario, WorldSeed};
use serde_json::json;
use tokio::{io::AsyncReadExt as _, net::TcpStream};

use crate::http::{Api, guarded};

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";

#[tokio::test]
async fn a_desktop_is_made_and_its_page_says_what_there_is() {
    let clock = ManualClock::new();
    let seed = WorldSeed::from_toml("[machines]\ndesktop_delay_ms = 4000").unwrap();
    let builder = MockServer::builder().clock(clock.shared()).world(seed).runner(RunnerKind::Scripted);
    let server = builder.start().unwrap();
    let (api, world) = (Api::of(&server), server.world());
    let id = api.sandbox(json!({})).await;
    let path = format!("/sandboxes/{id}/desktop?vnc=1&theme=dark");
    world.set_scenario_for(&id, Scenario::BrowserStarting, true).unwrap();
    let starting = api.post(&path, json!({})).await;
    assert_eq!(starting.headers["retry-after"], "2");
    assert_eq!(starting.fails(503, "browser_not_ready")["retryable"], true);
    world.set_scenario_for(&id, Scenario::BrowserStarting, false).unwrap();
    for _ in 0..2 {
        let making = api.post(&path, json!({})).await.succeeds(200, "desktop.provisioning");
        assert_eq!((&making["provisioning"], &making["success"]), (&json!(true), &json!(false)));
        assert!(making.get("desktopUrl").is_none());
        clock.advance(Duration::from_secs(2));
    }
    let made = api.post(&path, json!({})).await.succeeds(200, "desktop.url");
    assert_eq!(
        (&made["success"], &made["ip"], &made["mode"]),
        (&json!(true), &json!("127.0.0.1"), &json!("page"))
    );
    let url = made["desktopUrl"].as_str().unwrap();
    let bare = url.split('?').next().unwrap();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    assert_eq!(guarded(http.get(bare).send()).await.unwrap().status(), 401);
    let page = guarded(http.get(url).send()).await.unwrap();
    assert_eq!(
        (page.status().as_u16(), &page.headers()["content-type"]),
        (200, &"text/html; charset=utf-8".parse().unwrap())
    );
    let page = page.text().await.unwrap();
    assert!(
        page.contains("No desktop here") && page.contains(&id) && page.contains("content=\"dark\""),
        "{page}"
    );
    let public = api.post(&path, json!({"publicAccess": true})).await.succeeds(200, "desktop.url");
    assert_eq!(public["desktopUrl"], bare);
    assert_eq!(guarded(http.get(bare).send()).await.unwrap().status(), 200);
    for scenario in [Scenario::Unreachable, Scenario::Restoring, Scenario::BoatRestoring] {
        world.set_scenario_for(&id, scenario, true).unwrap();
        let lost = guarded(http.get(bare).send()).await.unwrap();
        assert_eq!(
            (lost.status().as_u16(), &lost.headers()["x-sandboxer-error"]),
            (502, &"sandbox_unreachable".parse().unwrap())
        );
        world.set_scenario_for(&id, scenario, false).unwrap();
    }
}

#[tokio::test]
async fn without_a_delay_only_the_first_answer_says_that_it_is_being_made() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let id = api.sandbox(json!({})).await;
    let path = format!("/sandboxes/{id}/desktop");
    api.post(&path, json!({})).await.succeeds(200, "desktop.provisioning");
    api.post(&path, json!({})).await.succeeds(200, "desktop.url");
}

#[tokio::test]
async fn a_key_is_checked_and_kept_and_its_owner_is_told_the_truth() {
    let server = MockServer::builder().runner(RunnerKind::Scripted).start().unwrap();
    let (api, world) = (Api::of(&server), server.world());
    let id = api.sandbox(json!({})).await;
    let path = format!("/sandboxes/{id}/sshkey");
    for bad in ["x", "ssh-ed25519 AAAA", "-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n", ""] {
        let refused = api.post(&path, json!({"key": bad})).await;
        assert_eq!(refused.fails(400, "invalid_ssh_key")["field"], "key");
        assert!(!refused.body.to_string().contains("secret"));
    }
    let added = api.post(&path, json!({"key": format!("{KEY} me@home\n")})).await;
    let added = added.succeeds(200, "ssh_key.configured");
    assert_eq!(
        (&added["success"], &added["sshUser"], &added["machineIp"], &added["hostKey"]),
        (&json!(true), &json!("user"), &json!("127.0.0.1"), &json!(null))
    );
    let again = api.post(&path, json!({"key": KEY})).await.succeeds(200, "ssh_key.configured");
    assert_eq!(again["sshEndpoint"], added["sshEndpoint"]);
    let said = guarded(async {
        let mut stream = TcpStream::connect(added["sshEndpoint"].as_str().unwrap()).await.unwrap();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).await.unwrap();
        String::from_utf8_lossy(&said).into_owned()
    })
    .await;
    assert!(said.starts_with("SSH-2.0-") && said.contains("runs no SSH server"), "{said:?}");
    world.set_scenario_for(&id, Scenario::HostKeyUnknown, true).unwrap();
    api.post(&path, json!({"key": KEY})).await.fails(503, "ssh_host_key_unavailable");
}

#[tokio::test]
async fn a_sandbox_is_shown_with_its_ways_in_while_it_is_up() {
    let seed = "[[keys]]\nsecret = 'sbx_live_look'\nactions = ['sandbox.read']\n\
                [machines]\ndesktop_delay_ms = 4000\nboot_delay_ms = 5000\n";
    let seed = WorldSeed::from_toml(seed).unwrap();
    let clock = ManualClock::new();
    let builder = MockServer::builder().clock(clock.shared()).world(seed).api_key("sbx_live_own");
    let server = builder.runner(RunnerKind::Scripted).start().unwrap();
    let api = Api::of(&server);
    let boot = async |id: &str| {
        guarded(clock.wait_for_sleep_of(Duration::from_secs(5))).await;
        let shown = api.get(&format!("/sandboxes/{id}")).await.body["sandbox"].clone();
        assert_eq!((&shown["state"], &shown["desktopAvailable"]), (&json!("provisioning"), &json!(false)));
        assert_eq!((&shown["desktopUrl"], &shown["url"]), (&json!(null), &json!(null)));
        clock.advance(Duration::from_secs(5));
        api.wait_for(id, "ready").await;
    };
    let created = api.post("/sandboxes", json!({})).await.succeeds(202, "sandbox.created");
    let id = created["sandbox"]["id"].as_str().unwrap().to_owned();
    boot(&id).await;
    let one = format!("/sandboxes/{id}");
    let fields = |sandbox: &serde_json::Value| {
        ["desktopAvailable", "desktopUrl", "url", "sshEndpoint"].map(|name| sandbox[name].clone())
    };
    // A single read, a list and a change show the same.
    let shown = async || {
        let got = fields(&api.get(&one).await.body["sandbox"]);
        assert_eq!(fields(&api.get("/sandboxes").await.body["sandboxes"][0]), got);
        assert_eq!(fields(&api.call("PATCH", &one, json!({"name": "x"})).await.body["sandbox"]), got);
        got
    };
    assert_eq!(shown().await, [json!(true), json!(null), json!(null), json!(null)]);
    let desktop = format!("{one}/desktop");
    api.post(&desktop, json!({})).await.succeeds(200, "desktop.provisioning");
    assert_eq!(shown().await[1], json!(null));
    clock.advance(Duration::from_secs(4));
    let made = api.post(&desktop, json!({})).await.succeeds(200, "desktop.url");
    let hosted = api.post(&format!("{one}/host"), json!({"port": 3000})).await.succeeds(200, "port.hosted");
    api.post(&format!("{one}/host"), json!({"port": 4000})).await.succeeds(200, "port.hosted");
    let ssh = api.post(&format!("{one}/sshkey"), json!({"key": KEY})).await;
    let ssh = ssh.succeeds(200, "ssh_key.configured");
    let bare = hosted["url"].as_str().unwrap().split('?').next().unwrap();
    let up = [json!(true), made["desktopUrl"].clone(), json!(bare), ssh["sshEndpoint"].clone()];
    assert_eq!(shown().await, up);
    // Whoever may not open a desktop is not told how.
    let looking = Api::with_key(&server.url(), "sbx_live_look");
    let seen = fields(&looking.get(&one).await.succeeds(200, "sandbox.info")["sandbox"]);
    assert_eq!(seen, [json!(true), json!(null), json!(bare), ssh["sshEndpoint"].clone()]);

    api.post(&format!("{one}/stop"), json!({})).await.succeeds(202, "sandbox.stopping");
    api.wait_for(&id, "archived").await;
    assert_eq!(shown().await, [json!(true), json!(null), json!(null), json!(null)]);
    api.post(&format!("{one}/resume"), json!({})).await.succeeds(202, "sandbox.resuming");
    boot(&id).await;
    assert_eq!(shown().await, up);
}
