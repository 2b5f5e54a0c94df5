use super::{
    KEY, builder, get,
    peer::{Peer, Step, answer, ok},
    post,
};
use crate::CallOptions;
use std::{
    fmt::Debug,
    sync::{Arc, Mutex},
};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

/// Writes down everything that is traced, at every level.
#[derive(Clone, Default)]
struct Everything(Arc<Mutex<String>>);

impl Visit for Everything {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.lock().unwrap().push_str(&format!("{}={value:?} ", field.name()));
    }
}

impl Subscriber for Everything {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.0.lock().unwrap().push_str(span.metadata().name());
        span.record(&mut self.clone());
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut self.clone());
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn the_key_is_in_nothing_that_is_printed() {
    let everything = Everything::default();
    // For the whole process: a subscriber of one thread may miss what another thread has met first.
    tracing::subscriber::set_global_default(everything.clone()).unwrap();
    let echo = format!(r#"{{"code":"odd","message":"you sent {KEY}","details":{{"k":"{KEY}"}}}}"#);
    let mut printed = String::new();
    for step in
        [Step::Drop, ok("{}"), answer(409, &[], &echo), answer(200, &[], &echo), answer(200, &[], KEY)]
    {
        let peer = Peer::start(vec![step]);
        let client =
            builder(&peer.url).retries(1).default_header("x-gateway", "gateway_hush").build().unwrap();
        let view = client.with(CallOptions::new().header("x-token", "token_hush"));
        for result in [get(&view).await, post(&view).await] {
            if let Err(error) = result {
                printed.push_str(&format!("{error} {error:?} {:?} {error:#?}", error.details()));
                let mut source = std::error::Error::source(&error);
                while let Some(cause) = source {
                    printed.push_str(&format!("{cause} {cause:?}"));
                    source = cause.source();
                }
            }
        }
        let typed = view.api().get("bx_1").await;
        printed.push_str(&format!("{typed:?} {view:?} {client:?} {:?}", view.api()));
    }
    let traced = everything.0.lock().unwrap().clone();
    assert!(traced.contains("sandboxer") && traced.contains("attempt="), "{traced}");
    for text in [&printed, &traced] {
        for secret in [KEY, "gateway_hush", "token_hush"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}
