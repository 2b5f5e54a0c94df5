//! Creating without losing a sandbox, whatever happens on the way.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use serde_json::json;

use super::service::{Reply, Request, Service, created, deleting, failure, info};
use crate::{
    AsyncSandboxer, CallOptions, Create, Error, ErrorKind,
    clock::{Clock as _, ManualClock},
    models::SandboxState,
};

/// Creates at once, is ready at once, deletes.
fn willing(request: &Request, _: usize) -> Reply {
    match request.call.as_str() {
        "POST /sandboxes" => created("provisioning"),
        "DELETE /sandboxes/bx_1" => deleting(),
        _ => info("ready"),
    }
}

#[tokio::test]
async fn create_sends_what_was_asked_and_waits_until_it_is_ready() {
    let service = Service::start(|request, before| match (request.call.as_str(), before) {
        ("POST /sandboxes", _) => created("provisioning"),
        ("PATCH /sandboxes/bx_1", _) | ("GET /sandboxes/bx_1", 0) => info("provisioning"),
        _ => info("ready"),
    });
    let clock = ManualClock::new();
    let client = service.client_on(clock.shared());
    let options = Create::new().kind("small").env("CI", "1").name("demo").ttl(Duration::from_secs(60));
    let creating = tokio::spawn(async move { client.create(options).await });
    clock.wait_for_sleep_of(Duration::from_millis(10)).await;
    clock.advance(Duration::from_millis(10));
    let sandbox = creating.await.unwrap().unwrap();
    assert_eq!(sandbox.id(), "bx_1");
    assert_eq!(sandbox.info().unwrap().state, SandboxState::Ready);
    let look = "GET /sandboxes/bx_1";
    assert_eq!(service.calls(), ["POST /sandboxes", "PATCH /sandboxes/bx_1", look, look]);
    let requests = service.requests();
    assert_eq!(requests[0].body, json!({"type": "small", "env": {"CI": "1"}, "ttlSeconds": 60}));
    assert_eq!(requests[1].body, json!({"name": "demo"}));
    assert!(requests[0].header("idempotency-key").is_some_and(|key| key.len() == 36));
    assert!(requests[1].header("idempotency-key").is_none());
}

#[tokio::test]
async fn what_goes_wrong_after_the_create_still_tells_the_id() {
    let service = Service::start(|request, _| match request.call.as_str() {
        "PATCH /sandboxes/bx_1" => failure(502, "gateway_error"),
        _ => willing(request, 0),
    });
    let client = service.client();
    let error = client.create(Create::new().name("demo")).await.unwrap_err();
    assert_eq!((error.code(), error.sandbox_id()), ("gateway_error", Some("bx_1")));
    client.close().await;
    assert_eq!(service.calls().len(), 2, "the sandbox is the caller's, nothing deletes it");
}

#[tokio::test]
async fn a_name_that_would_be_refused_makes_nothing() {
    let service = Service::start(willing);
    let error = service.client().create(Create::new().name("")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(service.calls().is_empty());
}

#[tokio::test]
async fn a_cancelled_sandbox_is_remembered_after_it_is_gone() {
    let service = Service::start(|request, before| match (request.call.as_str(), before) {
        ("POST /sandboxes", _) => created("provisioning"),
        (_, 0) => info("cancelled"),
        _ => failure(404, "not_found"),
    });
    let client = service.client();
    let sandbox = client.create(Create::new().wait(false)).await.unwrap();
    for _ in 0..2 {
        let error = sandbox.wait_until_ready().await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::SandboxState, "sandbox_cancelled"));
        assert_eq!(error.sandbox_id(), Some("bx_1"));
    }
}

#[tokio::test]
async fn a_sandbox_that_vanishes_before_it_is_ready_is_not_just_not_found() {
    let service = Service::start(|request, _| match request.call.as_str() {
        "POST /sandboxes" => created("provisioning"),
        _ => failure(404, "not_found"),
    });
    let error = service.client().create(Create::new()).await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::SandboxState, "sandbox_gone"));
    assert_eq!(error.sandbox_id(), Some("bx_1"));
}

