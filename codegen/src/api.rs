//! The public low-level client: one method an operation.

use proc_macro2::TokenStream;
use quote::quote;

use crate::{
    Artifact, Error, Result, docs,
    edits::face_body_name,
    engine::Engine,
    format,
    load::{Answer, Document, Operation, RepeatClass},
    names::{callable, field, ident, pascal},
    schema::{Parameter, Place},
    shape::Shape,
    validation::{Access, checks},
};

/// Generates `generated/api.rs`.
pub(crate) fn generate(document: &Document, engine: &Engine) -> Result<Artifact> {
    let methods =
        document.called().map(|operation| method(document, engine, operation)).collect::<Result<Vec<_>>>()?;
    let tokens = quote! {
        use crate::{error::Result, generated::{models, operations::Operation}, stream::ByteBody};

        impl crate::Api {
            #(#methods)*
        }
    };
    Ok(Artifact {
        path: "sdk/src/generated/api.rs".into(),
        text: format::tokens(tokens, "One method for each operation of the service.")?,
    })
}

/// A path id in a signature.
pub(crate) struct PathId {
    /// The argument's name.
    pub name: proc_macro2::Ident,
    /// Whether it is a number.
    pub number: bool,
}

/// The path ids of an operation, in the path's order.
pub(crate) fn path_ids(document: &Document, operation: &Operation) -> Result<Vec<(PathId, Parameter)>> {
    operation
        .given(Place::Path)
        .map(|parameter| {
            let number = match Shape::of(document, &operation.id, &parameter.schema)? {
                Shape::Text => false,
                Shape::Integer => true,
                _ => return Err(Error::new(format!("{}: a path id is text or a number", operation.id))),
            };
            Ok((PathId { name: field(&parameter.name), number }, parameter.clone()))
        })
        .collect()
}

/// The type of the request argument, when there is one.
pub(crate) fn request_type(operation: &Operation) -> Option<String> {
    operation.params_name().or_else(|| operation.body.as_ref().map(|body| body.schema.clone()))
}

