//! Removals whose first try did the work and whose answer was lost.

use super::service::{Reply, Service, failure};
use crate::{AsyncSandboxer, CallOptions, Delivery, ErrorKind, Result};

/// Every removal that answers nothing, but for that of a port.
async fn removals(client: &AsyncSandboxer) -> [Result<()>; 4] {
    [
        client.webhook_endpoints().delete("wh_1").await,
        client.environments().delete("env_1").await,
        client.telemetry().delete().await,
        client.named_snapshots().delete("demo").await,
    ]
}

/// A service that answers each call's first try with `first` and finds nothing afterwards.
fn service(first: fn() -> Reply) -> (Service, AsyncSandboxer) {
    let service =
        Service::start(move |_, before| if before == 0 { first() } else { failure(404, "not_found") });
    let client = service.client().with(CallOptions::new().retries(1));
    (service, client)
}

#[tokio::test]
async fn what_an_earlier_try_may_have_removed_is_removed() {
    let in_doubt: [fn() -> Reply; 2] = [|| Reply::Drop, || failure(502, "http_502")];
    for first in in_doubt {
        let (service, client) = service(first);
        for (number, removal) in removals(&client).await.into_iter().enumerate() {
            assert!(removal.is_ok(), "{number}: {removal:?}");
        }
        assert_eq!(service.calls().len(), 8);
    }
}

#[tokio::test]
async fn what_no_try_can_have_removed_was_not_there() {
    let refusals: [(fn() -> Reply, usize); 3] = [
        (|| failure(404, "not_found"), 1),
        (|| failure(429, "rate_limited"), 2),
        (|| failure(503, "out_of_capacity"), 2),
    ];
    for (first, tries) in refusals {
        let (service, client) = service(first);
        for (number, removal) in removals(&client).await.into_iter().enumerate() {
            let error = removal.expect_err("nothing was there");
            assert_eq!(
                (error.kind(), error.delivery()),
                (ErrorKind::NotFound, Delivery::Answered),
                "{number}"
            );
            assert_eq!(error.attempts() as usize, tries, "{number}");
        }
        assert_eq!(service.calls().len(), 4 * tries);
    }
}

#[tokio::test]
async fn a_port_of_a_sandbox_that_is_not_there_has_no_route_to_take_away() {
    let (_service, client) = service(|| Reply::Drop);
    let error = client.sandbox("bx_1").unhost(3000).await.unwrap_err();
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::NotFound, Delivery::Unknown));
    let (_service, client) = service(|| failure(404, "not_found"));
    assert!(client.sandbox("bx_1").delete().await.unwrap().is_none(), "a sandbox that is gone is gone");
}

#[tokio::test]
async fn a_removal_that_answers_something_tells_the_doubt() {
    for (first, expected) in [
        ((|| Reply::Drop) as fn() -> Reply, Delivery::Unknown),
        (|| failure(404, "not_found"), Delivery::Answered),
    ] {
        let (_service, client) = service(first);
        let environments = client.environments();
        for error in [
            client.snapshot("snap_1").delete().await.unwrap_err(),
            environments.delete_var("env_1", "A").await.unwrap_err(),
            environments.delete_secret_file("env_1", "a.pem").await.unwrap_err(),
            environments.delete_repo("env_1", "1").await.unwrap_err(),
        ] {
            assert_eq!((error.kind(), error.delivery()), (ErrorKind::NotFound, expected), "{error:?}");
        }
    }
}
