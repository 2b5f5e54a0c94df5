//! The local server's route table.

use proc_macro2::TokenStream;
use quote::quote;

use crate::{
    Artifact, Error, Result,
    bodies::body_constant,
    format,
    load::{Document, Operation},
    names::ident,
    schema::{Parameter, Place},
    shape::Shape,
};

/// Generates the server's `generated/router.rs`.
pub(crate) fn generate(document: &Document) -> Result<Artifact> {
    let mut operations: Vec<&Operation> =
        document.operations.iter().filter(|o| o.face_of.is_none()).collect();
    // A literal segment must be tried before a parameter in the same place; `{` sorts after every letter.
    operations.sort_by_key(|o| (o.path.split('/').map(str::to_owned).collect::<Vec<_>>(), o.method.clone()));
    let routes = operations.iter().map(|o| route(document, o)).collect::<Result<Vec<_>>>()?;
    let tokens = quote! {
        use sandboxer::Operation;

        use super::bodies::{self, Body};

        /// One piece of a path.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Segment {
            /// This text.
            Literal(&'static str),
            /// Any text that is not empty, by the name of the path parameter.
            Parameter(&'static str),
        }

        /// What a query parameter may be.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum QueryKind {
            /// Text.
            Text {
                /// The fewest characters.
                min: Option<u64>,
                /// The most characters.
                max: Option<u64>,
                /// A regular expression it matches.
                pattern: Option<&'static str>,
            },
            /// A whole number, with the lowest and highest.
            Integer {
                /// The lowest.
                min: Option<i64>,
                /// The highest.
                max: Option<i64>,
            },
            /// `true` or `false`.
            Boolean,
            /// One of these texts.
            Values(&'static [&'static str]),
        }

        /// A query parameter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct QueryRule {
            /// Its name.
            pub(crate) name: &'static str,
            /// What it may be.
            pub(crate) kind: QueryKind,
            /// Whether it must be given.
            pub(crate) required: bool,
            /// What counts when it is not given, as text.
            pub(crate) default: Option<&'static str>,
            /// The code that a bad value is answered with.
            pub(crate) code: &'static str,
        }

        /// What a request body may be.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum BodyRule {
            /// There is none; what is sent is ignored.
            None,
            /// JSON of this kind, or nothing.
            Optional(&'static Body),
            /// JSON of this kind.
            Required(&'static Body),
        }

        /// One operation's place in the server.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Route {
            /// The operation.
            pub(crate) operation: Operation,
            /// The HTTP method.
            pub(crate) method: &'static str,
            /// The path below the API's root.
            pub(crate) segments: &'static [Segment],
            /// The action that a key must grant; `session` when no key will do.
            pub(crate) action: Option<&'static str>,
            /// The status of a success.
            pub(crate) success: u16,
            /// The query parameters.
            pub(crate) query: &'static [QueryRule],
            /// The body.
            pub(crate) body: BodyRule,
            /// Whether an `Idempotency-Key` counts.
            pub(crate) keyed: bool,
        }

        /// Every route; where a literal and a parameter stand in the same place, the literal comes first.
        pub(crate) const ROUTES: &[Route] = &[#(#routes),*];
    };
    Ok(Artifact {
        path: "mock-server/src/generated/router.rs".into(),
        text: format::tokens(tokens, "The paths the server answers and what each takes.")?,
    })
}

fn route(document: &Document, operation: &Operation) -> Result<TokenStream> {
    let segments = operation.path.split('/').filter(|piece| !piece.is_empty()).map(|piece| {
        match piece.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(name) => quote!(Segment::Parameter(#name)),
            None => quote!(Segment::Literal(#piece)),
        }
    });
    let query = operation
        .given(Place::Query)
        .map(|parameter| query_rule(document, operation, parameter))
        .collect::<Result<Vec<_>>>()?;
    let body = match &operation.body {
        None => quote!(BodyRule::None),
        Some(body) => {
            let constant = body_constant(&body.schema);
            if body.required {
                quote!(BodyRule::Required(&bodies::#constant))
            } else {
                quote!(BodyRule::Optional(&bodies::#constant))
            }
        }
    };
    let variant = ident(&operation.variant());
    let action = match &operation.key_action {
        Some(action) => quote!(Some(#action)),
        None => quote!(None),
    };
    let (method, success, keyed) = (&operation.method, operation.success, operation.keyed());
    Ok(quote! {
        Route {
            operation: Operation::#variant,
            method: #method,
            segments: &[#(#segments),*],
            action: #action,
            success: #success,
            query: &[#(#query),*],
            body: #body,
            keyed: #keyed,
        }
    })
}

fn query_rule(document: &Document, operation: &Operation, parameter: &Parameter) -> Result<TokenStream> {
    let schema = match parameter.schema.referred() {
        Some(name) => document.schema(name)?,
        None => &parameter.schema,
    };
    let place = format!("{}.{}", operation.id, parameter.name);
    let number = |value: Option<i64>| option(value.map(|n| quote!(#n)));
    let length = |value: Option<u64>| option(value.map(|n| quote!(#n)));
    let kind = match Shape::of(document, &place, &parameter.schema)? {
        Shape::Text | Shape::Secret => {
            let (min, max) = (length(schema.min_length), length(schema.max_length));
            let pattern = option(schema.pattern.as_ref().map(|pattern| quote!(#pattern)));
            quote!(QueryKind::Text { min: #min, max: #max, pattern: #pattern })
        }
        Shape::Integer => {
            let (min, max) = (number(schema.minimum), number(schema.maximum));
            quote!(QueryKind::Integer { min: #min, max: #max })
        }
        Shape::Boolean => quote!(QueryKind::Boolean),
        Shape::Values(_) => {
            let values = schema.values.iter().flatten().filter_map(serde_json::Value::as_str);
            quote!(QueryKind::Values(&[#(#values),*]))
        }
        _ => return Err(Error::new(format!("{place}: a query parameter of this kind is not understood"))),
    };
    let default = option(schema.default.as_ref().map(|value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        quote!(#text)
    }));
    let name = &parameter.name;
    let required = parameter.required;
    let code = parameter.schema.error_code.as_deref().unwrap_or("invalid_request");
    known(document, &place, code)?;
    Ok(quote! {
        QueryRule { name: #name, kind: #kind, required: #required, default: #default, code: #code }
    })
}

/// Refuses a code that the document does not describe.
pub(crate) fn known(document: &Document, place: &str, code: &str) -> Result<()> {
    if document.errors.contains_key(code) {
        return Ok(());
    }
    Err(Error::new(format!("{place}: the code `{code}` is not described")))
}

fn option(value: Option<TokenStream>) -> TokenStream {
    value.map_or_else(|| quote!(None), |value| quote!(Some(#value)))
}
