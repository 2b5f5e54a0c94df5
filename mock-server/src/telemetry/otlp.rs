//! OTLP in its JSON encoding: 64-bit numbers as text, names in camel case, kinds of values as wrappers.

use serde_json::{Value, json};

use super::gauges::Gauges;
use crate::world::{
    happenings::{Happening, Kind},
    time::Millis,
};

const MIB: f64 = 1024.0 * 1024.0;

/// An export of gauges.
pub(super) fn metrics(account: &str, gauges: &Gauges, now: Millis) -> Value {
    let states = gauges
        .states
        .iter()
        .map(|(state, count)| point(now, &[("sandboxer.sandbox.state", state.as_str())], whole(*count)));
    let mut metrics = vec![gauge(
        "sandboxer.sandboxes",
        "Sandboxes of the account by state.",
        "{sandbox}",
        states.collect(),
    )];
    if !gauges.sandboxes.is_empty() {
        let points = |value: fn(&super::gauges::Measured) -> Value| {
            let measured = gauges.sandboxes.iter();
            let points = measured.map(|sandbox| {
                let attributes = [
                    ("sandboxer.sandbox.id", sandbox.id.as_str()),
                    ("sandboxer.sandbox.name", sandbox.name.as_str()),
                    ("sandboxer.sandbox.type", sandbox.kind.as_str()),
                ];
                point(now, &attributes, value(sandbox))
            });
            points.collect()
        };
        metrics.push(gauge(
            "sandboxer.sandbox.processes",
            "Processes in a sandbox.",
            "{process}",
            points(|sandbox| whole(sandbox.processes)),
        ));
        metrics.push(gauge(
            "sandboxer.sandbox.cpu",
            "Processor time that a sandbox uses, 100 for one processor.",
            "%",
            points(|sandbox| json!({"asDouble": sandbox.cpu_percent})),
        ));
        metrics.push(gauge(
            "sandboxer.sandbox.memory",
            "Memory that a sandbox holds.",
            "By",
            points(|sandbox| whole((sandbox.memory_mb * MIB) as u64)),
        ));
    }
    json!({"resourceMetrics": [{
        "resource": resource(account),
        "scopeMetrics": [{"scope": scope(), "metrics": metrics}],
    }]})
}

/// An export of what happened to sandboxes.
pub(super) fn logs<'a>(account: &str, happenings: impl Iterator<Item = &'a Happening>, now: Millis) -> Value {
    let records: Vec<Value> = happenings.map(|happening| log_record(happening, now)).collect();
    json!({"resourceLogs": [{
        "resource": resource(account),
        "scopeLogs": [{"scope": scope(), "logRecords": records}],
    }]})
}

fn log_record(happening: &Happening, now: Millis) -> Value {
    let (number, severity) = match happening.kind {
        Kind::Error => (17, "ERROR"),
        Kind::Degraded => (13, "WARN"),
        Kind::Ready | Kind::Archived | Kind::Hydrated | Kind::Recovered => (9, "INFO"),
    };
    let kind = happening.kind.as_str();
    let mut attributes = vec![
        ("event.id", happening.id.as_str()),
        ("event.name", kind),
        ("sandboxer.sandbox.id", &happening.sandbox),
        ("sandboxer.sandbox.name", &happening.name),
    ];
    let states = [
        ("sandboxer.sandbox.previous_state", happening.previous_state),
        ("sandboxer.sandbox.state", happening.state),
    ];
    attributes.extend(states.iter().filter_map(|(name, state)| Some((*name, (*state)?.as_str()))));
    attributes.extend(happening.reason.iter().map(|reason| ("sandboxer.sandbox.reason", reason.as_str())));
    json!({
        "timeUnixNano": nanos(happening.at),
        "observedTimeUnixNano": nanos(now),
        "severityNumber": number,
        "severityText": severity,
        "eventName": kind,
        "body": {"stringValue": format!("{kind} {}", happening.sandbox)},
        "attributes": key_values(&attributes),
    })
}

fn gauge(name: &str, description: &str, unit: &str, points: Vec<Value>) -> Value {
    json!({"name": name, "description": description, "unit": unit, "gauge": {"dataPoints": points}})
}

fn point(now: Millis, attributes: &[(&str, &str)], value: Value) -> Value {
    let mut point = value;
    point["timeUnixNano"] = nanos(now).into();
    point["attributes"] = key_values(attributes);
    point
}

fn whole(value: u64) -> Value {
    json!({"asInt": value.to_string()})
}

fn resource(account: &str) -> Value {
    json!({"attributes": key_values(&[("service.name", "sandboxer"), ("sandboxer.account.id", account)])})
}

fn scope() -> Value {
    json!({"name": "sandboxer-mock-server", "version": env!("CARGO_PKG_VERSION")})
}

fn key_values(pairs: &[(&str, &str)]) -> Value {
    pairs.iter().map(|(key, value)| json!({"key": key, "value": {"stringValue": value}})).collect()
}

fn nanos(at: Millis) -> String {
    (i128::from(at) * 1_000_000).to_string()
}
