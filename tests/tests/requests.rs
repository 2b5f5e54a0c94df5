//! What goes out is what the document takes: with everything set, every parameter and every field of the request is on the
//! wire with its value; with nothing set, nothing is that is not required. In both dialects and both twins.

use std::collections::{BTreeMap, BTreeSet};

use sandboxer::{AsyncSandboxer, CallOptions, Dialect, Result};
use sandboxer_blocking::Sandboxer;
use sandboxer_mock_server::checks::translate;
use sandboxer_tests::{
    drive::{Drive, Way},
    generated::every_call,
    pacer::Pacer,
    peer::{Peer, Seen},
    spec::{Spec, SpecOperation},
};
use serde_json::{Map, Value, json};

/// What the client sends of its own accord.
const OWN_HEADERS: [&str; 7] = [
    "accept",
    "authorization",
    "content-length",
    "content-type",
    "host",
    "user-agent",
    "x-sandboxer-attempt",
];
const ORG: &str = "the-org";

/// A dialect's document, a peer, and a client of each twin that reach it.
struct Wire {
    dialect: Dialect,
    spec: Spec,
    /// The default dialect's parameters, by operation, whose names the client's arguments have.
    ours: BTreeMap<String, Vec<Value>>,
    definitions: Value,
    peer: Peer,
    runtime: tokio::runtime::Runtime,
    client: AsyncSandboxer,
    blocking: Sandboxer,
}

/// A request that was sent, and what it was made from.
struct Request<'a> {
    wire: &'a Wire,
    operation: &'a SpecOperation,
    given: &'a Value,
    seen: &'a Seen,
    query: BTreeMap<String, String>,
    /// Whether everything was set, the organisation included.
    full: bool,
}

impl Wire {
    fn new(dialect: Dialect) -> Self {
        let (spec, peer) = (Spec::read(dialect), Peer::start());
        let client = AsyncSandboxer::builder()
            .ignore_env()
            .dialect(dialect)
            .api_key("key_of_the_suite")
            .base_url(format!("http://127.0.0.1:{}/api/v1", peer.port()))
            .retries(0)
            .build()
            .unwrap();
        let operations = Spec::read(Dialect::default()).operations();
        Self {
            dialect,
            definitions: translate::definitions(spec.part("/components/schemas")),
            spec,
            ours: operations.into_iter().map(|operation| (operation.id, operation.parameters)).collect(),
            peer,
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            blocking: Sandboxer::from_async(client.clone()),
            client,
        }
    }

    /// The one request that a call sends.
    fn send(&self, operation: &SpecOperation, call: impl FnOnce(&Self) -> Result<()>) -> Seen {
        self.peer.play([self.spec.success(operation)], &Pacer::default());
        call(self).unwrap_or_else(|error| panic!("{} {}: {error}", self.dialect, operation.id));
        let seen = self.peer.seen();
        assert_eq!(seen.len(), 1, "{}", operation.id);
        seen.into_iter().next().unwrap()
    }

    /// Sends the same through both twins and checks what came.
    fn check(&self, operation: &SpecOperation, way: Way, full: bool) -> usize {
        let options = || if full { CallOptions::new().org(ORG) } else { CallOptions::new() };
        let seen = self.send(operation, |wire| {
            let api = wire.client.api().with(options());
            wire.runtime.block_on(async { (way.call)(&api).await.map(drop) })
        });
        let twin =
            self.send(operation, |wire| (way.blocking)(&wire.blocking.api().with(options())).map(drop));
        assert_eq!(
            (&twin.method, &twin.target, &twin.body),
            (&seen.method, &seen.target, &seen.body),
            "{}",
            operation.id
        );
        let names =
            |seen: &Seen| -> BTreeSet<_> { seen.headers.iter().map(|(name, _)| name.clone()).collect() };
        assert_eq!(names(&twin), names(&seen), "{}", operation.id);

        let given: Value = serde_json::from_str(way.sent).unwrap();
        let encoded = seen.target.split_once('?').map_or("", |(_, query)| query);
        let pairs: Vec<(String, String)> =
            url::form_urlencoded::parse(encoded.as_bytes()).into_owned().collect();
        let query: BTreeMap<_, _> = pairs.iter().cloned().collect();
        assert_eq!(query.len(), pairs.len(), "{}: a parameter is there twice", operation.id);
        let request = Request { wire: self, operation, given: &given, seen: &seen, query, full };
        request.path() + request.query() + request.headers() + request.body()
    }

