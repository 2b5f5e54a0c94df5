//! Verifying and signing deliveries.

use std::{num::NonZeroUsize, time::SystemTime};

use http::HeaderMap;
use sandboxer::{
    clock::{Clock as _, ManualClock},
    webhooks::{MemoryReplayGuard, SignatureHeaders, Verified, Verifier, WebhookError},
};

use super::secs;
use crate::builder_goldens_support::book::{Book, Says, call, plain, refused};

/// The headers that a signer makes.
fn made(headers: Result<HeaderMap, WebhookError>) -> Says {
    let lines = headers.unwrap();
    let lines = lines.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
    Says(lines.collect::<Vec<_>>().join("; "))
}

/// What a verifier says of two deliveries that are the same.
fn twice(verifier: Result<Verifier, WebhookError>, headers: &HeaderMap, at: SystemTime) -> Says {
    let verifier = verifier.unwrap();
    let Says(first) = said(verifier.verify_at(headers, b"{}", at));
    let Says(second) = said(verifier.verify_at(headers, b"{}", at));
    Says(format!("{first}; then {second}"))
}

fn said(result: Result<Verified, WebhookError>) -> Says {
    Says(match result {
        Ok(verified) => format!("accepted, by secret {}", verified.secret),
        Err(error) => error.to_string(),
    })
}

#[tokio::test]
async fn deliveries() {
    let mut book = Book::open("deliveries").await;
    let verifier = Verifier::new("whsec_1").unwrap();
    let now = ManualClock::new().now();
    let late = now + secs(301);

    book.section("Signing");
    plain!(book, made(verifier.sign(now, b"{}")));
    call!(book, made(verifier.sign(late, b"{}")));
    call!(book, made(verifier.sign(now, b"{ }")));
    call!(book, made(verifier.sign_delivery("evt_1", now, b"{}")));
    call!(book, made(verifier.sign_delivery("", now, b"{}")));
    call!(book, made(verifier.sign_boat("evt_1", now, b"{}")));
    refused!(book, verifier.sign(SystemTime::UNIX_EPOCH - secs(1), b"{}"));
    refused!(book, verifier.sign_delivery("evt\n1", now, b"{}"));
    refused!(book, verifier.sign_boat("evt.1", now, b"{}"));

    book.section("Verifier");
    let headers = verifier.sign(now, b"{}").unwrap();
    let other = Verifier::new("whsec_2").unwrap().sign(now, b"{}").unwrap();
    let (soon, clock) = (ManualClock::starting_at(now), ManualClock::starting_at(late));
    plain!(book, twice(Verifier::new("whsec_1"), &headers, late));
    call!(book, twice(Verifier::new("whsec_1").map(|made| made.tolerance(secs(301))), &headers, late));
    call!(book, twice(Verifier::new("whsec_1").map(|made| made.no_tolerance()), &headers, late));
    plain!(book, twice(Verifier::new("whsec_1"), &other, now));
    call!(book, twice(Verifier::any_of(["whsec_1", "whsec_2"]), &other, now));
    call!(book, twice(Verifier::new("whsec_1").unwrap().also_accept("whsec_2"), &other, now));
    plain!(book, twice(Verifier::new("whsec_1"), &headers, now));
    call!(
        book,
        twice(
            Ok(Verifier::new("whsec_1").unwrap().replay_guard(MemoryReplayGuard::new(NonZeroUsize::MIN))),
            &headers,
            now
        )
    );
    plain!(book, said(Verifier::new("whsec_1").unwrap().clock(soon.shared()).verify(&headers, b"{}")));
    call!(book, said(Verifier::new("whsec_1").unwrap().clock(clock.shared()).verify(&headers, b"{}")));

    plain!(book, said(verifier.verify_at(&headers, b"{}", now)));
    call!(book, said(verifier.verify_at(&headers, b"{}", late)));

    book.section("Verifier: refusals");
    let body = br#"{"id":"evt_1","type":"sandbox.ready","created":"2026-01-01T00:00:00.000Z","data":{}}"#;
    refused!(book, Verifier::new(""));
    refused!(book, Verifier::any_of(Vec::<String>::new()));
    refused!(book, verifier.clone().also_accept(""));
    refused!(book, verifier.verify_at(&HeaderMap::new(), b"{}", now));
    refused!(book, verifier.verify_at(&headers, b"{ }", now));
    refused!(book, verifier.verify_at(&headers, b"{}", now - secs(301)));
    refused!(
        book,
        verifier.verify_at(SignatureHeaders::from_pairs([("Sandboxer-Signature", "")]), b"{}", now)
    );
    refused!(
        book,
        verifier.verify_at(SignatureHeaders::from_pairs([("Sandboxer-Signature", "t=1")]), b"{}", now)
    );
    refused!(
        book,
        verifier.verify_at(SignatureHeaders::from_pairs([("Sandboxer-Signature", "t=x,v1=00")]), b"{}", now)
    );
    refused!(book, verifier.parse_at(&headers, b"{}", now));
    refused!(book, verifier.parse_at(&other, body, now));
    book.close();
}