fn method(document: &Document, engine: &Engine, operation: &Operation) -> Result<TokenStream> {
    let ids = path_ids(document, operation)?;
    let request = request_type(operation).map(|name| ident(&name));
    let mut arguments = Vec::new();
    let mut bindings = Vec::new();
    let mut texts = Vec::new();
    let mut validation = TokenStream::new();
    for (id, parameter) in &ids {
        let (name, key) = (&id.name, &parameter.name);
        if id.number {
            let text = ident(&format!("{name}_text"));
            arguments.push(quote!(#name: i64));
            bindings.push(quote!(let #text = #name.to_string();));
            texts.push(quote!((#key, #text.as_str())));
            let limit = |n: Option<i64>| n.map_or_else(|| quote!(None), |n| quote!(Some(#n)));
            let (low, high) = (limit(parameter.schema.minimum), limit(parameter.schema.maximum));
            validation
                .extend(quote!(call.validated(crate::wire::check::integer(#key, #name, #low, #high))?;));
        } else {
            arguments.push(quote!(#name: &str));
            texts.push(quote!((#key, #name)));
            // That it is not empty is checked of every id.
            let schema = &parameter.schema;
            if schema.pattern.is_some() || schema.max_length.is_some() {
                let access = Access { reference: quote!(#name), place: quote!(#name), copied: quote!(#name) };
                let place = format!("{}.{key}", operation.id);
                let checks = checks(document, &place, &quote!(#key), &Shape::Text, schema, &access)?;
                let body = ident(&format!("check_{name}"));
                validation.extend(quote! {
                    let #body = || -> Result<(), crate::wire::InvalidField> { #checks Ok(()) };
                    call.validated(#body())?;
                });
            }
        }
    }
    if let Some(request) = &request {
        arguments.push(quote!(request: models::#request));
        validation.extend(quote!(call.validated(request.validate_for(call.dialect()))?;));
    }
    if let Some(limit) = &operation.command_limit {
        let limit = field(limit);
        validation.extend(quote! {
            let call = call.with_command_limit(request.#limit);
            let request = call.with_variables(request)?;
        });
    }
    if operation.face_of.is_some() && operation.body.is_some() {
        let body = ident(&face_body_name(operation));
        validation.extend(quote!(let request = models::#body::from(request);));
    }
    if operation.body.is_some() && operation.params_name().is_some() {
        validation.extend(quote!(let body = request.body();));
    }
    let passed = engine_arguments(document, engine, operation)?;
    let (variant, name) = (ident(&operation.variant()), ident(&operation.method_name()));
    let (answer, finish) = match &operation.answer {
        Answer::Json(answer) => {
            let answer = ident(answer);
            (quote!(models::#answer), quote!(finish))
        }
        _ => (quote!(ByteBody), quote!(finish_stream)),
    };
    let docs = docs::attributes(&description(document, operation));
    Ok(quote! {
        #docs
        pub async fn #name(&self, #(#arguments),*) -> Result<#answer> {
            #(#bindings)*
            let call = self.begin(Operation::#variant, &[#(#texts),*])?;
            #validation
            call.#finish(call.engine().#name(#(#passed),*).await)
        }
    })
}

/// What the engine's method is called with, in its own order.
fn engine_arguments(document: &Document, engine: &Engine, operation: &Operation) -> Result<Vec<TokenStream>> {
    let odd = |name: &str| {
        Error::new(format!("{}: the engine's argument `{name}` is not understood", operation.id))
    };
    let signature = engine.methods.get(&operation.method_name()).ok_or_else(|| odd("self"))?;
    let face = operation.face_of.is_some();
    signature
        .iter()
        .map(|(name, kind)| {
            if name == "body" {
                let both = operation.params_name().is_some();
                return Ok(if both { quote!(&body) } else { quote!(&request) });
            }
            let path = operation.given(Place::Path).find(|parameter| {
                let own = callable(&parameter.name);
                *name == if face { format!("{own}_stream") } else { own }
            });
            if let Some(parameter) = path {
                let name = field(&parameter.name);
                return Ok(quote!(#name));
            }
            if let Some((_, value)) = operation.forced_query.iter().find(|(key, _)| callable(key) == *name) {
                let parameter = operation.parameter(Place::Query, name).ok_or_else(|| odd(name))?;
                return match Shape::of(document, name, &parameter.schema)? {
                    Shape::Values(values) => {
                        let (values, variant) = (ident(&values), ident(&pascal(value)));
                        Ok(quote!(Some(&models::#values::#variant)))
                    }
                    _ => Err(odd(name)),
                };
            }
            let parameter = operation
                .given(Place::Query)
                .chain(operation.given(Place::Header))
                .find(|parameter| callable(&parameter.name) == *name)
                .ok_or_else(|| odd(name))?;
            let rust = parameter.rust_name();
            if let Some(path) = &parameter.default_from_path {
                let path = field(path);
                return Ok(quote!(request.#rust.as_deref().unwrap_or(#path)));
            }
            match kind.as_str() {
                "&str" => Ok(quote!(request.#rust.as_str())),
                "Option<&str>" => Ok(quote!(request.#rust.as_deref())),
                "i64" | "bool" | "f64" | "Option<i64>" | "Option<bool>" | "Option<f64>" => {
                    Ok(quote!(request.#rust))
                }
                _ if kind.starts_with("Option<&") => Ok(quote!(request.#rust.as_ref())),
                _ if kind.starts_with('&') => Ok(quote!(&request.#rust)),
                _ if kind.starts_with("Option<") => Ok(quote!(request.#rust.clone())),
                _ => Err(odd(name)),
            }
        })
        .collect()
}

/// The documentation of a method.
pub(crate) fn description(document: &Document, operation: &Operation) -> String {
    let mut text = docs::sentence(&operation.summary);
    if let Some(more) = &operation.description {
        text.push_str("\n\n");
        text.push_str(more.trim());
    }
    let ids: Vec<&Parameter> = operation.given(Place::Path).collect();
    let request = request_type(operation);
    if !ids.is_empty() || request.is_some() {
        text.push_str("\n\n# Arguments\n");
        for parameter in ids {
            let limits = docs::with_limits(&parameter.description, &parameter.schema);
            text.push_str(&format!("\n* `{}`: {limits}", field(&parameter.name)));
        }
        if let Some(request) = request {
            text.push_str(&format!("\n* `request`: see [`{request}`](crate::models::{request})."));
        }
    }
    text.push_str("\n\n");
    text.push_str(match &operation.answer {
        Answer::Json(_) => "The answer keeps fields it does not know.",
        Answer::Ndjson(_) => "The answer is read as it comes: JSON frames, a line each.",
        Answer::Sse(_) => {
            "The answer is read as it comes: server-sent events, each with a JSON document as its data."
        }
        Answer::Bytes | Answer::WebSocket => "The answer is read as it comes: the bytes, unchanged.",
    });
    let only = docs::only(operation.dialect.as_deref());
    if !only.is_empty() {
        text.push_str("\n\n");
        text.push_str(only.trim());
    }
    text.push_str("\n\n# Repetition\n\n");
    text.push_str(match operation.repeat {
        RepeatClass::Safe => "It only reads: a try that failed on the way, timed out, was throttled or met a fault of the service is repeated.",
        RepeatClass::Keyed => "One idempotency key goes with all tries of a call, so a try that failed on the way, timed out, was throttled or met a fault of the service is repeated and still counts once.",
        RepeatClass::Replace => "Doing it again leaves the same end state, so a try that failed on the way, timed out, was throttled or met a fault of the service is repeated.",
        RepeatClass::Command => "A try is repeated only when it provably never ran.",
        RepeatClass::Write => "A try is repeated only when it was not sent or the service says that the same call may be sent again.",
    });
    text.push_str("\n\n# Errors\n\n");
    text.push_str("A bad argument, or one that the client's dialect does not have, is refused before anything is sent. The service fails with:\n");
    for code in &operation.errors {
        if let Some(error) = document.errors.get(code) {
            let status = error.status_of(&operation.id);
            text.push_str(&format!("\n* `{code}` ({status}): {}", docs::sentence(&error.meaning)));
        }
    }
    text.push_str(&format!("\n\n{}, `{}`.", document.title(), operation.id));
    text
}
