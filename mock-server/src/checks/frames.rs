//! Streams: each line, or each event, as it goes by.

use async_stream::stream;
use axum::body::{Body, BodyDataStream};
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::Value;

use super::{Differences, document::Document, seen, shortened};

/// The status of a stream, whatever ends it.
const OK: u16 = 200;

/// How a stream is cut into frames.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A frame a line.
    Lines,
    /// Server-sent events.
    Events,
}

/// The same body, which is checked while it is read.
pub(crate) fn watch(
    differences: Differences,
    operation: String,
    call: String,
    schema: Value,
    kind: Kind,
    body: Body,
) -> Body {
    let mut data: BodyDataStream = body.into_data_stream();
    Body::from_stream(stream! {
        let mut frames = Frames::new(kind);
        while let Some(piece) = data.next().await {
            if let Ok(bytes) = &piece {
                check(&differences, &operation, &call, &schema, frames.feed(bytes));
            }
            yield piece;
        }
        if !frames.rest.is_empty() {
            differences.add(format!("{call}: the stream ends within a frame: {:?}", frames.text()));
        }
    })
}

/// A frame that is whole: what kind of event it is, if that is said, and its data.
#[derive(Debug, PartialEq)]
struct Frame {
    event: Option<String>,
    data: String,
}

fn check(differences: &Differences, operation: &str, call: &str, schema: &Value, frames: Vec<Frame>) {
    let document = Document::shared();
    for Frame { event, data } in frames {
        let value = match serde_json::from_str::<Value>(&data) {
            Ok(value) => value,
            Err(error) => {
                differences.add(format!("{call}: the frame {data:?} is no JSON: {error}"));
                continue;
            }
        };
        match event.as_deref() {
            None => {
                for problem in document.problems(schema, &value) {
                    differences.add(format!("{call}: {problem} in the frame {}", shortened(&value)));
                }
                if value["type"] == "error" {
                    seen::note(operation, OK, value["error"].as_str());
                }
            }
            // What ends a stream before its time has the fields of any failure that a program looks at.
            Some("error") => {
                let code = value["code"].as_str();
                seen::note(operation, OK, code);
                if !code.is_some_and(|code| document.knows(code)) || !value["message"].is_string() {
                    differences.add(format!("{call}: a failure without its code: {value}"));
                }
            }
            Some(other) => differences.add(format!("{call}: events called {other:?} are not documented")),
        }
    }
}

/// Puts frames together from pieces.
struct Frames {
    kind: Kind,
    rest: Vec<u8>,
}

impl Frames {
    fn new(kind: Kind) -> Self {
        Self { kind, rest: Vec::new() }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.rest).into_owned()
    }

    /// The frames that this piece ends.
    fn feed(&mut self, piece: &Bytes) -> Vec<Frame> {
        self.rest.extend_from_slice(piece);
        let end: &[u8] = match self.kind {
            Kind::Lines => b"\n",
            Kind::Events => b"\n\n",
        };
        let mut frames = Vec::new();
        let mut from = 0;
        while let Some(length) = memchr::memmem::find(&self.rest[from..], end) {
            let text = String::from_utf8_lossy(&self.rest[from..from + length]).into_owned();
            from += length + end.len();
            match self.kind {
                Kind::Lines => frames.push(Frame { event: None, data: text }),
                Kind::Events => frames.extend(event_of(&text)),
            }
        }
        self.rest.drain(..from);
        frames
    }
}

/// An event; nothing where it has no data, as a heartbeat.
fn event_of(text: &str) -> Option<Frame> {
    let field = |name: &'static str| {
        text.lines()
            .filter_map(move |line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(|value| value.strip_prefix(' ').unwrap_or(value))
    };
    let data: Vec<&str> = field("data").collect();
    let event = field("event").next_back().map(str::to_owned);
    (!data.is_empty()).then(|| Frame { event, data: data.join("\n") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(event: Option<&str>, data: &str) -> Frame {
        Frame { event: event.map(str::to_owned), data: data.to_owned() }
    }

    #[test]
    fn frames_are_put_together_from_pieces() {
        let mut lines = Frames::new(Kind::Lines);
        assert_eq!(lines.feed(&Bytes::from_static(b"{\"a\"")), []);
        let whole = lines.feed(&Bytes::from_static(b":1}\n{}\n{"));
        assert_eq!(whole, [frame(None, "{\"a\":1}"), frame(None, "{}")]);
        assert_eq!(lines.text(), "{");
        let mut events = Frames::new(Kind::Events);
        assert_eq!(events.feed(&Bytes::from_static(b": beat\n\nid: 1\ndata: {\ndata: }\n")), []);
        assert_eq!(events.feed(&Bytes::from_static(b"\n")), [frame(None, "{\n}")]);
        let failed = events.feed(&Bytes::from_static(b"event: error\ndata: {}\n\n"));
        assert_eq!(failed, [frame(Some("error"), "{}")]);
        assert!(events.rest.is_empty());
    }
}