#[tokio::test]
async fn the_wait_ends_at_its_limit_with_the_id() {
    let service = Service::start(|request, _| match request.call.as_str() {
        "POST /sandboxes" => created("provisioning"),
        _ => Reply::Hang,
    });
    let clock = ManualClock::new();
    let client = service.client_on(clock.shared());
    let creating =
        tokio::spawn(async move { client.create(Create::new().wait_limit(Duration::from_secs(7))).await });
    service.arrived(2).await;
    clock.wait_for_sleep_of(Duration::from_secs(7)).await;
    clock.advance(Duration::from_secs(7));
    let error = creating.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.sandbox_id()), (ErrorKind::WaitTimeout, Some("bx_1")));
    assert_eq!(clock.elapsed(), Duration::from_secs(7));
}

#[tokio::test]
async fn a_create_dropped_on_its_way_is_found_by_its_key_and_deleted() {
    let service = Service::start(|request, before| match (request.call.as_str(), before) {
        ("POST /sandboxes", 0) => Reply::Hang,
        _ => willing(request, before),
    });
    let client = service.client();
    let creating = tokio::spawn({
        let client = client.clone();
        async move { client.create(Create::new().kind("small")).await.map(drop) }
    });
    service.arrived(1).await;
    creating.abort();
    let _ = creating.await;
    client.close().await;
    let requests = service.requests();
    assert_eq!(service.calls(), ["POST /sandboxes", "POST /sandboxes", "DELETE /sandboxes/bx_1"]);
    assert_eq!(requests[0].header("idempotency-key"), requests[1].header("idempotency-key"));
    assert_eq!(requests[0].body, requests[1].body);
    assert_eq!(requests[2].header("x-sandboxer-confirm-delete"), Some("bx_1"));
    assert_eq!(client.get("bx_1").await.unwrap_err().kind(), ErrorKind::Closed);
}

/// Leads to the service, but for its first look, which never ends.
#[derive(Clone, Default)]
struct Stuck(Arc<AtomicUsize>);

impl Resolve for Stuck {
    fn resolve(&self, _: Name) -> Resolving {
        let first = self.0.fetch_add(1, Ordering::SeqCst) == 0;
        Box::pin(async move {
            if first {
                std::future::pending::<()>().await;
            }
            Ok(Box::new(std::iter::once(std::net::SocketAddr::from(([127, 0, 0, 1], 0)))) as Addrs)
        })
    }
}

#[tokio::test]
async fn a_create_dropped_before_a_connection_took_it_is_never_sent() {
    let (service, resolver) = (Service::start(willing), Stuck::default());
    let http =
        reqwest::Client::builder().no_proxy().dns_resolver(Arc::new(resolver.clone())).tls_certs_only([]);
    let client = AsyncSandboxer::builder()
        .ignore_env()
        .api_key("key")
        .base_url(format!("http://stuck.test:{}/api/v1", service.port()))
        .allow_plain_http()
        .http_client(http.build().unwrap())
        .build()
        .unwrap();
    {
        let creating = client.create(Create::new());
        tokio::pin!(creating);
        let looked = async {
            while resolver.0.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            _ = &mut creating => panic!("its name is not resolved"),
            () = looked => {}
        }
    }
    client.close().await;
    assert_eq!((service.calls().len(), resolver.0.load(Ordering::SeqCst)), (0, 1));
}

