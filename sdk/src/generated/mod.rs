//! What is generated from the API document: the engine, the models, the operation table and the low-level client's
//! methods. Everything below but this file is written by `cargo run -p sandboxer-codegen`.

#[rustfmt::skip]
mod api;
#[rustfmt::skip]
pub mod dialects;
#[allow(clippy::all, dead_code, missing_docs, rust_2018_idioms, unreachable_pub, reason = "written by another generator")]
#[rustfmt::skip]
pub(crate) mod engine;
#[rustfmt::skip]
pub mod models;
#[rustfmt::skip]
pub mod operations;

#[cfg(test)]
mod tests {
    use super::dialects::Dialect;
    use super::operations::{ERROR_CODES, Media, Operation, REPEAT_RULES, Repeat};
    use std::collections::BTreeSet;

    #[test]
    fn every_operation_is_found_by_its_methods_name() {
        let names: BTreeSet<_> = Operation::ALL.iter().map(|operation| operation.name()).collect();
        let ids: BTreeSet<_> = Operation::ALL.iter().map(|operation| operation.id()).collect();
        assert_eq!((names.len(), ids.len()), (Operation::ALL.len(), Operation::ALL.len()));
        for operation in Operation::ALL {
            assert_eq!(Operation::from_engine_name(operation.name()), Some(*operation));
        }
        assert_eq!(Operation::from_engine_name("deleteSandbox"), None);
    }

    #[test]
    fn rows_say_what_the_document_says() {
        let create = Operation::Create.info();
        assert_eq!((create.method, create.path, create.success), ("POST", "/sandboxes", 202));
        assert_eq!((create.repeat, create.key_action), (Repeat::Keyed, Some("sandbox.create")));
        assert!(create.idempotency_key && !Operation::Update.info().idempotency_key);
        let stream = Operation::CommandStream.info();
        assert_eq!((stream.path, stream.media), (Operation::Command.info().path, Media::Ndjson));
        assert_eq!(Operation::Artifact.info().media, Media::Bytes);
        let events = Operation::EventsStream.info();
        assert_eq!((events.path, events.media), (Operation::Events.info().path, Media::Sse));
        assert!(Operation::ALL.iter().all(|o| (o.repeat() == Repeat::Keyed) == o.info().idempotency_key));
    }

    #[test]
    fn every_operation_is_counted() {
        let faces = [Operation::CommandStream, Operation::EventsStream];
        let of = |dialect: Dialect| {
            let all = Operation::ALL.iter().filter(|operation| dialect.has(**operation));
            all.filter(|operation| !faces.contains(operation)).count()
        };
        assert_eq!((of(Dialect::Sandboxer), of(Dialect::Boat)), (93, 93 - 10 + 11));
        let sockets = Operation::ALL.iter().filter(|operation| operation.info().media == Media::WebSocket);
        assert_eq!(sockets.count(), 2);
        let methods = include_str!("api.rs").matches("pub async fn ").count();
        assert_eq!(methods, Operation::ALL.len() - 2, "no WebSocket has a method");
        assert_eq!(methods, 91 + faces.len() + 11);
    }

    #[test]
    fn every_code_is_described() {
        let known: BTreeSet<_> = ERROR_CODES.iter().map(|code| code.code).collect();
        let used = Operation::ALL.iter().flat_map(|operation| operation.info().errors);
        let ruled = REPEAT_RULES.iter().flat_map(|rule| rule.when.codes);
        for code in used.chain(ruled) {
            assert!(known.contains(code), "{code}");
        }
    }
}
