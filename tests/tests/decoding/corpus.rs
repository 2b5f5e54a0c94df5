//! The corpus below `tests/fixtures`: what is answered, and what the client has to make of it.

use std::{collections::BTreeMap, fs, path::Path};

use sandboxer::Dialect;
use serde::Deserialize;
use serde_json::Value;

/// The kinds of cases.
pub(crate) const VARIANTS: [&str; 4] = ["captured", "old", "future", "broken"];

/// One file: a shape, and what becomes of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fixture {
    /// Its name, which is the file's.
    #[serde(skip)]
    pub(crate) name: String,
    /// The operations that answer with it.
    pub(crate) operations: Vec<String>,
    #[serde(default = "default_dialect")]
    dialect: String,
    /// Where the shape is described.
    pub(crate) follows: String,
    /// Texts that no error and no `Debug` may show.
    #[serde(default)]
    pub(crate) secrets: Vec<String>,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The shape itself.
    #[serde(default)]
    pub(crate) answer: Option<Value>,
    #[serde(default)]
    frames: Option<Vec<Value>>,
    #[serde(default)]
    reads: Option<BTreeMap<String, Value>>,
    #[serde(default)]
    gives: Vec<String>,
    #[serde(default)]
    output: Option<Value>,
    #[serde(default)]
    cases: BTreeMap<String, Case>,
}

/// A case: how it differs from the shape, and what is made of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Case {
    /// File and name, for messages.
    #[serde(skip)]
    pub(crate) what: String,
    /// One of [`VARIANTS`].
    pub(crate) variant: String,
    /// The status, if it is not that of the operation's success.
    pub(crate) status: Option<u16>,
    /// Headers, over those every answer has; an empty value takes one away.
    pub(crate) headers: BTreeMap<String, String>,
    /// Another answer than the shape's.
    pub(crate) answer: Option<Value>,
    /// Values to set, by pointer, in the order of the pointers.
    set: BTreeMap<String, Value>,
    /// Pointers to what is left out.
    without: Vec<String>,
    /// The body as it is.
    text: Option<String>,
    /// The frames of a stream: JSON, or lines as they are.
    frames: Option<Vec<Value>>,
    /// What ends the last line.
    ends: Option<String>,
    /// The frames of the connections after the first.
    then: Vec<Vec<Value>>,
    /// What stands before and after the body, and behind its first brace.
    before: String,
    after: String,
    inside: String,
    /// How many bytes are left of it.
    cut: Option<usize>,
    /// Bytes, in hexadecimal digits, for the texts that stand for them.
    bytes: BTreeMap<String, String>,
    /// Values that the client reads, by pointer into the model written as JSON.
    pub(crate) reads: Option<BTreeMap<String, Value>>,
    /// What a stream brings, in order.
    pub(crate) gives: Vec<String>,
    /// What the end of a stream tells.
    pub(crate) output: Option<Value>,
    /// The error.
    pub(crate) fails: Option<Fails>,
    /// More texts that nothing may show.
    pub(crate) secrets: Vec<String>,
}

/// What an error has to be; what is left out may be anything.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Fails {
    pub(crate) kind: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) status: Option<u16>,
    pub(crate) request_id: Option<String>,
    pub(crate) delivery: Option<String>,
    pub(crate) retryable: Option<bool>,
    /// Seconds; null for no wait.
    #[serde(deserialize_with = "present")]
    pub(crate) retry_after: Option<Option<u64>>,
    /// Fields of the details; null for no details.
    #[serde(deserialize_with = "present")]
    pub(crate) details: Option<Option<BTreeMap<String, Value>>>,
    /// A part of the message.
    pub(crate) says: Option<String>,
    /// How long the message is at most.
    pub(crate) longest: Option<usize>,
    pub(crate) command_id: Option<String>,
    /// The standard output that came before.
    pub(crate) partial: Option<String>,
    /// Where reading can go on.
    pub(crate) offsets: Option<[u64; 2]>,
}

fn default_dialect() -> String {
    Dialect::default().to_string()
}

/// Tells null from absent.
fn present<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Some)
}

/// Every file, by name.
pub(crate) fn read() -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let read = serde_json::from_slice::<Fixture>(&fs::read(path).unwrap());
            Fixture { name: name.clone(), ..read.unwrap_or_else(|error| panic!("{name}: {error}")) }
        })
        .collect()
}

/// The file of this name.
pub(crate) fn named(name: &str) -> Fixture {
    read().into_iter().find(|fixture| fixture.name == name).unwrap_or_else(|| panic!("no fixture {name}"))
}

impl Fixture {
    /// Whose shape it is.
    pub(crate) fn dialect(&self) -> Dialect {
        let found = Dialect::ALL.iter().find(|dialect| dialect.to_string() == self.dialect);
        *found.unwrap_or_else(|| panic!("{}: no dialect {}", self.name, self.dialect))
    }

    /// Whether it is the shape of a JSON answer of operations.
    pub(crate) fn is_answer(&self) -> bool {
        self.answer.is_some() && self.name != "webhook"
    }