#[tokio::test]
async fn a_create_dropped_between_its_tries_is_looked_for_only_if_one_may_have_made_something() {
    type Case = (fn() -> Reply, bool);
    let cases: [Case; 3] = [
        (|| failure(429, "rate_limited"), false),
        (|| failure(503, "out_of_capacity"), false),
        (|| failure(503, "http_503"), true),
    ];
    for (first, looked_for) in cases {
        let service = Service::start(move |request, before| match (request.call.as_str(), before) {
            ("POST /sandboxes", 0) => first(),
            _ => willing(request, before),
        });
        // Its clock stands still, so the second try never begins.
        let clock = ManualClock::new();
        let client = service.client_on(clock.shared());
        {
            let creating = client.create(Create::new());
            tokio::pin!(creating);
            let paused = async {
                // The try's own limit is a minute, a pause at most half a second.
                while clock.next_due().is_none_or(|due| due > Duration::from_secs(1)) {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                biased;
                _ = &mut creating => panic!("the second try is not due"),
                () = paused => {}
            }
        }
        client.close().await;
        let expected: &[&str] = match looked_for {
            true => &["POST /sandboxes", "POST /sandboxes", "DELETE /sandboxes/bx_1"],
            false => &["POST /sandboxes"],
        };
        assert_eq!(service.calls(), expected);
    }
}

#[tokio::test]
async fn a_scope_that_no_try_can_have_begun_looks_for_nothing() {
    let service = Service::start(|request, before| match (request.call.as_str(), before) {
        ("POST /sandboxes", 0) => failure(429, "rate_limited"),
        ("POST /sandboxes", 1) => failure(402, "billing_required"),
        _ => willing(request, before),
    });
    let client = service.client().with(CallOptions::new().retries(1));
    let error = client.scoped(Create::new(), |_| async { Ok(()) }).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::PaymentRequired, 2));
    client.close().await;
    assert_eq!(service.calls().len(), 2);
}

#[tokio::test]
async fn a_create_dropped_while_it_waits_is_deleted() {
    let service = Service::start(|request, before| match request.call.as_str() {
        "GET /sandboxes/bx_1" => Reply::Hang,
        _ => willing(request, before),
    });
    let client = service.client();
    {
        let creating = client.create(Create::new());
        tokio::pin!(creating);
        tokio::select! {
            biased;
            _ = &mut creating => panic!("it cannot become ready"),
            () = service.arrived(2) => {}
        }
    }
    client.close().await;
    assert_eq!(service.calls(), ["POST /sandboxes", "GET /sandboxes/bx_1", "DELETE /sandboxes/bx_1"]);
}

#[tokio::test]
async fn a_create_that_was_never_polled_or_has_the_callers_key_is_left_alone() {
    let service = Service::start(|_, _| Reply::Hang);
    let client = service.client();
    drop(client.create(Create::new()));
    let own = client.with(CallOptions::new().idempotency_key("mine"));
    {
        let creating = own.create(Create::new());
        tokio::pin!(creating);
        tokio::select! {
            biased;
            _ = &mut creating => panic!("it is never answered"),
            () = service.arrived(1) => {}
        }
    }
    client.close().await;
    assert_eq!(service.calls().len(), 1);
    assert_eq!(service.requests()[0].header("idempotency-key"), Some("mine"));
}

#[tokio::test]
async fn a_scope_deletes_after_success_error_and_panic() {
    let service = Service::start(willing);
    let client = service.client();
    let value = client.scoped(Create::new(), |sandbox| async move { Ok(sandbox.id().len()) }).await.unwrap();
    assert_eq!(value, 4);
    assert_eq!(service.calls(), ["POST /sandboxes", "GET /sandboxes/bx_1", "DELETE /sandboxes/bx_1"]);

    let failing = |_| async { Err::<(), _>(Error::invalid_input("mine", "is kept")) };
    let error = client.scoped(Create::new(), failing).await.unwrap_err();
    assert!(error.message().contains("is kept"));
    assert_eq!(service.calls().len(), 6);

    let panicking = client.scoped::<(), _, _>(Create::new(), |_| async { panic!("boom") });
    let panic = AssertUnwindSafe(panicking).catch_unwind().await.unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"boom"));
    assert_eq!(service.calls().len(), 9);
    client.close().await;
    assert_eq!(service.calls().len(), 9, "nothing is deleted twice");
}

#[tokio::test]
async fn a_scope_that_is_dropped_is_cleaned_up_in_the_background() {
    let service = Service::start(willing);
    let client = service.client();
    {
        let working = client.scoped(Create::new(), |_| std::future::pending::<crate::Result<()>>());
        tokio::pin!(working);
        tokio::select! {
            biased;
            _ = &mut working => panic!("it never ends"),
            () = service.arrived(2) => {}
        }
        // The answer to the second request may still be on its way; wherever it is, one sandbox exists.
    }
    client.close().await;
    assert_eq!(service.calls().last().unwrap(), "DELETE /sandboxes/bx_1");
}

