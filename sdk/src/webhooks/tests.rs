use super::*;
use crate::clock::{Clock as _, ManualClock};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

const BODY: &[u8] =
    br#"{"id":"evt_1","type":"sandbox.ready","data":{"sandbox":{"id":"bx_23456789","name":"demo"}}}"#;
const SECOND: Duration = Duration::from_secs(1);

fn at() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600)
}

fn verifier() -> Verifier {
    Verifier::new("whsec_one").unwrap()
}

fn signature(headers: &http::HeaderMap) -> String {
    headers["sandboxer-signature"].to_str().unwrap().to_owned()
}

fn refusal(value: &str) -> WebhookError {
    verifier().verify_at([("Sandboxer-Signature", value)], BODY, at()).unwrap_err()
}

/// RFC 4231, case 2, with the prefix taken as a part of the text.
#[test]
fn the_signature_is_the_standards() {
    let keys = super::keys::Keys::new(["Jefe".into()].into_iter()).unwrap();
    let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    assert_eq!(keys.matching("what do ya ", b"want for nothing?", [expected].into_iter()), Some(0));
    assert_eq!(keys.matching("what do ya ", b"want for nothing!", [expected].into_iter()), None);
}

#[test]
fn every_scheme_verifies_what_it_signed_and_nothing_else() {
    let verifier = verifier();
    for (scheme, headers) in [
        (Scheme::Signature, verifier.sign(at(), BODY).unwrap()),
        (Scheme::Delivery, verifier.sign_delivery("evt_1", at(), BODY).unwrap()),
        (Scheme::Boat, verifier.sign_boat("evt_1", at(), BODY).unwrap()),
    ] {
        let verified = verifier.verify_at(&headers, BODY, at()).unwrap();
        assert_eq!((verified.scheme, verified.signed_at, verified.secret), (scheme, at(), 0));
        assert_eq!(verified.delivery.as_deref(), (scheme != Scheme::Signature).then_some("evt_1"));
        let mut changed = BODY.to_vec();
        for flipped in 0..changed.len() {
            changed[flipped] ^= 1;
            let error = verifier.verify_at(&headers, &changed, at()).unwrap_err();
            assert_eq!(error, WebhookError::NoMatchingSignature, "{scheme:?} byte {flipped}");
            changed[flipped] ^= 1;
        }
        let other = Verifier::new("whsec_onf").unwrap();
        assert_eq!(other.verify_at(&headers, BODY, at()), Err(WebhookError::NoMatchingSignature));
    }
}

#[test]
fn every_part_that_is_signed_counts() {
    let verifier = verifier();
    let headers = verifier.sign_delivery("evt_1", at(), BODY).unwrap();
    for (name, value) in [("x-sandboxer-delivery", "evt_2"), ("x-sandboxer-timestamp", "1767225601")] {
        let mut changed = headers.clone();
        changed.insert(name, value.parse().unwrap());
        assert_eq!(verifier.verify_at(&changed, BODY, at()), Err(WebhookError::NoMatchingSignature));
    }
    let later = signature(&verifier.sign(at(), BODY).unwrap()).replace("t=1767225600", "t=1767225601");
    assert_eq!(refusal(&later), WebhookError::NoMatchingSignature);
}

