//! What suites saw, held against a small document.

use sandboxer_codegen::{Inputs, edits::ExpectedCounts, seen};

const DOCUMENT: &str = r##"
openapi: 3.0.3
info: {title: Small, version: '1'}
x-service:
  {name: small, keyVariables: [KEY], urlVariable: URL, orgVariable: ORG, reservedVariables: [], hostSuffix: example.com,
   logFolder: /logs, webhookSignatureHeader: null, webhookHeaderPrefix: X-, commandVariables: field,
   codeAliases: {ajar: open}, absent: []}
x-common-errors: [unauthorized]
x-error-codes:
  unauthorized: {status: 401, produced: ruled, meaning: No key.}
  session_required: {status: 403, produced: ruled, meaning: Nobody is signed in.}
  not_member: {status: 403, produced: ruled, meaning: Not a member.}
  open: {status: 409, produced: ruled, meaning: The door is open.}
  stuck: {status: 409, produced: scenario, scenarios: [frost, rust], meaning: The door is stuck.}
  upgrade_required: {status: 426, produced: ruled, meaning: Not a WebSocket.}
  lost: {status: 404, produced: elsewhere, meaning: The key is lost.}
paths:
  /door:
    get:
      operationId: watch
      tags: [doors]
      summary: Looks at the door.
      x-repeat: safe
      x-key-action: null
      x-errors: [open, stuck]
      x-streaming-face: {operationId: watchStream, summary: Follows the door., mediaType: text/event-stream, frame: Door}
      parameters: [{name: X-Org, in: header, x-errors: [not_member], schema: {type: string}}]
      responses:
        '200': {description: Yes., content: {application/json: {schema: {$ref: '#/components/schemas/Door'}}, text/event-stream: {schema: {$ref: '#/components/schemas/Door'}}}}
    delete:
      operationId: remove
      tags: [doors]
      summary: Takes the door away.
      x-repeat: write
      x-key-action: session
      x-errors: [session_required]
      parameters: [{name: X-Org, in: header, x-errors: [not_member], schema: {type: string}}]
      responses: {'200': {description: Gone., content: {application/json: {schema: {$ref: '#/components/schemas/Door'}}}}}
  /door/bell:
    get:
      operationId: bell
      tags: [doors]
      summary: Rings.
      x-repeat: safe
      x-key-action: null
      x-errors: [upgrade_required]
      x-websocket: true
      responses: {'101': {description: Switched.}}
components:
  schemas:
    Door: {type: object, properties: {color: {type: string}}}
"##;

/// Everything there is to see, in the spelling of either service.
const ALL: &str = "watch 200 -\nwatch 409 open\nwatchStream 200 -\nwatchStream 409 stuck\nwatch 403 not_member\n\
    remove 200 -\nremove 403 session_required\nbell 426 upgrade_required\n- 401 unauthorized\n";

fn report(text: &str) -> seen::Report {
    let inputs = Inputs {
        spec: DOCUMENT.into(),
        overlays: Vec::new(),
        cargo_lock: String::new(),
        counts: ExpectedCounts::default(),
    };
    seen::report(&inputs, text).unwrap()
}

/// The faults when all lines were seen but this one.
fn without(line: &str) -> Vec<String> {
    let line = format!("{line}\n");
    assert!(ALL.contains(&line), "{line}");
    report(&ALL.replacen(&line, "", 1)).faults
}

/// The faults when this line was seen besides all others.
fn with(line: &str) -> Vec<String> {
    report(&format!("{ALL}{line}\n")).faults
}

#[test]
fn all_there_is_makes_a_table_without_faults() {
    let report = report(ALL);
    assert_eq!(report.faults, Vec::<String>::new());
    let lines: Vec<&str> = report.table.lines().collect();
    assert_eq!(
        lines,
        [
            "watch        200, 403 not_member, 409 open",
            "watchStream  200, 409 stuck",
            "remove       200, 403 session_required",
            "bell         426 upgrade_required",
            "-            401 unauthorized",
            "4 operations and faces; 7 codes: 5 ruled, 1 by a scenario, 1 of other operations",
        ]
    );
}

#[test]
fn what_never_came_up_is_named_with_the_way_to_it() {
    assert_eq!(without("watchStream 200 -"), ["watchStream: no success"]);
    assert_eq!(without("watch 409 open"), ["watch: never open (ruled)"]);
    assert_eq!(without("watchStream 409 stuck"), ["watch: never stuck (scenario frost or rust)"]);
    assert_eq!(without("remove 403 session_required"), ["remove: never session_required (ruled)"]);
    assert_eq!(
        without("bell 426 upgrade_required"),
        ["bell: no success", "bell: never upgrade_required (ruled)"]
    );
    assert_eq!(
        without("watch 403 not_member"),
        ["never not_member (ruled)"],
        "of a parameter, once anywhere"
    );
    assert_eq!(
        without("- 401 unauthorized"),
        ["never unauthorized (ruled)"],
        "of every operation, once anywhere"
    );
    assert!(report("").table.starts_with("watch        nothing\n"));
}

#[test]
fn what_the_document_does_not_say_is_a_fault() {
    assert_eq!(with("remove 409 open"), ["remove: open is none of its codes"]);
    assert_eq!(with("watch 404 lost"), ["watch: lost is none of its codes"]);
    assert_eq!(with("- 400 odd"), ["-: odd is not described"]);
    assert_eq!(with("gone 200 -"), ["gone: there is no such operation"]);
    assert_eq!(with("watch 500 -"), ["watch: 500 without a code"]);
    assert_eq!(with("watch 409 ajar"), Vec::<String>::new(), "the other spelling of `open`");
}

#[test]
fn a_line_that_is_none_is_refused() {
    let inputs = Inputs {
        spec: DOCUMENT.into(),
        overlays: Vec::new(),
        cargo_lock: String::new(),
        counts: ExpectedCounts::default(),
    };
    for line in ["watch", "watch 200", "watch two -", "watch 200 - -", ""] {
        let text = format!("{line}\n");
        let error = seen::report(&inputs, &text).map(drop).unwrap_err();
        assert!(error.to_string().contains(&format!("`{line}`")), "{error}");
    }
}
