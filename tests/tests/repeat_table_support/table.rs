//! The repeat table of the document, read anew: its rows, and failures that hit exactly one of them.

use std::time::Duration;

use sandboxer_tests::{
    peer::Turn,
    spec::{Spec, SpecOperation},
};
use serde_json::{Value, json};

/// The row of a failure that no row of the table fits: it is never repeated.
pub(crate) const NO_ROW: &str = "no-row";

/// Statuses of codes that the document does not describe, and of answers without a code.
const STATUSES: [u16; 13] = [302, 400, 404, 408, 409, 418, 429, 499, 500, 501, 503, 504, 599];

/// What the service asks for in the variants that have a `Retry-After`.
const HINT: Duration = Duration::from_secs(11);

/// A row of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    when: Value,
    repeat: Vec<String>,
    pub(crate) pause: Duration,
    pub(crate) until_deadline: bool,
}

/// When the service says to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hint {
    None,
    /// In so long.
    After(Duration),
    /// At a date, so long after the clock's start.
    At(Duration),
}

impl Hint {
    /// How long that is at a time of the clock.
    pub(crate) fn at(self, elapsed: Duration) -> Option<Duration> {
        match self {
            Self::None => None,
            Self::After(wait) => Some(wait),
            Self::At(date) => Some(date.saturating_sub(elapsed)),
        }
    }
}

/// A failure, and what the table goes by.
#[derive(Clone, Debug)]
pub(crate) struct Hit {
    pub(crate) turn: Turn,
    pub(crate) delivery: &'static str,
    pub(crate) status: Option<u16>,
    pub(crate) code: Option<String>,
    pub(crate) retryable: Option<bool>,
    pub(crate) window: Option<&'static str>,
    pub(crate) message: String,
    pub(crate) hint: Hint,
}

impl Row {
    /// Whether a try of this class is followed by another.
    pub(crate) fn repeats(&self, class: &str) -> bool {
        self.repeat.iter().any(|known| known == class)
    }

    /// Whether the row is about tries without a whole answer.
    pub(crate) fn is_about_the_network(&self) -> bool {
        self.when["delivery"].is_string()
    }

    /// Whether the row is about this failure.
    fn fits(&self, hit: &Hit) -> bool {
        self.when.as_object().into_iter().flatten().all(|(key, wanted)| match key.as_str() {
            "delivery" => *wanted == hit.delivery,
            "status" => {
                let bounds: Vec<u64> =
                    wanted.as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
                let status = u64::from(hit.status.unwrap_or(0));
                (bounds[0]..=bounds[bounds.len() - 1]).contains(&status)
            }
            "codes" => {
                let code = hit.code.as_deref().unwrap_or_default();
                wanted.as_array().is_some_and(|codes| codes.iter().any(|known| known == code))
            }
            "retryable" => wanted.as_bool() == hit.retryable,
            "message" => *wanted == hit.message.as_str(),
            "window" => wanted.as_str() == hit.window,
            "hint" => wanted.as_bool() == Some(hit.hint != Hint::None),
            other => panic!("row {}: `{other}` is not understood here", self.name),
        })
    }
}

