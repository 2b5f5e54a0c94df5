//! Sample values of what is sent: valid by the schema, as JSON and as the Rust expression that makes them.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::TokenStream;
use quote::quote;
use serde_json::{Map, Value, json};

use crate::{
    Error, Result,
    load::{Document, Operation},
    names::{field_among, ident, pascal},
    schema::{Additional, Place, Schema},
    shape::Shape,
};

/// Texts that may fit a pattern; the first that does is taken. A pattern that none fits wants one more here.
const CANDIDATES: [&str; 9] = [
    "sample",
    "sample-1",
    "SAMPLE_1",
    "90d",
    "0644",
    "bytes=0-99",
    "24h",
    "2026-01-02",
    "delete archived sandbox data",
];

/// How much of what may be given is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// What is required.
    Least,
    /// Everything.
    Most,
}

/// A value, twice.
pub(crate) struct Sample {
    /// As it is seen on the wire.
    pub json: Value,
    /// As it is written in Rust.
    pub code: TokenStream,
}

impl Sample {
    fn new(json: impl Into<Value>, code: TokenStream) -> Self {
        Self { json: json.into(), code }
    }
}

/// What a call of an operation is given.
pub(crate) struct Given {
    /// The path ids, in the path's order.
    pub ids: Vec<TokenStream>,
    /// The request's type and the expression that makes one.
    pub request: Option<(String, TokenStream)>,
    /// Everything by its name on the wire, below `path`, `query`, `header` and `body`.
    pub sent: Value,
}

/// Makes samples for one dialect.
pub(crate) struct Samples<'a> {
    document: &'a Document,
    dialect: &'a str,
    /// Fields of bodies that only streaming faces send.
    forced: BTreeMap<&'a str, BTreeSet<&'a str>>,
}

/// One field or parameter on its way.
struct Field<'a> {
    key: &'a str,
    rust: proc_macro2::Ident,
    schema: &'a Schema,
    required: bool,
    place: Venue,
}

/// Values by place and name.
type Placed = Vec<(Venue, String, Value)>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Venue {
    Path,
    Query,
    Header,
    Body,
}

impl<'a> Samples<'a> {
    /// Samples of what `dialect` takes.
    pub(crate) fn new(document: &'a Document, dialect: &'a str) -> Self {
        let mut forced: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for operation in &document.operations {
            if let (Some(body), Some((_, fields))) = (&operation.body, &operation.face_of) {
                forced.entry(&body.schema).or_default().extend(fields.keys().map(String::as_str));
            }
        }
        Self { document, dialect, forced }
    }

