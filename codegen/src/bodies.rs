//! What the local server expects in request bodies.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::{
    Artifact, Error, Result, format,
    load::Document,
    names::{ident, snake},
    router::known,
    schema::{Additional, Check, Schema},
    shape::Shape,
};

/// The constant that describes a request schema.
pub(crate) fn body_constant(schema: &str) -> Ident {
    ident(&snake(schema).to_uppercase())
}

/// Generates the server's `generated/bodies.rs`.
pub(crate) fn generate(document: &Document) -> Result<Artifact> {
    let roots = document.operations.iter().filter_map(|o| o.body.as_ref()).map(|body| body.schema.clone());
    let mut constants = TokenStream::new();
    for name in document.reachable(roots)? {
        let schema = document.schema(&name)?;
        if schema.properties.is_empty() {
            continue;
        }
        let fields = schema
            .properties
            .iter()
            .map(|(key, property)| field(document, &name, key, property, schema.required.contains(key)))
            .collect::<Result<Vec<_>>>()?;
        let constant = body_constant(&name);
        let strict = matches!(schema.additional_properties, Some(Additional::Allowed(false)));
        let doc = format!(" {}", schema.description.as_deref().unwrap_or(&name));
        constants.extend(quote! {
            #[doc = #doc]
            pub(crate) const #constant: Body = Body { name: #name, fields: &[#(#fields),*], strict: #strict };
        });
    }
    let tokens = quote! {
        /// A JSON object in a request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct Body {
            /// The schema's name.
            pub(crate) name: &'static str,
            /// The fields it names.
            pub(crate) fields: &'static [Field],
            /// Whether fields that it does not name are refused.
            pub(crate) strict: bool,
        }

        /// A field of a request body.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct Field {
            /// Its name.
            pub(crate) name: &'static str,
            /// What it may be.
            pub(crate) kind: Kind,
            /// Whether it must be given.
            pub(crate) required: bool,
            /// Whether it may be `null`.
            pub(crate) nullable: bool,
            /// The code that a bad value is answered with.
            pub(crate) code: &'static str,
        }

        /// What a value may be.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind {
            /// Text.
            Text {
                /// The fewest characters.
                min: Option<u64>,
                /// The most characters.
                max: Option<u64>,
                /// The most bytes of UTF-8.
                max_bytes: Option<u64>,
                /// A regular expression it matches.
                pattern: Option<&'static str>,
                /// Whether NUL is refused.
                no_nul: bool,
            },
            /// A whole number.
            Integer {
                /// The lowest.
                min: Option<i64>,
                /// The highest.
                max: Option<i64>,
            },
            /// This text, or what else it may be.
            Also {
                /// The text.
                text: &'static str,
                /// What else.
                kind: &'static Kind,
            },
            /// Any number.
            Number,
            /// `true` or `false`.
            Boolean,
            /// One of these texts.
            Values(&'static [&'static str]),
            /// Environment variables: an object of texts under the rules for their names and sizes.
            Env {
                /// The most entries.
                max: Option<u64>,
            },
            /// An object whose values are all of this kind.
            Map(&'static Kind),
            /// A list.
            List {
                /// What each item may be.
                items: &'static Kind,
                /// The fewest items.
                min: Option<u64>,
                /// The most items.
                max: Option<u64>,
            },
            /// An object with fields of its own.
            Object(&'static Body),
            /// Anything.
            Any,
        }

        #constants
    };
    Ok(Artifact {
        path: "mock-server/src/generated/bodies.rs".into(),
        text: format::tokens(tokens, "What the bodies of requests may hold.")?,
    })
}

fn field(document: &Document, body: &str, key: &str, schema: &Schema, required: bool) -> Result<TokenStream> {
    let place = format!("{body}.{key}");
    let mut kind = kind(document, &place, schema)?;
    if let Some(text) = &schema.also {
        kind = quote!(Kind::Also { text: #text, kind: &#kind });
    }
    let nullable = schema.nullable;
    let code = schema.error_code.as_deref().unwrap_or("invalid_request");
    known(document, &place, code)?;
    Ok(quote!(Field { name: #key, kind: #kind, required: #required, nullable: #nullable, code: #code }))
}

fn kind(document: &Document, place: &str, schema: &Schema) -> Result<TokenStream> {
    let size = |n: Option<u64>| n.map_or_else(|| quote!(None), |n| quote!(Some(#n)));
    let number = |n: Option<i64>| n.map_or_else(|| quote!(None), |n| quote!(Some(#n)));
    Ok(match Shape::of(document, place, schema)? {
        Shape::Text | Shape::Secret | Shape::Time => {
            let (min, max, bytes) =
                (size(schema.min_length), size(schema.max_length), size(schema.max_bytes));
            let pattern = schema.pattern.as_ref().map_or_else(|| quote!(None), |p| quote!(Some(#p)));
            let no_nul = schema.check == Some(Check::NoNul);
            quote!(Kind::Text { min: #min, max: #max, max_bytes: #bytes, pattern: #pattern, no_nul: #no_nul })
        }
        Shape::Integer => {
            let (min, max) = (number(schema.minimum), number(schema.maximum));
            quote!(Kind::Integer { min: #min, max: #max })
        }
        Shape::Number => quote!(Kind::Number),
        Shape::Boolean => quote!(Kind::Boolean),
        Shape::Values(name) => {
            let values =
                document.schema(&name)?.values.iter().flatten().filter_map(serde_json::Value::as_str);
            let values: Vec<_> = values.collect();
            quote!(Kind::Values(&[#(#values),*]))
        }
        Shape::Env => {
            let max = size(schema.max_properties);
            quote!(Kind::Env { max: #max })
        }
        Shape::Map(_) => match &schema.additional_properties {
            Some(Additional::Of(value)) => {
                let value = kind(document, place, value)?;
                quote!(Kind::Map(&#value))
            }
            _ => return Err(Error::new(format!("{place}: an odd map"))),
        },
        Shape::List(_) => {
            let items = schema.items.as_deref().ok_or_else(|| Error::new(format!("{place}: an odd list")))?;
            let items = kind(document, place, items)?;
            let (min, max) = (size(schema.min_items), size(schema.max_items));
            quote!(Kind::List { items: &#items, min: #min, max: #max })
        }
        Shape::Named(name) => {
            let constant = body_constant(&name);
            quote!(Kind::Object(&#constant))
        }
        Shape::Any | Shape::AnyMap => quote!(Kind::Any),
    })
}
