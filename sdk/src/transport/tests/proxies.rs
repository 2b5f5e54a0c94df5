//! Proxies from the environment. It belongs to the whole process, so the client under test runs in one of its own.

use super::{
    KEY, get,
    peer::{Peer, ok},
};
use crate::AsyncSandboxer;

const BASE: &str = "SANDBOXER_PROXY_TEST_BASE";

/// Does nothing unless the test below starts it.
#[tokio::test]
async fn the_client_in_a_process_of_its_own() {
    let Ok(base) = std::env::var(BASE) else { return };
    let client = AsyncSandboxer::builder().ignore_env().api_key(KEY).base_url(base).build().unwrap();
    get(&client).await.unwrap();
}

#[test]
fn plain_http_on_this_machine_goes_through_no_proxy() {
    let (proxy, service) = (Peer::start(vec![ok("{}")]), Peer::start(vec![ok("{}")]));
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "transport::tests::proxies::the_client_in_a_process_of_its_own"]);
    for name in ["NO_PROXY", "no_proxy", "REQUEST_METHOD"] {
        command.env_remove(name);
    }
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env(name, proxy.url.trim_end_matches("/api/v1"));
    }
    let ended = command.env(BASE, &service.url).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
    assert_eq!((service.requests().len(), proxy.requests().len()), (1, 0));
}