    /// What a call is given.
    pub(crate) fn call(&self, operation: &'a Operation, fill: Fill) -> Result<Given> {
        let (mut ids, mut path) = (Vec::new(), Map::new());
        for (index, parameter) in operation.given(Place::Path).enumerate() {
            let place = format!("{}.{}", operation.id, parameter.name);
            let shape = Shape::of(self.document, &place, &parameter.schema)?;
            let venue = if fill == Fill::Least { Venue::Header } else { Venue::Path };
            let sample =
                self.value(&place, &parameter.name, index, venue, &shape, &parameter.schema, fill)?;
            let value = &sample.json;
            ids.push(match (value.as_str(), value.as_i64()) {
                (Some(text), _) => quote!(#text),
                (_, Some(number)) => quote!(#number),
                _ => return Err(Error::new(format!("{place}: a path id is text or a number"))),
            });
            path.insert(parameter.name.clone(), sample.json);
        }
        let mut fields = Vec::new();
        for (place, venue) in [(Place::Query, Venue::Query), (Place::Header, Venue::Header)] {
            fields.extend(operation.given(place).map(|parameter| Field {
                key: &parameter.name,
                rust: parameter.rust_name(),
                schema: &parameter.schema,
                required: parameter.required && parameter.default_from_path.is_none(),
                place: venue,
            }));
        }
        if let Some(body) = &operation.body {
            fields.extend(self.fields(&body.schema)?);
        }
        let request = operation.params_name().or_else(|| operation.body.as_ref().map(|b| b.schema.clone()));
        let mut sent = json!({"path": path});
        let request = match request {
            None => None,
            Some(name) => {
                let (code, all) = self.made(&name, &fields, fill)?;
                for (venue, key, value) in all {
                    let group = match venue {
                        Venue::Path => "path",
                        Venue::Query => "query",
                        Venue::Header => "header",
                        Venue::Body => "body",
                    };
                    sent[group][key] = value;
                }
                Some((name, code))
            }
        };
        Ok(Given { ids, request, sent })
    }

    /// The fields of a request body that the caller gives.
    fn fields(&self, name: &'a str) -> Result<Vec<Field<'a>>> {
        let schema = self.document.schema(name)?;
        let hidden = |key: &str| self.forced.get(name).is_some_and(|keys| keys.contains(key));
        let given = schema.properties.iter().filter(|(key, _)| !hidden(key));
        Ok(given
            .map(|(key, property)| Field {
                key,
                rust: field_among(key, schema.properties.keys()),
                schema: property,
                required: schema.required.contains(key),
                place: Venue::Body,
            })
            .collect())
    }

    /// The expression that makes a struct, and its values by place and name.
    fn made(&self, name: &str, fields: &[Field<'a>], fill: Fill) -> Result<(TokenStream, Placed)> {
        let (mut arguments, mut setters, mut values) = (Vec::new(), TokenStream::new(), Vec::new());
        for (index, field) in fields.iter().enumerate() {
            let foreign = field.schema.dialect.as_deref().is_some_and(|dialect| dialect != self.dialect);
            if !field.required && (fill == Fill::Least || foreign) {
                continue;
            }
            let place = format!("{name}.{}", field.key);
            let shape = Shape::of(self.document, &place, field.schema)?;
            let mut sample = self.value(&place, field.key, index, field.place, &shape, field.schema, fill)?;
            if fill == Fill::Least && field.schema.nullable && field.place == Venue::Body {
                let kind = self::kind(&shape);
                sample = Sample::new(Value::Null, quote!(None::<#kind>));
            }
            let (rust, code) = (&field.rust, &sample.code);
            if field.required {
                arguments.push(code.clone());
            } else {
                setters.extend(quote!(.#rust(#code)));
            }
            values.push((field.place, field.key.to_owned(), sample.json));
        }
        let name = ident(name);
        Ok((quote!(models::#name::new(#(#arguments),*) #setters), values))
    }

    /// A value of a schema. `index` makes the numbers of one request differ.
    #[expect(clippy::too_many_arguments, reason = "one value's whole surroundings")]
    fn value(
        &self,
        place: &str,
        name: &str,
        index: usize,
        venue: Venue,
        shape: &Shape,
        schema: &'a Schema,
        fill: Fill,
    ) -> Result<Sample> {
        let target = schema.referred().map(|name| self.document.schema(name)).transpose()?;
        let schema = target.unwrap_or(schema);
        Ok(match shape {
            Shape::Text | Shape::Secret | Shape::Time => {
                let text = match shape {
                    Shape::Time => "2026-01-02T03:04:05.678Z".to_owned(),
                    _ => self.text(place, name, venue, schema)?,
                };
                let kind = self::kind(shape);
                Sample::new(text.clone(), quote!(#kind::from(#text)))
            }
            Shape::Integer => {
                let low = schema.minimum.unwrap_or(1);
                let number = low.saturating_add(7).saturating_add(i64::try_from(index).unwrap_or_default());
                let number = number.min(schema.maximum.unwrap_or(i64::MAX));
                Sample::new(number, quote!(#number))
            }
            Shape::Number => Sample::new(0.75, quote!(0.75)),
            Shape::Boolean => {
                let value = schema.default != Some(Value::Bool(true));
                Sample::new(value, quote!(#value))
            }
            Shape::Values(values) => {
                let own = self.document.schema(values)?;
                let known = own.values.iter().flatten().find(|value| Some(*value) != own.default.as_ref());
                let text = known.and_then(Value::as_str);
                let text = text.ok_or_else(|| Error::new(format!("{place}: there is no known value")))?;
                let (values, variant) = (ident(values), ident(&pascal(text)));
                Sample::new(text, quote!(models::#values::#variant))
            }
            Shape::Named(named) => {
                let named = self.document.schemas.get_key_value(named).map(|(name, _)| name.as_str());
                let named = named.ok_or_else(|| Error::new(format!("{place}: an unknown schema")))?;
                let (code, values) = self.made(named, &self.fields(named)?, fill)?;
                let values = values.into_iter().map(|(_, key, value)| (key, value));
                Sample::new(Map::from_iter(values), code)
            }
            Shape::List(item) => {
                let items = schema.items.as_deref();
                let items = items.ok_or_else(|| Error::new(format!("{place}: a list of what?")))?;
                // Two, so that their order shows, unless the values could be the same.
                let several = !matches!(**item, Shape::Values(_) | Shape::Boolean);
                let least = usize::try_from(schema.min_items.unwrap_or(0)).unwrap_or_default();
                let most = usize::try_from(schema.max_items.unwrap_or(2)).unwrap_or(2).min(2);
                let count = if several && fill == Fill::Most { most } else { 1 }.max(least);
                let (mut list, mut codes) = (Vec::new(), Vec::new());
                for number in 0..count {
                    let name = format!("{name} {number}");
                    let sample = self.value(place, &name, index + number, venue, item, items, fill)?;
                    list.push(sample.json);
                    codes.push(sample.code);
                }
                Sample::new(list, quote!(vec![#(#codes),*]))
            }
            Shape::Map(value) => {
                let Some(Additional::Of(values)) = &schema.additional_properties else {
                    return Err(Error::new(format!("{place}: a map of what?")));
                };
                let sample = self.value(place, name, index, venue, value, values, fill)?;
                let code = sample.code;
                Sample::new(
                    json!({"x-sample": sample.json}),
                    quote!(std::collections::BTreeMap::from([(String::from("x-sample"), #code)])),
                )
            }
            Shape::Env => Sample::new(
                json!({"CI": "1", "GREETING": "it's \"me\""}),
                quote!(sandboxer::wire::EnvMap::from([("CI", "1"), ("GREETING", "it's \"me\"")])),
            ),
            Shape::Any => Sample::new("sample", quote!(serde_json::Value::from("sample"))),
            Shape::AnyMap => {
                let code = quote!(serde_json::Map::from_iter([(String::from("sample"), true.into())]));
                Sample::new(json!({"sample": true}), code)
            }
        })
    }

    /// A text that fits, with what its place on the wire has to encode where the schema lets it.
    fn text(&self, place: &str, name: &str, venue: Venue, schema: &Schema) -> Result<String> {
        if let Some(values) = &schema.values {
            let text = values.first().and_then(Value::as_str);
            return text.map(str::to_owned).ok_or_else(|| Error::new(format!("{place}: an odd value")));
        }
        let pattern = schema.dialect_patterns.get(self.dialect).or(schema.pattern.as_ref());
        let length = schema.min_length.unwrap_or(0)..=schema.max_length.unwrap_or(u64::MAX);
        let regex = pattern.map(|pattern| {
            regex_lite::Regex::new(pattern).map_err(|error| Error::new(format!("{place}: {error}")))
        });
        let regex = regex.transpose()?;
        let fits = |text: &str| {
            length.contains(&(text.chars().count() as u64)) && regex.as_ref().is_none_or(|r| r.is_match(text))
        };
        let first = match venue {
            Venue::Path => format!("{name} a/b?%\u{fc}"),
            Venue::Query => format!("{name} &=+%\u{fc}"),
            Venue::Header => format!("{name}-1"),
            Venue::Body => format!("{name} \"\\\u{fc}\n"),
        };
        let all = std::iter::once(first.as_str()).chain(CANDIDATES);
        let found = all.filter(|text| fits(text)).map(str::to_owned).next();
        found.ok_or_else(|| Error::new(format!("{place}: no sample fits; give `CANDIDATES` one that does")))
    }
}

/// The type of a shape, as a user of the SDK names it.
fn kind(shape: &Shape) -> TokenStream {
    match shape {
        Shape::Text => quote!(String),
        Shape::Time => quote!(sandboxer::wire::Timestamp),
        Shape::Secret => quote!(sandboxer::wire::Secret),
        Shape::Integer => quote!(i64),
        Shape::Number => quote!(f64),
        Shape::Boolean => quote!(bool),
        Shape::Values(name) | Shape::Named(name) => {
            let name = ident(name);
            quote!(models::#name)
        }
        Shape::List(item) => {
            let item = kind(item);
            quote!(Vec<#item>)
        }
        Shape::Map(value) => {
            let value = kind(value);
            quote!(std::collections::BTreeMap<String, #value>)
        }
        Shape::Env => quote!(sandboxer::wire::EnvMap),
        Shape::Any => quote!(serde_json::Value),
        Shape::AnyMap => quote!(serde_json::Map<String, serde_json::Value>),
    }
}