#[tokio::test]
async fn a_failed_clean_up_never_hides_the_bodys_error_and_is_tried_again() {
    let service = Service::start(|request, before| match (request.call.as_str(), before) {
        ("DELETE /sandboxes/bx_1", 0) => failure(500, "internal_error"),
        _ => willing(request, before),
    });
    let client = service.client();
    let failing = |_| async { Err::<(), _>(Error::invalid_input("mine", "is kept")) };
    let error = client.scoped(Create::new(), failing).await.unwrap_err();
    assert!(error.message().contains("is kept"));
    client.close().await;
    let deletes = service.calls().iter().filter(|call| call.starts_with("DELETE")).count();
    assert_eq!(deletes, 2);
}

#[tokio::test]
async fn a_scope_whose_create_is_in_doubt_cleans_up_and_one_refused_does_not() {
    let service = Service::start(|request, before| match (request.call.as_str(), before) {
        ("POST /sandboxes", 0) => Reply::Drop,
        ("POST /sandboxes", 2) => failure(402, "billing_required"),
        _ => willing(request, before),
    });
    let client = service.client();
    let body = |_| async { Ok(()) };
    let error = client.scoped(Create::new(), body).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection);
    while service.calls().last().unwrap() != "DELETE /sandboxes/bx_1" {
        tokio::task::yield_now().await;
    }
    let error = client.scoped(Create::new(), body).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PaymentRequired);
    client.close().await;
    assert_eq!(service.calls().len(), 4);
}

#[tokio::test]
async fn a_scope_whose_create_met_a_fault_of_the_service_cleans_up() {
    // A gateway that gave up, and a success that cannot be read: in both a sandbox may be there.
    let faults: [fn() -> Reply; 2] =
        [|| failure(504, "http_504"), || Reply::Json(202, json!({"ok": true, "type": "sandbox.created"}))];
    for fault in faults {
        let service = Service::start(move |request, before| match (request.call.as_str(), before) {
            ("POST /sandboxes", 0) => fault(),
            _ => willing(request, before),
        });
        let client = service.client();
        client.scoped(Create::new(), |_| async { Ok(()) }).await.unwrap_err();
        client.close().await;
        assert_eq!(service.calls(), ["POST /sandboxes", "POST /sandboxes", "DELETE /sandboxes/bx_1"]);
        let requests = service.requests();
        assert_eq!(requests[0].header("idempotency-key"), requests[1].header("idempotency-key"));
    }
    // Here the service says that it made nothing.
    let service = Service::start(|_, _| failure(503, "no_ready_machine"));
    let client = service.client();
    client.scoped(Create::new().fail_fast(), |_| async { Ok(()) }).await.unwrap_err();
    client.close().await;
    assert_eq!(service.calls(), ["POST /sandboxes"]);
}

#[tokio::test]
async fn a_total_limit_covers_the_create_and_its_wait_together() {
    let service = Service::start(|request, before| match (request.call.as_str(), before) {
        ("POST /sandboxes", 0) => failure(409, "idempotency_in_progress"),
        ("POST /sandboxes", _) => created("provisioning"),
        _ => Reply::Hang,
    });
    let clock = ManualClock::new();
    let client = service.client_on(clock.shared()).with(CallOptions::new().total(Duration::from_secs(20)));
    let creating = tokio::spawn(async move { client.create(Create::new()).await });
    service.arrived(1).await;
    let mut repeat = Duration::ZERO;
    while repeat.is_zero() {
        // The back-off is the only sleep below the total limit.
        repeat = clock.next_due().filter(|due| *due <= Duration::from_secs(8)).unwrap_or_default();
        tokio::task::yield_now().await;
    }
    clock.advance(repeat);
    service.arrived(3).await;
    clock.wait_for_sleep_of(Duration::from_secs(20) - repeat).await;
    clock.advance(Duration::from_secs(20) - repeat);
    let error = creating.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.sandbox_id()), (ErrorKind::WaitTimeout, Some("bx_1")));
}