#[test]
fn the_tolerance_holds_to_the_nanosecond_both_ways() {
    let verifier = verifier();
    let headers = verifier.sign(at(), BODY).unwrap();
    let (edge, nano) = (Duration::from_secs(300), Duration::from_nanos(1));
    for now in [at() - edge, at(), at() + edge] {
        assert!(verifier.verify_at(&headers, BODY, now).is_ok());
    }
    let old = verifier.verify_at(&headers, BODY, at() + edge + nano);
    assert_eq!(old, Err(WebhookError::TooOld { age: edge + nano }));
    let new = verifier.verify_at(&headers, BODY, at() - edge - nano);
    assert_eq!(new, Err(WebhookError::TooNew { ahead: edge + nano }));
    let exact = verifier.clone().tolerance(Duration::ZERO);
    assert!(exact.verify_at(&headers, BODY, at()).is_ok());
    assert!(exact.verify_at(&headers, BODY, at() + nano).is_err());
    let any = verifier.no_tolerance();
    let verified = any.verify_at(&headers, BODY, SystemTime::UNIX_EPOCH - SECOND).unwrap();
    assert_eq!(verified.expires, None);
    let widest = any.tolerance(Duration::MAX).verify_at(&headers, BODY, SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(widest.expires, None, "further than the clock reaches");
}

#[test]
fn the_clock_is_the_one_that_was_given() {
    let clock = ManualClock::new();
    let verifier = verifier().clock(clock.shared());
    let headers = verifier.sign(clock.now(), BODY).unwrap();
    clock.advance(300 * SECOND);
    assert_eq!(verifier.parse(&headers, BODY).unwrap().id, "evt_1");
    clock.advance(SECOND);
    assert_eq!(verifier.parse(&headers, BODY), Err(WebhookError::TooOld { age: 301 * SECOND }));
}

#[test]
fn a_header_that_cannot_be_read_says_why() {
    let good = signature(&verifier().sign(at(), BODY).unwrap());
    let bad = |problem| WebhookError::BadHeader { name: "Sandboxer-Signature", problem };
    let v1 = good.split_once(',').unwrap().1;
    for (value, expected) in [
        (v1.to_owned(), bad("it has no `t=` part")),
        ("t=1767225600".into(), bad("it has no `v1=` part")),
        (good.replace("v1=", "v2="), bad("it has no `v1=` part")),
        (format!("t=1767225600,{good}"), WebhookError::DuplicateHeader("Sandboxer-Signature")),
        (format!("t=99999999999999999999,{v1}"), bad("the timestamp is too far away")),
        (format!("t={},{v1}", u64::MAX), bad("the timestamp is too far away")),
        (format!("t=9223372036854775807,{v1}"), WebhookError::NoMatchingSignature),
        ("garbage".into(), bad("it has no `t=` part")),
    ] {
        let found = refusal(&value);
        // How far a machine's clock reaches differs.
        if value.starts_with("t=9223372036854775807") {
            assert!(found == expected || found == bad("the timestamp is too far away"), "{found:?}");
        } else {
            assert_eq!(found, expected, "{value}");
        }
    }
    for text in ["", "NaN", "-1", "+1767225600", "1_767_225_600", "1767225600.0", "1e9", "inf", "١٢٣", "0x10"]
    {
        let expected = bad("the timestamp is not a number of whole seconds");
        assert_eq!(refusal(&format!("t={text},{v1}")), expected, "{text}");
    }
    let binary = SignatureHeaders::from_pairs([("Sandboxer-Signature", [0xff, 0xfe])]);
    assert_eq!(verifier().verify_at(binary, BODY, at()), Err(bad("it is not text")));
}

#[test]
fn only_a_whole_signature_matches() {
    let good = signature(&verifier().sign(at(), BODY).unwrap());
    let (head, hex) = good.split_once("v1=").unwrap();
    for length in 0..hex.len() {
        let partial = format!("{head}v1={}", &hex[..length]);
        assert_eq!(refusal(&partial), WebhookError::NoMatchingSignature, "{length} digits");
    }
    let (first, last) = (&hex[..32], &hex[32..]);
    for odd in [
        format!("{hex}0"),
        format!("{hex}{hex}"),
        format!("g{}", &hex[1..]),
        format!("{last}{first}"),
        "é".repeat(32),
    ] {
        assert_eq!(refusal(&format!("{head}v1={odd}")), WebhookError::NoMatchingSignature, "{odd}");
    }
    let split = format!("{head}v1={first},v1={last}");
    assert_eq!(refusal(&split), WebhookError::NoMatchingSignature);
}

#[test]
fn odd_but_readable_headers_are_read() {
    let verifier = verifier();
    let good = signature(&verifier.sign(at(), BODY).unwrap());
    let (_, hex) = good.split_once("v1=").unwrap();
    for value in [
        format!(" t=1767225600 , v1={hex} "),
        format!("v1={hex},t=1767225600"),
        format!("t=1767225600,v0=ff,nonsense,,v1=,v1={hex},v2=00"),
        format!("t=1767225600,v1={}", hex.to_uppercase()),
        format!("t=1767225600,v1={hex},v1={hex}"),
        format!("t=01767225600,v1={hex}"),
    ] {
        assert!(verifier.verify_at([("sAnDbOxEr-SiGnAtUrE", &value)], BODY, at()).is_ok(), "{value}");
    }
}

#[test]
fn a_better_scheme_that_fails_is_not_passed_over() {
    let verifier = verifier();
    let mut headers = verifier.sign_boat("evt_1", at(), BODY).unwrap();
    headers.extend(verifier.sign_delivery("evt_2", at(), BODY).unwrap());
    assert_eq!(verifier.verify_at(&headers, BODY, at()).unwrap().delivery.as_deref(), Some("evt_2"));
    headers.insert("x-sandboxer-signature", "v1=00".parse().unwrap());
    assert_eq!(verifier.verify_at(&headers, BODY, at()), Err(WebhookError::NoMatchingSignature));
    headers.extend(verifier.sign(at(), BODY).unwrap());
    assert_eq!(verifier.verify_at(&headers, BODY, at()).unwrap().scheme, Scheme::Signature);
    headers.insert("sandboxer-signature", "".parse().unwrap());
    assert_eq!(verifier.verify_at(&headers, BODY, at()), Err(WebhookError::NoMatchingSignature));
}

#[test]
fn parts_of_a_set_are_asked_for() {
    let verifier = verifier();
    let missing = |name| Err(WebhookError::MissingHeader(name));
    for (headers, [delivery, timestamp, signature]) in [
        (
            verifier.sign_delivery("evt_1", at(), BODY).unwrap(),
            ["X-Sandboxer-Delivery", "X-Sandboxer-Timestamp", "X-Sandboxer-Signature"],
        ),
        (
            verifier.sign_boat("evt_1", at(), BODY).unwrap(),
            ["X-Ascii-Delivery", "X-Ascii-Timestamp", "X-Ascii-Signature"],
        ),
    ] {
        let without = |name: &str| {
            let mut headers = headers.clone();
            headers.remove(name);
            verifier.verify_at(&headers, BODY, at())
        };
        assert_eq!(without(timestamp), missing(timestamp));
        assert_eq!(without(signature), missing(signature));
        assert_eq!(without(delivery), Err(WebhookError::NoMatchingSignature));
    }
    let unnamed = verifier.sign_delivery("", at(), BODY).unwrap();
    assert!(!unnamed.contains_key("x-sandboxer-delivery"));
    assert_eq!(verifier.verify_at(&unnamed, BODY, at()).unwrap().delivery, None);
    // Two halves are no whole.
    let mut mixed = verifier.sign_delivery("evt_1", at(), BODY).unwrap();
    mixed.remove("x-sandboxer-timestamp");
    mixed.insert("x-ascii-timestamp", "1767225600".parse().unwrap());
    assert_eq!(verifier.verify_at(&mixed, BODY, at()), missing("X-Sandboxer-Timestamp"));
}

#[test]
fn a_signed_text_can_be_cut_up_in_one_way_only() {
    let verifier = verifier();
    let body = br#"{"name":"x.1999999999.y"}"#;
    let headers = verifier.sign_delivery("evt_1", at(), body).unwrap();
    let signature = headers["x-sandboxer-signature"].to_str().unwrap();
    let moved = [
        ("X-Sandboxer-Delivery", r#"evt_1.1767225600.{"name":"x"#),
        ("X-Sandboxer-Timestamp", "1999999999"),
        ("X-Sandboxer-Signature", signature),
    ];
    let error = verifier.no_tolerance().verify_at(moved, br#"y"}"#, at()).unwrap_err();
    assert!(matches!(error, WebhookError::BadHeader { name: "X-Sandboxer-Delivery", .. }), "{error:?}");
}

#[test]
fn any_secret_and_any_signature_will_do() {
    let both = Verifier::new("whsec_new").unwrap().also_accept("whsec_old").unwrap();
    let [new, old, neither] =
        ["whsec_new", "whsec_old", "whsec_x"].map(|secret| Verifier::new(secret).unwrap());
    for (signer, secret) in [(&new, Some(0)), (&old, Some(1)), (&neither, None), (&both, Some(0))] {
        let verified = both.verify_at(&signer.sign(at(), BODY).unwrap(), BODY, at());
        assert_eq!(verified.ok().map(|verified| verified.secret), secret);
    }
    let signed = both.sign_boat("evt_1", at(), BODY).unwrap();
    assert!(new.verify_at(&signed, BODY, at()).is_ok() && old.verify_at(&signed, BODY, at()).is_ok());
    assert!(neither.verify_at(&signed, BODY, at()).is_err());
}

#[test]
fn an_empty_secret_is_refused_everywhere() {
    for refused in [
        Verifier::new("").err(),
        Verifier::any_of(Vec::<String>::new()).err(),
        Verifier::any_of(["whsec_one", ""]).err(),
        verifier().also_accept("").err(),
    ] {
        assert_eq!(refused, Some(WebhookError::NoSecret));
    }
}

#[test]
fn nothing_secret_is_printed() {
    let error =
        verifier().verify_at([("Sandboxer-Signature", "t=1,v1=c0ffee")], b"p4yload", at()).unwrap_err();
    let printed = format!("{:?} {error:?} {error}", verifier());
    for secret in ["whsec", "c0ffee", "p4yload"] {
        assert!(!printed.contains(secret), "{printed}");
    }
}

#[test]
fn a_delivery_is_taken_once_and_the_next_try_is_another() {
    let guard = Arc::new(MemoryReplayGuard::default());
    let verifier = verifier().replay_guard(guard.clone());
    let first = verifier.sign(at(), BODY).unwrap();
    assert!(verifier.verify_at(&first, BODY, at()).is_ok());
    let replayed = Err(WebhookError::Replayed);
    assert_eq!(verifier.clone().verify_at(&first, BODY, at()), replayed);
    // The same second in the other scheme is no way round.
    assert_eq!(
        verifier.verify_at(&verifier.sign_delivery("evt_1", at(), BODY).unwrap(), BODY, at()),
        replayed
    );
    assert!(verifier.verify_at(&verifier.sign(at() + SECOND, BODY).unwrap(), BODY, at()).is_ok());
    // What is refused for another reason is not remembered.
    let early = verifier.sign(at() + 400 * SECOND, BODY).unwrap();
    assert!(matches!(verifier.verify_at(&early, BODY, at()), Err(WebhookError::TooNew { .. })));
    assert!(verifier.verify_at(&early, BODY, at() + 400 * SECOND).is_ok());
}

#[test]
fn of_many_threads_one_is_first() {
    let guard = MemoryReplayGuard::default();
    let firsts = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| guard.first_time("a", None))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).filter(|first| *first).count()
    });
    assert_eq!(firsts, 1);
}

