//! Overlays: what a sibling of the service does otherwise, as named edits of the parsed document.
//!
//! An overlay gives two documents. [`Overlay::apply`] gives the sibling's own: every edit made. [`Overlay::join`] gives what
//! one client for both is generated from: what the sibling *adds* is in, marked as its own; what it calls otherwise or does
//! not have is left to the dialect tables, which compare the two documents.

use indexmap::IndexMap;
use serde::Deserialize;
use serde_yaml_ng::{Mapping, Value};

use crate::{Error, Result, load::Document};

/// An overlay, as written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Overlay {
    #[serde(rename = "overlay")]
    version: u32,
    #[serde(rename = "document")]
    _document: String,
    edits: Vec<Edit>,
    /// The dialect's name, from its file's.
    #[serde(skip)]
    pub dialect: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    name: String,
    expect: usize,
    set: Option<Set>,
    add: Option<Add>,
    rename: Option<Rename>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    at: Pointers,
    value: Value,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Add {
    at: Pointers,
    value: Value,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rename {
    at: Option<Pointers>,
    from: String,
    to: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Pointers {
    One(String),
    Many(Vec<String>),
}

impl Pointers {
    fn list(&self) -> &[String] {
        match self {
            Self::One(pointer) => std::slice::from_ref(pointer),
            Self::Many(pointers) => pointers,
        }
    }
}

impl Overlay {
    /// Reads the overlay of a file called `name`.
    pub(crate) fn read(name: &str, text: &str) -> Result<Self> {
        let failed = |error| Error::new(format!("{name}: {error}"));
        let mut overlay: Self = serde_yaml_ng::from_str(text).map_err(failed)?;
        if overlay.version != 1 {
            return Err(Error::new(format!("{name}: only version 1 of overlays is understood")));
        }
        let file = name.rsplit('/').next().unwrap_or(name);
        overlay.dialect = file.split('.').next().unwrap_or(file).to_owned();
        Ok(overlay)
    }

    /// Makes every edit.
    pub(crate) fn apply(&self, document: &Value) -> Result<Value> {
        let mut document = document.clone();
        for edit in &self.edits {
            let count = edit.apply(&mut document).map_err(|error| edit.named(&error))?;
            if count != edit.expect {
                let text = format!("changed {count} places, {} were expected", edit.expect);
                return Err(edit.named(&Error::new(text)));
            }
        }
        Ok(document)
    }

    /// Puts in what is added, in the document's own spelling of codes, marked as this dialect's. `own` is the dialect's own
    /// document.
    pub(crate) fn join(&self, document: &Value, own: &Document) -> Result<Value> {
        let mut joined = document.clone();
        let none = IndexMap::new();
        let aliases = own.service.as_ref().map_or(&none, |service| &service.code_aliases);
        for edit in &self.edits {
            self.join_edit(edit, aliases, &mut joined).map_err(|error| edit.named(&error))?;
        }
        Ok(joined)
    }

    fn join_edit(&self, edit: &Edit, aliases: &IndexMap<String, String>, document: &mut Value) -> Result<()> {
        if let Some(add) = &edit.add {
            let mut value = add.value.clone();
            respell(&mut value, aliases);
            for pointer in add.at.list() {
                // Who pays is the client's to say: the dialect tables tell where it goes.
                if pointer.starts_with("/paths/") && pointer.ends_with("/parameters") {
                    continue;
                }
                let mut value = value.clone();
                self.mark(pointer, &mut value);
                put(at(document, pointer)?, &value)?;
            }
        }
        if let Some(set) = &edit.set {
            for pointer in set.at.list() {
                let (parent, key) = pointer.rsplit_once('/').unwrap_or_default();
                match key {
                    "enum" => {
                        let missing = {
                            let known = at(document, pointer)?.as_sequence().cloned().unwrap_or_default();
                            let values = set.value.as_sequence().cloned().unwrap_or_default();
                            values.into_iter().filter(|value| !known.contains(value)).collect()
                        };
                        put(at(document, pointer)?, &Value::Sequence(missing))?;
                    }
                    "pattern" => {
                        let patterns = Mapping::from_iter([(self.dialect.clone().into(), set.value.clone())]);
                        insert(at(document, parent)?, "x-dialect-patterns", patterns.into());
                    }
                    // Told by the dialect tables, or only words.
                    "x-service" | "url" | "title" | "description" | "x-key-action" => {}
                    _ => return Err(Error::new(format!("{pointer}: the client cannot be told of this"))),
                }
            }
        }
        Ok(())
    }

    /// Marks operations and request fields as this dialect's alone.
    fn mark(&self, pointer: &str, value: &mut Value) {
        let Some(entries) = value.as_mapping_mut() else { return };
        let mark = |value: &mut Value| insert(value, "x-dialect", self.dialect.clone().into());
        if pointer.starts_with("/paths") {
            for item in entries.values_mut() {
                if item.get("operationId").is_some() {
                    mark(item);
                } else if let Some(operations) = item.as_mapping_mut() {
                    operations.values_mut().filter(|value| value.get("operationId").is_some()).for_each(mark);
                }
            }
        } else if pointer.starts_with("/components/schemas/") && pointer.ends_with("/properties") {
            entries.values_mut().for_each(mark);
        }
    }
}

impl Edit {
    fn named(&self, error: &Error) -> Error {
        Error::new(format!("overlay edit `{}`: {error}", self.name))
    }

    fn apply(&self, document: &mut Value) -> Result<usize> {
        let mut count = 0;
        match (&self.set, &self.add, &self.rename) {
            (Some(set), None, None) => {
                for pointer in set.at.list() {
                    let place = at(document, pointer)?;
                    if *place == set.value {
                        return Err(Error::new(format!("{pointer}: it is that already")));
                    }
                    *place = set.value.clone();
                    count += 1;
                }
            }
            (None, Some(add), None) => {
                for pointer in add.at.list() {
                    count += put(at(document, pointer)?, &add.value)?;
                }
            }
            (None, None, Some(change)) => match &change.at {
                None => count += rename(document, &change.from, &change.to)?,
                Some(pointers) => {
                    for pointer in pointers.list() {
                        count += rename(at(document, pointer)?, &change.from, &change.to)?;
                    }
                }
            },
            _ => return Err(Error::new("it must have one of `set`, `add` and `rename`")),
        }
        Ok(count)
    }
}

/// The place a pointer names; in a list of named things a segment is an index or a name.
fn at<'a>(document: &'a mut Value, pointer: &str) -> Result<&'a mut Value> {
    let mut place = document;
    for segment in pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        let next = match place {
            Value::Mapping(map) => map.get_mut(segment.as_str()),
            Value::Sequence(list) => match segment.parse::<usize>() {
                Ok(index) => list.get_mut(index),
                Err(_) => list
                    .iter_mut()
                    .find(|item| item.get("name").and_then(Value::as_str) == Some(segment.as_str())),
            },
            _ => None,
        };
        place = next.ok_or_else(|| Error::new(format!("{pointer}: there is no `{segment}`")))?;
    }
    Ok(place)
}

