//! Small documents that are odd in every way at once, and ones that must be refused.

use sandboxer_codegen::{Inputs, edits::ExpectedCounts, plan};

const ODD: &str = r##"
openapi: 3.0.3
info: {title: 'Odd "API"', version: '9'}
x-error-codes:
  invalid_request: {status: 400, statusAt: {self: 418}, produced: ruled, meaning: 'Bad, "very" bad'}
x-repeat-table:
  - {name: one-status, when: {status: [418]}, repeat: [], why: 'A pot, not a service.'}
paths:
  /:
    get:
      operationId: self
      tags: [odd things]
      summary: "Two\nlines with `ticks` and \\ and \"quotes\""
      x-repeat: safe
      x-key-action: null
      x-errors: [invalid_request]
      parameters:
        - {name: type, in: query, required: true, description: A keyword., schema: {type: string}}
        - {name: async, in: query, schema: {type: boolean, default: false}}
        - {name: match-all, in: query, schema: {$ref: '#/components/schemas/Colour'}}
      responses:
        '200': {description: Yes., content: {application/json: {schema: {$ref: '#/components/schemas/Odd'}}}}
  /things/{thing-id}/{n}/literal:
    parameters:
      - {name: thing-id, in: path, required: true, schema: {type: string}}
      - {name: n, in: path, required: true, schema: {type: integer, format: int64, maximum: 3}}
    post:
      operationId: do-it
      tags: [odd things]
      summary: Does it
      x-repeat: write
      x-key-action: thing.do
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: '#/components/schemas/DoIt'}}}
      parameters: [{name: dry, in: query, schema: {type: boolean}}]
      responses:
        '204': {description: Bytes., content: {application/octet-stream: {schema: {type: string, format: binary}}}}
        default: {description: No., content: {text/html: {schema: {type: string}}}}
  /things/{thing-id}/watch:
    parameters:
      - {name: thing-id, in: path, required: true, schema: {type: string, maxLength: 9}}
    get:
      operationId: watch
      tags: [odd things]
      summary: Watches
      x-repeat: safe
      x-key-action: session
      x-streaming-face: {operationId: watchStream, summary: Streams, mediaType: text/event-stream, frame: Odd, query: {colour: red}}
      parameters:
        - {name: colour, in: query, schema: {$ref: '#/components/schemas/Colour'}}
        - {name: size, in: query, schema: {type: integer, minimum: 1}}
      responses:
        '200': {description: Yes., content: {application/json: {schema: {$ref: '#/components/schemas/Odd'}}, text/event-stream: {schema: {$ref: '#/components/schemas/Odd'}}}}
    delete:
      operationId: socket
      tags: [odd things]
      summary: Opens
      x-repeat: safe
      x-key-action: null
      x-websocket: true
      responses: {'101': {description: Switched.}}
components:
  schemas:
    Colour:
      type: string
      description: A colour
      enum: [red, dark-blue, Default]
      default: dark-blue
    Odd:
      type: object
      required: [type, fn]
      x-essential: [fn]
      properties:
        type: {type: string, enum: [odd]}
        fn: {type: string}
        nested: {type: array, items: {type: array, items: {$ref: '#/components/schemas/Colour'}}}
        map: {type: object, additionalProperties: {type: number}}
        open: {type: object, additionalProperties: true}
        any: {description: Anything.}
        Überfeld: {type: boolean, nullable: true}
        only: {$ref: '#/components/schemas/Empty'}
    Empty: {type: string, description: An alias of text.}
    DoIt:
      type: object
      required: [self_secret, list, none]
      properties:
        none: {type: string, nullable: true}
        self_secret: {type: string, x-secret: true, minLength: 2}
        list: {type: array, maxItems: 2, items: {$ref: '#/components/schemas/Inner'}}
        when: {type: string, format: date-time, nullable: true, x-three-state: true}
        new: {type: boolean}
        tags: {type: array, items: {type: string, maxLength: 3}}
    Inner:
      type: object
      properties:
        deep: {type: integer, minimum: -5}
"##;

fn counts() -> ExpectedCounts {
    ExpectedCounts::default()
        .with("drop-websockets", 1)
        .with("keep-2xx-responses", 1)
        .with("accept-any-2xx", 3)
        .with("drop-client-headers", 0)
        .with("split-streaming-faces", 1)
        .with("answer-byte-streams", 2)
        .with("drop-limits", 12)
        .with("drop-unused-schemas", 0)
}

fn inputs(spec: &str) -> Inputs {
    let package = |name: &str| format!("[[package]]\nname = \"{name}\"\nversion = \"1.0.0\"\n");
    let cargo_lock = ["prettyplease", "progenitor", "typify"].map(package).concat();
    Inputs { spec: spec.into(), overlays: Vec::new(), cargo_lock, counts: counts() }
}

fn text(path: &str) -> String {
    let artifacts = plan(&inputs(ODD)).unwrap();
    artifacts.into_iter().find(|artifact| artifact.path == path).unwrap_or_else(|| panic!("no {path}")).text
}

fn refused(from: &str, to: &str) -> String {
    assert!(ODD.contains(from), "{from}");
    plan(&inputs(&ODD.replace(from, to))).map(drop).unwrap_err().to_string()
}

#[test]
fn every_file_is_rust() {
    for artifact in plan(&inputs(ODD)).unwrap().iter().filter(|artifact| artifact.path.ends_with(".rs")) {
        syn::parse_file(&artifact.text).unwrap_or_else(|error| panic!("{}: {error}", artifact.path));
    }
}