#[test]
fn a_full_guard_forgets_what_expires_first() {
    let guard = MemoryReplayGuard::new(2.try_into().unwrap());
    assert!(guard.first_time("never", None));
    assert!(guard.first_time("late", Some(at() + SECOND)));
    assert!(guard.first_time("later", Some(at() + 2 * SECOND)));
    assert!(!guard.first_time("never", None) && !guard.first_time("later", None));
    assert!(guard.first_time("late", Some(at() + SECOND)));
    assert!(guard.first_time("later", Some(at() + 2 * SECOND)), "the one forgotten for `late`");
}

fn read(text: &str) -> Result<WebhookEvent, WebhookError> {
    let verifier = verifier();
    verifier.parse_at(&verifier.sign(at(), text.as_bytes()).unwrap(), text.as_bytes(), at())
}

#[test]
fn events_are_read_whole_and_written_back() {
    let text = r#"{"id":"evt_1","type":"sandbox.degraded","createdAt":"2026-01-01T00:00:00Z","data":{"sandbox":{"id":"bx_1","name":"n","kind":"small"},"state":"running","reason":"network","since":[1]},"attempt":3}"#;
    let event = read(text).unwrap();
    assert_eq!(event.created_at.to_system_time(), Some(at()));
    assert_eq!(event.data.reason.as_deref(), Some("network"));
    assert_eq!(event.data.state, Some(crate::models::SandboxState::Running));
    assert_eq!(event.data.sandbox.unknown_fields["kind"], "small");
    assert_eq!(event.unknown_fields["attempt"], 3);
    assert_eq!(
        serde_json::to_value(&event).unwrap(),
        serde_json::from_str::<serde_json::Value>(text).unwrap()
    );
}

