//! One field is lost, null, of another type, huge or deep; or the answer ends early. What comes of it follows from the document
//! alone: a field that is not essential is lost by itself, one that is takes along what is nothing without it.

use sandboxer::{Dialect, ErrorKind};
use sandboxer_tests::spec::Spec;
use serde_json::{Map, Value, json};

use crate::{corpus, wire::Wire};

/// A step from a value into it.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Item(usize),
}

type Place = Vec<Step>;

/// What is done to a place.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Removed,
    Null,
    Other,
    Huge,
    Deep,
}

const CHANGES: [Change; 5] = [Change::Removed, Change::Null, Change::Other, Change::Huge, Change::Deep];
/// At how many bytes an answer ends early.
const CUTS: usize = 24;

/// Every place of a value; of a list its first item.
fn places(value: &Value, here: &Place, all: &mut Vec<Place>) {
    let mut step = |step: Step, value: &Value| {
        let place = [here.clone(), vec![step]].concat();
        all.push(place.clone());
        places(value, &place, all);
    };
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| step(Step::Field(name.clone()), value))
        }
        Value::Array(items) => items.iter().take(1).for_each(|value| step(Step::Item(0), value)),
        _ => {}
    }
}

fn at<'a>(value: &'a mut Value, place: &[Step]) -> Option<&'a mut Value> {
    place.iter().try_fold(value, |value, step| match step {
        Step::Field(name) => value.get_mut(name.as_str()),
        Step::Item(index) => value.get_mut(*index),
    })
}

fn without(value: &Value, place: &[Step]) -> Value {
    let mut value = value.clone();
    let (last, parent) = place.split_last().expect("a place");
    match (at(&mut value, parent), last) {
        (Some(Value::Object(fields)), Step::Field(name)) => drop(fields.remove(name)),
        (Some(Value::Array(items)), Step::Item(index)) if *index < items.len() => drop(items.remove(*index)),
        _ => {}
    }
    value
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(Value::Null, |inner, _| json!([inner]))
}

fn changed(value: &Value, place: &[Step], change: Change) -> Value {
    if change == Change::Removed {
        return without(value, place);
    }
    let mut value = value.clone();
    let found = at(&mut value, place).expect("a place");
    *found = match (change, &*found) {
        (Change::Null, _) => Value::Null,
        (Change::Huge, Value::Number(_)) => json!(1e300),
        (Change::Huge, _) => "x".repeat(50_000).into(),
        (Change::Deep, _) => deep(90),
        (_, Value::Object(_)) => json!(["another"]),
        (_, Value::Array(_) | Value::Bool(_) | Value::Number(_)) => json!({"another": "type"}),
        _ => json!(7.5),
    };
    value
}

/// Where a place is in the document: whether each step leads to what is essential, and whether its type is told at all.
struct Walk {
    essential: Vec<bool>,
    typed: bool,
    /// It is what a choice is told by.
    tells: bool,
}

fn walk(spec: &Spec, schema: &Value, value: &Value, place: &[Step]) -> Walk {
    let (mut schema, mut value) = (schema, value);
    let mut walk = Walk { essential: Vec::new(), typed: true, tells: false };
    for step in place {
        schema = spec.resolved(schema);
        walk.tells = false;
        if let Some(tag) = schema.pointer("/discriminator/propertyName").and_then(Value::as_str) {
            walk.tells = *step == Step::Field(tag.to_owned());
            let target = value[tag].as_str().and_then(|kind| schema["discriminator"]["mapping"].get(kind));
            schema = target
                .map_or(&Value::Null, |target| spec.part(target.as_str().unwrap().trim_start_matches('#')));
        }
        match step {
            Step::Field(name) => {
                let essential = schema["x-essential"].as_array();
                walk.essential.push(essential.is_some_and(|names| names.contains(&name.as_str().into())));
                schema = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
                value = &value[name];
            }
            Step::Item(index) => {
                walk.essential.push(false);
                schema = &schema["items"];
                value = &value[*index];
            }
        }
        let resolved = spec.resolved(schema);
        walk.typed = resolved.get("type").is_some() || resolved.get("oneOf").is_some();
    }
    walk
}

/// What is left out when the place is of no use: itself, or what is nothing without it; `None` for the whole answer.
fn lost<'a>(place: &'a [Step], essential: &[bool]) -> Option<&'a [Step]> {
    let last = essential.iter().rposition(|essential| !essential)?;
    Some(&place[..=last])
}

struct Sweep<'a> {
    wire: &'a Wire,
    id: &'a str,
    calls: usize,
}

