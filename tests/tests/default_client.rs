//! The default client of the process, as a program meets it: settings from the environment, runtimes that come and go.
//!
//! A process cannot change its own variables safely, so each test runs its body in a child process that has them.

use std::{
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use sandboxer::{AsyncSandbox, AsyncSandboxer, Create, ErrorKind, ListOptions};
use sandboxer_blocking::{Sandbox, Sandboxer};
use sandboxer_mock_server::MockServer;
use tokio::runtime::{Builder, Runtime};

/// Tells the child what it is.
const CHILD: &str = "DEFAULT_CLIENT_TEST_CHILD";

/// Runs `body` in a child process, which is this test alone with these variables, and none of the service's own besides.
fn in_child(test: &str, variables: &[(&str, &str)], body: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).stdin(Stdio::null());
    for name in ["SANDBOXER_API_KEY", "SANDBOXER_TOKEN", "SANDBOXER_API_URL", "SANDBOXER_ORG"] {
        child.env_remove(name);
    }
    let output = child.envs(variables.iter().copied()).env(CHILD, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "the child ran nothing: {said}");
}

/// Runs `body` in a child process whose default client speaks to a local server.
fn with_server(test: &str, body: impl FnOnce()) {
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let server = MockServer::start();
    let url = server.url();
    in_child(test, &[("SANDBOXER_API_URL", &url), ("SANDBOXER_API_KEY", server.api_key())], body);
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Which connections a client has is its own; the same client twice shows by being closed together.
fn same(one: &AsyncSandboxer, other: &AsyncSandboxer) -> bool {
    runtime().block_on(one.close());
    other.is_closed()
}

#[test]
fn a_missing_key_is_an_error_of_the_first_use() {
    in_child("a_missing_key_is_an_error_of_the_first_use", &[], || {
        runtime().block_on(async {
            assert_eq!(AsyncSandboxer::shared().unwrap_err().kind(), ErrorKind::Config);
            assert_eq!(AsyncSandbox::create(Create::new()).await.unwrap_err().kind(), ErrorKind::Config);
            assert_eq!(AsyncSandbox::get("bx_1").await.unwrap_err().kind(), ErrorKind::Config);
            assert_eq!(AsyncSandbox::connect("bx_1").unwrap_err().kind(), ErrorKind::Config);
            let mut list = AsyncSandbox::list(ListOptions::new());
            assert_eq!(list.next().await.unwrap().unwrap_err().kind(), ErrorKind::Config);
            assert!(list.next().await.is_none());
        });
        assert_eq!(Sandbox::create(Create::new()).unwrap_err().kind(), ErrorKind::Config);
        assert_eq!(Sandbox::get("bx_1").unwrap_err().kind(), ErrorKind::Config);
        assert_eq!(Sandbox::connect("bx_1").unwrap_err().kind(), ErrorKind::Config);
        let mut list = Sandbox::list(ListOptions::new());
        assert_eq!(list.next().unwrap().unwrap_err().kind(), ErrorKind::Config);
        assert!(list.next().is_none() && list.next_page().is_none());
    });
}

#[test]
fn a_program_needs_no_client_of_its_own() {
    with_server("a_program_needs_no_client_of_its_own", || {
        runtime().block_on(async {
            let sandbox = AsyncSandbox::create(Create::new()).await.unwrap();
            let same = AsyncSandbox::connect(sandbox.id()).unwrap();
            assert_eq!(same.exec("echo hi").await.unwrap().stdout_text(), "hi\n");
            assert_eq!(AsyncSandbox::get(sandbox.id()).await.unwrap().id(), sandbox.id());
            assert_eq!(AsyncSandbox::list(ListOptions::new()).collect().await.unwrap().len(), 1);
        });
        let sandbox = Sandbox::create(Create::new()).unwrap();
        assert_eq!(Sandbox::connect(sandbox.id()).unwrap().exec("echo hi").unwrap().stdout_text(), "hi\n");
        assert_eq!(Sandbox::get(sandbox.id()).unwrap().id(), sandbox.id());
        assert_eq!(Sandbox::list(ListOptions::new()).count(), 2);
    });
}

#[test]
fn one_runtime_after_another_and_one_beside_another_work() {
    with_server("one_runtime_after_another_and_one_beside_another_work", || {
        for _ in 0..3 {
            runtime().block_on(async { AsyncSandboxer::shared().unwrap().me().await.unwrap() });
        }
        // One that has made connections and is not driven any more, though it lives: they must not be used elsewhere.
        let parked = runtime();
        parked.block_on(async { AsyncSandboxer::shared().unwrap().me().await.unwrap() });
        let (done, finished) = mpsc::channel();
        let other = thread::spawn(move || {
            runtime().block_on(async { AsyncSandboxer::shared().unwrap().me().await.unwrap() });
            done.send(()).unwrap();
        });
        finished.recv_timeout(Duration::from_secs(30)).expect("it does not wait for the parked runtime");
        other.join().unwrap();
        parked.block_on(async { AsyncSandboxer::shared().unwrap().me().await.unwrap() });
    });
}

#[test]
fn a_runtime_has_one_client_until_it_ends() {
    with_server("a_runtime_has_one_client_until_it_ends", || {
        let (first, second) = (runtime(), runtime());
        let of = |runtime: &Runtime| runtime.block_on(async { AsyncSandboxer::shared().unwrap() });
        let (one, two) = (of(&first), of(&second));
        assert!(same(&of(&first), &one), "the same runtime, the same client");
        assert!(!two.is_closed(), "another runtime, another client");
        let renewed = of(&first);
        assert!(!renewed.is_closed(), "a closed one is replaced");
        AsyncSandboxer::reset_shared();
        assert!(!same(&of(&first), &renewed), "forgotten by a reset");
        runtime().block_on(async { two.me().await.map(drop) }).unwrap();
        let own = of(&second);
        first.block_on(async { AsyncSandboxer::set_shared(own.clone()) });
        assert!(same(&of(&first), &own), "one that was put there");
        drop((first, second));
        let outside = (AsyncSandboxer::shared().unwrap(), AsyncSandboxer::shared().unwrap());
        assert!(!same(&outside.0, &outside.1), "outside of any runtime each is new");
    });
}

#[test]
fn the_blocking_default_client_is_one_for_all_threads() {
    with_server("the_blocking_default_client_is_one_for_all_threads", || {
        let client = Sandboxer::shared().unwrap();
        thread::spawn(|| Sandboxer::shared().unwrap().close()).join().unwrap();
        assert!(client.is_closed());
        let renewed = Sandboxer::shared().unwrap();
        renewed.me().unwrap();
        Sandboxer::reset_shared();
        Sandboxer::shared().unwrap().close();
        assert!(!renewed.is_closed());
        // Within an async program it works as any blocking call does.
        runtime().block_on(async { Sandbox::create(Create::new()).unwrap().delete().unwrap() });
    });
}