#[test]
fn odd_events_are_read_as_far_as_they_go() {
    let event = read(r#"{"id":"evt_1","type":"account.low","data":null}"#).unwrap();
    assert_eq!(
        (event.kind, event.data),
        (WebhookEventType::Unknown("account.low".into()), WebhookEventData::default())
    );
    let event = read(r#"{"id":"evt_1","type":"sandbox.recovered","createdAt":5,"data":{"sandbox":{"id":"bx_1","name":7},"reason":null,"state":"novel"}}"#).unwrap();
    assert_eq!(
        (event.created_at.as_str(), event.data.sandbox.name.as_str(), event.data.reason),
        ("", "", None)
    );
    assert_eq!(event.data.state, Some("novel".into()));
}

#[test]
fn what_is_no_event_is_refused() {
    for text in [
        "",
        "{",
        "[]",
        "null",
        "\u{feff}{}",
        r#"{"type":"sandbox.ready","data":{"sandbox":{"id":"bx_1"}}}"#,
        r#"{"id":"","type":"sandbox.ready","data":{"sandbox":{"id":"bx_1"}}}"#,
        r#"{"id":"evt_1","data":{"sandbox":{"id":"bx_1"}}}"#,
        r#"{"id":"evt_1","type":"sandbox.ready","data":{"sandbox":"bx_1"}}"#,
        r#"{"id":"evt_1","type":"sandbox.ready"}"#,
    ] {
        assert!(matches!(read(text), Err(WebhookError::BadPayload { .. })), "{text}");
    }
}

#[test]
fn what_cannot_be_signed_is_refused() {
    let before = SystemTime::UNIX_EPOCH - Duration::from_nanos(1);
    assert!(matches!(verifier().sign(before, BODY), Err(WebhookError::BadHeader { .. })));
    for delivery in ["a.b", "a b", "a\r\nX: y", "é"] {
        let error = verifier().sign_delivery(delivery, at(), BODY).unwrap_err();
        assert!(
            matches!(error, WebhookError::BadHeader { name: "X-Sandboxer-Delivery", .. }),
            "{delivery:?}"
        );
    }
}