    /// The named schemas that a translated one leads to.
    fn collect<'a>(&'a self, schema: &Value, needed: &mut BTreeMap<String, &'a Value>) {
        let name =
            schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix("#/$defs/"));
        if let Some(name) = name.filter(|name| !needed.contains_key(*name)) {
            let found = &self.definitions[name];
            needed.insert(name.to_owned(), found);
            self.collect(found, needed);
        }
        match schema {
            Value::Object(fields) => fields.values().for_each(|field| self.collect(field, needed)),
            Value::Array(items) => items.iter().for_each(|item| self.collect(item, needed)),
            _ => {}
        }
    }

    #[track_caller]
    fn fits(&self, schema: &Value, value: &Value, what: &str) {
        let schema = translate::schema(schema);
        let mut needed = BTreeMap::new();
        self.collect(&schema, &mut needed);
        let schema = json!({"$defs": needed, "allOf": [schema]});
        let validator = jsonschema::validator_for(&schema).unwrap();
        if let Err(error) = validator.validate(value) {
            panic!("{what}: {error}: {value}");
        }
    }
}

impl Request<'_> {
    fn what(&self, name: &str) -> String {
        format!("{} {}, `{name}`, full: {}", self.wire.dialect, self.operation.id, self.full)
    }

    /// What the caller gave for a parameter, by the name that the default dialect has for it.
    fn given(&self, place: &str, parameter: &Value) -> Option<Value> {
        let index = self.operation.parameters.iter().position(|other| other == parameter)?;
        let ours = self.wire.ours.get(&self.operation.id).and_then(|all| all.get(index));
        let name = ours.unwrap_or(parameter)["name"].as_str()?;
        self.given.get(place)?.get(name).cloned()
    }

    /// Each function gives the number of values that it found on the wire.
    fn path(&self) -> usize {
        assert_eq!(self.seen.method, self.operation.method, "{}", self.what("method"));
        let path = self.seen.target.split('?').next().unwrap().strip_prefix("/api/v1").unwrap();
        let (pieces, wanted): (Vec<_>, Vec<_>) =
            (path.split('/').collect(), self.operation.path.split('/').collect());
        assert_eq!(pieces.len(), wanted.len(), "{path}");
        let mut found = 0;
        for (piece, wanted) in pieces.into_iter().zip(wanted) {
            let Some(name) = wanted.strip_prefix('{').map(|rest| rest.trim_end_matches('}')) else {
                assert_eq!(piece, wanted, "{}", self.what("path"));
                continue;
            };
            let parameter = self.operation.given("path").find(|parameter| parameter["name"] == name).unwrap();
            let value = self.given("path", parameter).unwrap();
            // In a path a plus sign is one.
            let piece = piece.replace('+', "%2B");
            let decoded = url::form_urlencoded::parse(piece.as_bytes()).next().unwrap().0.into_owned();
            assert_eq!(decoded, plain(&value), "{}", self.what(name));
            self.wire.fits(&parameter["schema"], &value, &self.what(name));
            found += 1;
        }
        found
    }

    fn query(&self) -> usize {
        let mut left = self.query.clone();
        let mut found = 0;
        for parameter in self.operation.given("query") {
            let name = parameter["name"].as_str().unwrap();
            let given = match (self.operation.forced.get(name), self.given("query", parameter)) {
                (Some(forced), _) => Some(forced.clone()),
                (None, None) if self.org_goes_into_the_query(parameter) => Some(ORG.into()),
                (None, given) => given,
            };
            let may_be_absent = !self.full && parameter["required"] != true;
            let wanted = self.operation.forced.contains_key(name) || !may_be_absent;
            assert_eq!(given.is_some(), wanted, "{}", self.what(name));
            let wire = left.remove(name);
            assert_eq!(wire, given.as_ref().map(plain), "{}", self.what(name));
            if let Some(given) = given {
                self.wire.fits(&parameter["schema"], &given, &self.what(name));
                found += 1;
            }
        }
        assert_eq!(left, BTreeMap::new(), "{}", self.what("query"));
        found
    }

    /// Whether this parameter is the organisation of the call, which the default dialect sends in a header.
    fn org_goes_into_the_query(&self, parameter: &Value) -> bool {
        let ours = self.wire.ours.get(&self.operation.id);
        let added = ours
            .is_some_and(|ours| !ours.iter().any(|known| known["name"] == "org" && known["in"] == "query"));
        self.full && added && parameter["name"] == "org"
    }

    fn headers(&self) -> usize {
        let mut left: BTreeSet<&str> = self.seen.headers.iter().map(|(name, _)| name.as_str()).collect();
        left.retain(|name| !OWN_HEADERS.contains(name));
        assert_eq!(self.seen.header("authorization"), Some("Bearer key_of_the_suite"));
        let in_query = self.operation.given("query").any(|parameter| self.org_goes_into_the_query(parameter));
        let mut found = 0;
        for parameter in self.operation.given("header") {
            let name = parameter["name"].as_str().unwrap();
            let wire = self.seen.header(name);
            let given = self.given("header", parameter);
            let wanted = match (parameter["x-filled-by"].as_str(), name) {
                (Some("client"), "Idempotency-Key") => {
                    assert!(wire.is_some(), "{}", self.what(name));
                    wire.map(Value::from)
                }
                (Some("client"), name) if name.ends_with("-Org") => {
                    (self.full && !in_query).then(|| Value::from(ORG))
                }
                (Some("client"), "Last-Event-ID") => {
                    // Only a cursor that a header can carry is there a second time.
                    let cursor = self.query.get("cursor").filter(|cursor| cursor.is_ascii());
                    cursor.map(|cursor| Value::from(cursor.as_str()))
                }
                (Some(other), _) => panic!("{}: filled by {other}", self.what(name)),
                (None, _) => {
                    let from = parameter["x-default-from-path"].as_str();
                    let default = from.map(|from| self.given["path"][from].clone());
                    assert_eq!(given.is_some(), self.full, "{}", self.what(name));
                    given.or(default)
                }
            };
            assert_eq!(wire.map(str::to_owned), wanted.as_ref().map(plain), "{}", self.what(name));
            left.remove(name.to_ascii_lowercase().as_str());
            if let Some(wanted) = wanted {
                self.wire.fits(&parameter["schema"], &wanted, &self.what(name));
                found += 1;
            }
        }
        assert_eq!(left, BTreeSet::new(), "{}", self.what("headers"));
        found
    }

    fn body(&self) -> usize {
        let what = self.what("body");
        let Some(schema) = &self.operation.body else {
            assert!(self.seen.body.is_empty(), "{what}");
            return 0;
        };
        let mut wire: Value = serde_json::from_slice(&self.seen.body).unwrap_or_else(|_| panic!("{what}"));
        assert_eq!(self.seen.header("content-type"), Some("application/json"), "{what}");
        self.wire.fits(schema, &wire, &what);
        let mut given = self.given.get("body").cloned().unwrap_or_else(|| json!({}));
        if self.operation.runs_command && self.wire.spec.part("/x-service/commandVariables") == "exports" {
            self.exports(&mut wire, &mut given);
        }
        let found = self.object(schema, &given, true, &what);
        let fields = given.as_object_mut().unwrap();
        for (name, value) in &self.operation.forced {
            if self.wire.spec.resolved(schema)["properties"].get(name).is_some() {
                fields.insert(name.clone(), value.clone());
            }
        }
        assert_eq!(wire, given, "{what}");
        found
    }

    /// Where variables stand in front of the command: takes them out on both sides.
    fn exports(&self, wire: &mut Value, given: &mut Value) {
        let Some(Value::Object(variables)) = given.as_object_mut().unwrap().remove("env") else { return };
        let sent = wire["command"].as_str().unwrap().to_owned();
        let command = given["command"].as_str().unwrap();
        let front = sent.strip_suffix(command).unwrap_or_else(|| panic!("{sent}"));
        for (name, value) in variables {
            let quoted = format!("{name}='{}'", value.as_str().unwrap().replace('\'', "'\\''"));
            assert!(front.contains("export ") && front.contains(&quoted), "{front}");
        }
        assert_eq!(wire.get("env"), None);
        wire["command"] = command.into();
        // So that the walk finds the field given.
        given["env"] = wire["env"].take();
        wire.as_object_mut().unwrap().insert("env".to_owned(), Value::Null);
    }

    /// Every property that the schema names was given, or with as little as possible set only what is required.
    fn object(&self, schema: &Value, given: &Value, outermost: bool, what: &str) -> usize {
        let schema = self.wire.spec.resolved(schema);
        let nothing = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&nothing);
        let given = given.as_object().unwrap_or_else(|| panic!("{what}: {given} is no object"));
        let mut found = 0;
        for (name, property) in properties {
            let hidden = outermost && self.operation.hidden.contains_key(name);
            let required =
                schema["required"].as_array().is_some_and(|all| all.contains(&name.as_str().into()));
            let wanted = !hidden && (self.full || required);
            assert_eq!(given.contains_key(name), wanted, "{what}.{name}");
            if let Some(value) = given.get(name) {
                found += 1 + self.inside(property, value, &format!("{what}.{name}"));
            }
        }
        let strange: Vec<_> = given.keys().filter(|name| !properties.contains_key(*name)).collect();
        assert!(strange.is_empty(), "{what}: {strange:?}");
        found
    }

    fn inside(&self, schema: &Value, given: &Value, what: &str) -> usize {
        let schema = self.wire.spec.resolved(schema);
        if given.is_null() {
            return 0;
        }
        if let Some(items) = given.as_array() {
            assert!(!items.is_empty(), "{what}");
            return items.iter().map(|item| self.inside(&schema["items"], item, what)).sum();
        }
        if schema["properties"].is_object() { self.object(schema, given, false, what) } else { 0 }
    }
}

/// A value as it stands in a path, a query or a header.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Checks every call of a dialect; gives how many there are and how many values they sent with everything set.
fn check_all(dialect: Dialect) -> (usize, usize) {
    let wire = Wire::new(dialect);
    let drives: BTreeMap<&str, Drive> =
        every_call(dialect).into_iter().map(|drive| (drive.operation.id(), drive)).collect();
    let operations = wire.spec.operations();
    assert_eq!(operations.len(), drives.len());
    let mut found = 0;
    for operation in &operations {
        let drive = drives[operation.id.as_str()];
        wire.check(operation, drive.least, false);
        found += wire.check(operation, drive.most_of(dialect), true);
    }
    (operations.len(), found)
}

#[test]
fn every_argument_and_field_is_on_the_wire() {
    let (calls, values) = check_all(Dialect::Sandboxer);
    assert_eq!(calls, 93);
    assert_eq!(values, 348);
}

#[test]
fn every_argument_and_field_is_on_the_wire_in_the_other_dialect() {
    let (calls, values) = check_all(Dialect::Boat);
    assert_eq!(calls, 96);
    assert_eq!(values, 395);
}