    /// The cases of its own, the shape itself first.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let whole = Case {
            variant: VARIANTS[0].to_owned(),
            reads: self.reads.clone(),
            gives: self.gives.clone(),
            output: self.output.clone(),
            ..Case::default()
        };
        let has_shape = self.answer.is_some() || self.frames.is_some();
        let all = has_shape.then_some(("whole", whole)).into_iter();
        let all = all.chain(self.cases.iter().map(|(name, case)| (name.as_str(), case.clone())));
        all.map(|(name, case)| self.fitted(name, case)).collect()
    }

    /// The same case for this file's shape, with what the file says of all its cases.
    fn fitted(&self, name: &str, mut case: Case) -> Case {
        case.what = format!("{}, {name}", self.name);
        case.status = case.status.or(self.status);
        for (header, value) in &self.headers {
            case.headers.entry(header.clone()).or_insert_with(|| value.clone());
        }
        case.secrets.extend(self.secrets.iter().cloned());
        if case.answer.is_none() {
            case.answer.clone_from(&self.answer);
        }
        if case.frames.is_none() {
            case.frames.clone_from(&self.frames);
        }
        case
    }

    /// The cases of `every`, made of this file's shape.
    pub(crate) fn joined_with(&self, every: &Self) -> Vec<Case> {
        let all = every.cases.iter().map(|(name, case)| {
            let mut case = self.fitted(&format!("every: {name}"), case.clone());
            // What is not changed is read as ever.
            if let (Some(reads), Some(own)) = (&mut case.reads, &self.reads) {
                reads.extend(own.clone());
            }
            case
        });
        all.collect()
    }
}

impl Case {
    /// The answer as JSON, edited.
    pub(crate) fn value(&self) -> Value {
        let mut value = self.answer.clone().unwrap_or_default();
        for (pointer, new) in &self.set {
            put(&mut value, pointer, Some(new.clone()));
        }
        for pointer in &self.without {
            put(&mut value, pointer, None);
        }
        value
    }

    /// The bodies, in the order of the connections.
    pub(crate) fn bodies(&self, server_sent: bool) -> Vec<Vec<u8>> {
        let first = match (&self.text, &self.frames) {
            (Some(text), _) => text.clone(),
            (None, Some(frames)) => self.streamed(frames, server_sent),
            (None, None) => self.value().to_string(),
        };
        let mut first = format!("{}{}{}", self.before, first, self.after);
        if !self.inside.is_empty() {
            first = first.replacen('{', &format!("{{{}", self.inside), 1);
        }
        let then = self.then.iter().map(|frames| self.streamed(frames, server_sent));
        let bodies = std::iter::once(first).chain(then).map(|body| {
            let mut body = body.into_bytes();
            for (text, digits) in &self.bytes {
                body = replaced(&body, text.as_bytes(), &unhex(digits));
            }
            body.truncate(self.cut.unwrap_or(usize::MAX));
            body
        });
        bodies.collect()
    }

    fn streamed(&self, frames: &[Value], server_sent: bool) -> String {
        if server_sent {
            return frames.iter().map(|frame| block(frame) + "\n\n").collect();
        }
        let lines: Vec<String> = frames.iter().map(plain).collect();
        lines.join("\n") + self.ends.as_deref().unwrap_or("\n")
    }
}

/// A text as it is, anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A message of server-sent events.
fn block(frame: &Value) -> String {
    let Value::Object(fields) = frame else { return plain(frame) };
    let lines = ["id", "event", "data"]
        .into_iter()
        .filter_map(|name| fields.get(name).map(|value| format!("{name}: {}", plain(value))));
    lines.collect::<Vec<_>>().join("\n")
}

/// Sets what `pointer` leads to, or removes it.
pub(crate) fn put(value: &mut Value, pointer: &str, new: Option<Value>) {
    let (parent, name) = pointer.rsplit_once('/').unwrap_or_else(|| panic!("{pointer} is no pointer"));
    match (value.pointer_mut(parent), new) {
        (Some(Value::Object(fields)), Some(new)) => drop(fields.insert(name.to_owned(), new)),
        (Some(Value::Object(fields)), None) => {
            fields.remove(name).unwrap_or_else(|| panic!("{pointer} is not there"));
        }
        (Some(Value::Array(items)), Some(new)) => items[name.parse::<usize>().unwrap()] = new,
        (Some(Value::Array(items)), None) => drop(items.remove(name.parse().unwrap())),
        _ => panic!("{pointer} leads nowhere"),
    }
}

fn replaced(body: &[u8], text: &[u8], with: &[u8]) -> Vec<u8> {
    let (mut done, mut rest) = (Vec::new(), body);
    while let Some(at) = rest.windows(text.len()).position(|window| window == text) {
        done.extend_from_slice(&rest[..at]);
        done.extend_from_slice(with);
        rest = &rest[at + text.len()..];
    }
    assert!(!done.is_empty(), "nothing stands for bytes");
    done.extend_from_slice(rest);
    done
}

fn unhex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}