impl Sweep<'_> {
    fn ask(&mut self, body: Vec<u8>) -> sandboxer::Result<Value> {
        self.calls += 1;
        self.wire.play([self.wire.turn(self.id, None, &Default::default(), body)]);
        self.wire.call(self.id).map(|made| made.value)
    }

    fn change(&mut self, answer: &Value, read: &Value, place: &[Step], change: Change) {
        let schema = self.wire.operation(self.id).answer.clone().unwrap();
        let walk = walk(&self.wire.spec, &schema, answer, place);
        let what = format!("{}: {place:?} {change:?}", self.id);
        if walk.tells && change == Change::Huge {
            return; // Another kind of answer, which is kept as it is.
        }
        let result = self.ask(changed(answer, place, change).to_string().into_bytes());
        let essential = walk.essential.last() == Some(&true);
        let beside = |value: &Value| without(value, place) == without(read, place);
        // A long text is one, and what may be anything is anything: then it is read.
        let may_be_read =
            !essential || !walk.typed || matches!(change, Change::Null | Change::Huge | Change::Deep);
        if may_be_read && result.as_ref().is_ok_and(beside) {
            return;
        }
        match (lost(place, &walk.essential), result) {
            (Some(lost), Ok(value)) => {
                let gone = without(read, lost);
                let kept = if matches!(lost.last(), Some(Step::Item(_))) {
                    value.clone()
                } else {
                    without(&value, lost)
                };
                assert_eq!(kept, gone, "{what} takes more along than {lost:?}");
            }
            (None, Err(error)) => {
                assert_eq!(
                    (error.kind(), error.code()),
                    (ErrorKind::Unexpected, "unexpected_response"),
                    "{what}"
                );
                let message = error.message();
                let Some(Step::Field(name)) = place.last() else { panic!("{what}: {error}") };
                assert!(
                    message.starts_with(&format!("the answer to {} cannot be read", self.id)),
                    "{what}: {message}"
                );
                assert!(message.contains(&format!("{name}` is essential")), "{what}: {message}");
            }
            (lost, result) => panic!("{what}: expected to lose {lost:?}, found {result:?}"),
        }
    }

    fn cut(&mut self, text: &str, end: usize) {
        let what = format!("{}, cut at {end}", self.id);
        let error = self.ask(text.as_bytes()[..end].to_vec()).unwrap_err();
        assert_eq!(
            (error.kind(), error.code()),
            (ErrorKind::Connection, "connection_error"),
            "{what}: {error}"
        );
        assert!(error.message().contains(&format!("ends early, after {end} bytes")), "{what}: {error}");
        assert_eq!(error.operation().map(|operation| operation.id()), Some(self.id), "{what}");
    }
}

/// The odd ends of a text of this length: a few at both ends, the rest in even steps.
fn cuts(length: usize) -> impl Iterator<Item = usize> {
    let step = (length / CUTS).max(1);
    (0..length).filter(move |end| end % step == 0 || *end + 3 >= length)
}

fn sweep(dialect: Dialect, part: usize, parts: usize) -> usize {
    let wire = Wire::new(dialect);
    let fixtures = corpus::read();
    let fixtures = fixtures.iter().filter(|f| f.is_answer() && f.dialect() == dialect);
    let mut calls = 0;
    for fixture in fixtures.enumerate().filter(|(index, _)| index % parts == part).map(|(_, fixture)| fixture)
    {
        let mut sweep = Sweep { wire: &wire, id: &fixture.operations[0], calls: 0 };
        let answer = fixture.answer.clone().unwrap();
        let read = sweep.ask(answer.to_string().into_bytes()).unwrap();
        let mut all = Vec::new();
        places(&answer, &Vec::new(), &mut all);
        for place in &all {
            for change in CHANGES {
                sweep.change(&answer, &read, place, change);
            }
        }
        let text = answer.to_string();
        cuts(text.len()).for_each(|end| sweep.cut(&text, end));
        // Deeper than anyone reads: an error or an answer, and no end of the stack.
        let mut bottomless = answer.as_object().cloned().unwrap_or_else(Map::new);
        bottomless.insert("bottom".into(), Value::Null);
        let body = Value::Object(bottomless).to_string();
        let body = body.replacen(
            "\"bottom\":null",
            &format!("\"bottom\":{}{}", "[".repeat(20_000), "]".repeat(20_000)),
            1,
        );
        if let Err(error) = sweep.ask(body.into_bytes()) {
            assert_eq!(error.code(), "unexpected_response", "{}", sweep.id);
        }
        calls += sweep.calls;
    }
    calls
}

#[test]
fn one_odd_field_loses_no_more_than_it_must() {
    let calls = sweep(Dialect::Sandboxer, 0, 2);
    assert!(calls > 4000, "{calls}");
}

#[test]
fn one_odd_field_loses_no_more_than_it_must_in_the_other_half() {
    let calls = sweep(Dialect::Sandboxer, 1, 2);
    assert!(calls > 4000, "{calls}");
}

#[test]
fn one_odd_field_loses_no_more_than_it_must_in_the_other_dialect() {
    let calls = sweep(Dialect::Boat, 0, 1);
    assert!(calls > 400, "{calls}");
}