#[test]
fn keywords_and_odd_letters_become_names() {
    let models = text("sdk/src/generated/models/odd_things.rs");
    for line in [
        "pub fn_: String,",
        "pub kind: String,",
        "rename = \"Überfeld\"",
        "DarkBlue,",
        "pub deep: Option<i64>,",
    ] {
        assert!(models.contains(line), "{line}\n{models}");
    }
    assert!(models.contains("crate::wire::open_enum!("), "{models}");
    assert!(models.contains("pub nested: Option<Vec<Vec<super::Colour>>>,"), "{models}");
    assert!(models.contains("pub when: crate::wire::Patch<crate::wire::Timestamp>,"), "{models}");
    let joined: String = models.split_whitespace().collect();
    assert!(
        joined.contains("check::length(\"self_secret\",self.self_secret.expose(),2usize,None"),
        "{models}"
    );
    let api = text("sdk/src/generated/api.rs");
    assert!(api.contains("pub async fn self_("), "{api}");
}

#[test]
fn parameters_and_body_are_one_request() {
    let models = text("sdk/src/generated/models/odd_things.rs");
    for line in [
        "pub struct DoItParams {",
        "pub dry: Option<bool>,",
        "pub none: Option<String>,",
        "pub new_: Option<bool>,",
        "none: impl Into<crate::wire::Patch<String>>,",
        "crate::wire::check::items(",
    ] {
        assert!(models.contains(line), "{line}\n{models}");
    }
    assert!(text("sdk/src/generated/api.rs").contains("let body = request.body();"));
}

#[test]
fn a_stream_sends_what_it_forces_and_a_socket_has_no_method() {
    let (api, models) = (text("sdk/src/generated/api.rs"), text("sdk/src/generated/models/odd_things.rs"));
    assert!(api.contains("Some(&models::Colour::Red)"), "{api}");
    assert!(api.contains("pub async fn watch_stream(") && !api.contains("pub async fn socket("), "{api}");
    let params = models.split("pub struct WatchStreamParams {").nth(1).unwrap().split('}').next().unwrap();
    assert!(params.contains("size") && !params.contains("colour"), "{params}");
    let operations = text("sdk/src/generated/operations.rs");
    assert!(operations.contains("media: Media::Sse,") && operations.contains("media: Media::WebSocket,"));
    assert!(operations.contains("key_action: Some(\"session\"),"), "{operations}");
}

#[test]
fn a_code_may_have_another_status_at_an_operation() {
    let (api, operations) = (text("sdk/src/generated/api.rs"), text("sdk/src/generated/operations.rs"));
    assert!(api.contains("* `invalid_request` (418): Bad"), "{api}");
    let code = operations.split("code: \"invalid_request\",").nth(1).unwrap().split('}').next().unwrap();
    assert!(code.contains("status: 400u16,") && code.contains(", 418u16)]"), "{code}");
}

#[test]
fn literal_segments_win_and_rules_are_written() {
    let router = text("mock-server/src/generated/router.rs");
    assert!(
        router.contains("Segment::Parameter(\"thing-id\")") && router.contains("default: Some(\"false\")"),
        "{router}"
    );
    let operations = text("sdk/src/generated/operations.rs");
    assert!(operations.contains("status: Some((418u16, 418u16)),"), "{operations}");
}

#[test]
fn what_no_step_understands_is_refused_by_its_place() {
    for (from, to, says) in [
        ("minLength: 2", "minLenght: 2", "minLenght"),
        ("x-repeat: write", "x-repeat: maybe", "/things/"),
        ("x-errors: [invalid_request]", "x-errors: [what]", "`what`"),
        ("#/components/schemas/Inner'", "#/components/schemas/Outer'", "Outer"),
        ("x-essential: [fn]", "x-essential: [gone]", "gone"),
        ("any: {description: Anything.}", "Fn: {type: string}", "Odd.Fn"),
        ("default: dark-blue", "default: pink", "Colour"),
        ("{type: integer, minimum: -5}", "{type: string, minimum: -5}", "Inner.deep"),
        ("{type: integer, minimum: -5}", "{type: string, pattern: '('}", "Inner.deep"),
        ("'204'", "'404'", "do-it"),
        ("operationId: do-it", "operationId: self", "`self`"),
        ("{name: n, in: path", "{name: m, in: path", "`n`"),
        ("openapi: 3.0.3", "openapi: 3.1.0", "3.1.0"),
        ("query: {colour: red}", "query: {color: red}", "`color`"),
        ("mediaType: text/event-stream", "mediaType: text/html", "watch"),
        ("{name: dry, in", "{name: when, in", "DoIt.when"),
        ("x-websocket: true", "x-websocket: false", "socket"),
        ("new: {type: boolean}", "new: {type: boolean, x-dialect: boat}", "`boat`"),
        ("produced: ruled, ", "", "`produced`"),
        ("produced: ruled", "produced: somehow", "somehow"),
        ("produced: ruled", "produced: scenario", "`invalid_request` needs `scenarios`"),
        ("produced: ruled", "produced: ruled, scenarios: [rain]", "`invalid_request` needs `scenarios`"),
        ("produced: ruled", "produced: elsewhere", "`invalid_request` is produced elsewhere"),
        ("x-errors: [invalid_request]", "x-errors: []", "`invalid_request` is listed by no operation"),
        ("statusAt: {self: 418}", "statusAt: {watch: 418}", "at `watch`, which does not list it"),
        ("statusAt: {self: 418}", "statusAt: {self: 400}", "its own status at `self` once more"),
    ] {
        let error = refused(from, to);
        assert!(error.contains(says), "{to}: {error}");
    }
}
