//! Deliveries whose signature is good.

use std::time::SystemTime;

use sandboxer::webhooks::{Verifier, WebhookError, WebhookEventType};

use crate::{corpus, wire::check_values};

#[test]
fn deliveries_are_read_as_the_corpus_says() {
    let verifier = Verifier::new("whsec_of_the_suite").unwrap().no_tolerance();
    for case in corpus::named("webhook").cases() {
        let body = case.bodies(false).remove(0);
        let headers = verifier.sign(SystemTime::UNIX_EPOCH, &body).unwrap();
        match (verifier.parse(&headers, &body), &case.fails) {
            (Ok(event), None) => {
                let value = serde_json::to_value(&event).unwrap();
                check_values(&case.what, case.reads.as_ref().unwrap(), &value);
                assert_eq!(event.kind.is_known(), WebhookEventType::KNOWN.contains(&event.kind.as_str()));
            }
            (Err(WebhookError::BadPayload { problem }), Some(fails)) => {
                let says = fails.says.as_deref().unwrap();
                assert!(problem.contains(says), "{}: {problem}", case.what);
            }
            (result, _) => panic!("{}: {result:?}", case.what),
        }
    }
}
