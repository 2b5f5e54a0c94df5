//! Removals whose first try did the work and whose answer was lost.

use super::service::{Reply, Service, failure};
use crate::{CallOptions, ErrorKind};

#[tokio::test]
async fn what_a_lost_answer_was_about_is_removed() {
    for lost in [0, 1] {
        let service = Service::start(move |_, before| match before < lost {
            true => Reply::Drop,
            false => failure(404, "not_found"),
        });
        let client = service.client().with(CallOptions::new().retries(1));
        let removals = [
            client.webhook_endpoints().delete("wh_1").await,
            client.environments().delete("env_1").await,
            client.telemetry().delete().await,
            client.named_snapshots().delete("demo").await,
            client.sandbox("bx_1").unhost(3000).await,
            client.sandbox("bx_1").delete().await.map(drop),
        ];
        for (number, removal) in removals.into_iter().enumerate() {
            match removal {
                Ok(()) => assert!(lost == 1 || number == 5, "{number}: nothing was there to begin with"),
                Err(error) => assert_eq!((lost, error.kind()), (0, ErrorKind::NotFound), "{number}"),
            }
        }
    }
}