/// The rows of the table, and one for what fits none.
pub(crate) fn rows(spec: &Spec) -> Vec<Row> {
    let listed = spec.part("/x-repeat-table").as_array().expect("a table");
    let known = ["name", "when", "repeat", "why", "pauseMs", "untilDeadline"];
    let mut rows: Vec<Row> = listed
        .iter()
        .map(|row| {
            assert!(row.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{row}");
            let classes = row["repeat"].as_array().unwrap().iter().filter_map(Value::as_str);
            Row {
                name: row["name"].as_str().unwrap().to_owned(),
                when: row["when"].clone(),
                repeat: classes.map(str::to_owned).collect(),
                pause: Duration::from_millis(row["pauseMs"].as_u64().unwrap_or(0)),
                until_deadline: row["untilDeadline"] == true,
            }
        })
        .collect();
    rows.push(Row {
        name: NO_ROW.to_owned(),
        when: json!({}),
        repeat: Vec::new(),
        pause: Duration::ZERO,
        until_deadline: false,
    });
    rows
}

/// Failures of an operation whose first fitting row is `row`; at least one.
pub(crate) fn hits(spec: &Spec, rows: &[Row], row: &Row, operation: &SpecOperation) -> Vec<Hit> {
    let candidates = match row.when["delivery"].as_str() {
        Some("not-sent") => vec![cut("not-sent", Turn::Unresolved), cut("not-sent", Turn::Refused)],
        Some("unknown") => {
            let mut all = vec![cut("unknown", Turn::Cut), cut("unknown", Turn::HalfHead)];
            all.push(cut("unknown", Turn::Stall));
            if operation.is_json() {
                // Of a stream, the body is its reader's matter.
                let turn = Turn::HalfBody(operation.success, operation.media.clone());
                all.push(Hit { status: Some(operation.success), ..cut("unknown", turn) });
            }
            all
        }
        _ => answered(spec, row),
    };
    let first = |hit: &Hit| rows.iter().find(|row| row.fits(hit)).map(|row| row.name.as_str());
    let hits: Vec<Hit> = candidates.into_iter().filter(|hit| first(hit) == Some(&row.name)).collect();
    assert!(!hits.is_empty(), "nothing hits row {}", row.name);
    hits
}

fn cut(delivery: &'static str, turn: Turn) -> Hit {
    Hit {
        turn,
        delivery,
        status: None,
        code: None,
        retryable: None,
        window: None,
        message: String::new(),
        hint: Hint::None,
    }
}

/// Answers that the row could be about; some may belong to an earlier one.
fn answered(spec: &Spec, row: &Row) -> Vec<Hit> {
    let when = &row.when;
    let list = |key: &str| when[key].as_array().cloned().unwrap_or_default();
    let retryable = when["retryable"].as_bool();
    let codes: Vec<Option<String>> = match list("codes").as_slice() {
        // Rows that go by the status alone, or by nothing, are about every code that has no row of its own.
        [] if retryable.is_none() => {
            let described = spec.part("/x-error-codes").as_object().expect("codes").keys().cloned();
            [None, Some("odd_failure".to_owned())].into_iter().chain(described.map(Some)).collect()
        }
        [] => vec![Some("odd_failure".to_owned())],
        codes => codes.iter().map(|code| code.as_str().map(str::to_owned)).collect(),
    };
    let windows = match when["window"].as_str() {
        Some("day") => vec![Some("day")],
        Some(other) => panic!("the window `{other}` is not understood here"),
        None => vec![None, Some("hour")],
    };
    // Where the hint itself is the row's matter, every form of it.
    let forms = [Hint::None, Hint::After(HINT), Hint::At(HINT), Hint::After(HINT * 1000)];
    let forms = if when["hint"] == true { &forms[..] } else { &forms[..2] };
    let message = when["message"].as_str().unwrap_or("it failed").to_owned();
    let mut hits = Vec::new();
    for code in codes {
        let own = code.as_ref().and_then(|code| spec.part("/x-error-codes")[code]["status"].as_u64());
        let statuses = own.map_or_else(|| STATUSES.to_vec(), |own| vec![u16::try_from(own).unwrap()]);
        let quota = code.as_deref() == Some("rate_limited");
        // A redirect comes from who knows where: nothing that it says besides is read.
        for status in statuses.into_iter().filter(|status| *status != 302 || code.is_none()) {
            for window in windows.iter().filter(|window| window.is_none() || quota) {
                for hint in forms.iter().copied() {
                    let turn = reply(status, code.as_deref(), retryable, *window, &message, hint);
                    hits.push(Hit {
                        turn,
                        delivery: "answered",
                        status: Some(status),
                        code: code.clone(),
                        retryable,
                        window: *window,
                        message: message.clone(),
                        hint,
                    });
                }
            }
        }
    }
    hits
}

fn reply(
    status: u16,
    code: Option<&str>,
    retryable: Option<bool>,
    window: Option<&str>,
    message: &str,
    hint: Hint,
) -> Turn {
    let mut headers = vec![("x-request-id".to_owned(), "req_scripted".to_owned())];
    match hint {
        Hint::None => {}
        Hint::After(wait) => headers.push(("retry-after".to_owned(), wait.as_secs().to_string())),
        Hint::At(date) => {
            let date = format!("Thu, 01 Jan 2026 00:00:{:02} GMT", date.as_secs());
            headers.push(("retry-after".to_owned(), date));
        }
    }
    if status == 302 {
        headers.push(("location".to_owned(), "/elsewhere".to_owned()));
    }
    let body = code.map_or_else(String::new, |code| {
        let mut body = json!({
            "ok": false, "type": "sandbox.error", "status": status, "code": code, "message": message,
            "error": {"code": code, "message": message, "status": status, "details": {}},
        });
        if let Some(retryable) = retryable {
            body["retryable"] = retryable.into();
        }
        if let Some(window) = window {
            body["error"]["details"]["window"] = window.into();
        }
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        body.to_string()
    });
    Turn::Reply { status, headers, body: body.into() }
}