fn insert(place: &mut Value, key: &str, value: Value) {
    if let Some(map) = place.as_mapping_mut() {
        map.insert(key.into(), value);
    }
}

/// Puts entries into a mapping or a list that has none of them.
fn put(place: &mut Value, value: &Value) -> Result<usize> {
    let there = |what: &Value| Error::new(format!("{what:?} is there already"));
    match (place, value) {
        (Value::Mapping(map), Value::Mapping(more)) => {
            for (key, value) in more {
                if map.contains_key(key) {
                    return Err(there(key));
                }
                map.insert(key.clone(), value.clone());
            }
            Ok(more.len())
        }
        (Value::Sequence(list), Value::Sequence(more)) => {
            for value in more {
                if list.contains(value) {
                    return Err(there(value));
                }
                list.push(value.clone());
            }
            Ok(more.len())
        }
        _ => Err(Error::new("only a mapping takes a mapping, and a list a list")),
    }
}

/// Gives keys and texts another name.
fn rename(place: &mut Value, from: &str, to: &str) -> Result<usize> {
    let mut count = 0;
    match place {
        Value::Mapping(map) => {
            if map.contains_key(from) {
                if map.contains_key(to) {
                    return Err(Error::new(format!("`{to}` is there already")));
                }
                let old = std::mem::take(map);
                map.extend(old.into_iter().map(|(key, value)| match key.as_str() {
                    Some(name) if name == from => (to.into(), value),
                    _ => (key, value),
                }));
                count += 1;
            }
            for value in map.values_mut() {
                count += rename(value, from, to)?;
            }
        }
        Value::Sequence(list) => {
            for value in list {
                count += rename(value, from, to)?;
            }
        }
        Value::String(text) if text == from => {
            *text = to.to_owned();
            count += 1;
        }
        _ => {}
    }
    Ok(count)
}

/// Texts that are a dialect's spelling of something become the document's.
fn respell(value: &mut Value, aliases: &IndexMap<String, String>) {
    match value {
        Value::Mapping(map) => map.values_mut().for_each(|value| respell(value, aliases)),
        Value::Sequence(list) => list.iter_mut().for_each(|value| respell(value, aliases)),
        Value::String(text) => {
            if let Some(meant) = aliases.get(text) {
                *text = meant.clone();
            }
        }
        _ => {}
    }
}
