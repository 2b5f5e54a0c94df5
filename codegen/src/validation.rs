//! Checks of what is sent, from the document's limits.

use proc_macro2::{Ident, TokenStream};
use quote::quote;

use crate::{
    Error, Result,
    load::Document,
    names::{ident, pascal},
    schema::{Additional, Check, Schema},
    shape::Shape,
};

/// How a value is spelt where it is checked.
pub(crate) struct Access {
    /// As a reference.
    pub reference: TokenStream,
    /// As the receiver of a method.
    pub place: TokenStream,
    /// As a copy.
    pub copied: TokenStream,
}

impl Access {
    /// A field of `self`.
    pub(crate) fn field(name: &Ident) -> Self {
        Self { reference: quote!(&self.#name), place: quote!(self.#name), copied: quote!(self.#name) }
    }

    /// A binding called `value` that is a reference.
    pub(crate) fn binding() -> Self {
        Self { reference: quote!(value), place: quote!(value), copied: quote!(*value) }
    }
}

/// Statements that check a value; empty when it has no limit. `label` is the name used in errors, as an expression.
pub(crate) fn checks(
    document: &Document,
    place: &str,
    label: &TokenStream,
    shape: &Shape,
    schema: &Schema,
    access: &Access,
) -> Result<TokenStream> {
    // A named text or list has its limits where it is named.
    let target = schema.referred().map(|name| document.schema(name)).transpose()?;
    let schema = match (shape, target) {
        (Shape::Named(_) | Shape::Values(_), _) | (_, None) => schema,
        (_, Some(target)) => target,
    };
    let Access { reference, place: receiver, copied } = access;
    let mut out = TokenStream::new();
    let odd = |what: &str| Err(Error::new(format!("{place}: {what} does not go with its type")));
    let sized = schema.min_length.is_some() || schema.max_length.is_some();
    if schema.minimum.is_some() || schema.maximum.is_some() {
        let (low, high) =
            (option(schema.minimum.map(|n| quote!(#n))), option(schema.maximum.map(|n| quote!(#n))));
        match shape {
            Shape::Integer => out.extend(quote!(crate::wire::check::integer(#label, #copied, #low, #high)?;)),
            _ => return odd("a range"),
        }
    }
    let text = match shape {
        Shape::Text => quote!(#reference),
        Shape::Secret => quote!(#receiver.expose()),
        _ if sized || schema.pattern.is_some() || schema.max_bytes.is_some() => {
            return odd("a length or pattern");
        }
        _ => TokenStream::new(),
    };
    if sized {
        let low = schema.min_length.unwrap_or(0);
        let low = usize::try_from(low).map_err(|_| Error::new(format!("{place}: too long")))?;
        let high = option(schema.max_length.and_then(|n| usize::try_from(n).ok()).map(|n| quote!(#n)));
        out.extend(quote!(crate::wire::check::length(#label, #text, #low, #high)?;));
    }
    if let Some(bytes) = schema.max_bytes.and_then(|n| usize::try_from(n).ok()) {
        out.extend(quote!(crate::wire::check::bytes(#label, #text, #bytes)?;));
    }
    if let Some(pattern) = &schema.pattern {
        regex_lite::Regex::new(pattern).map_err(|error| Error::new(format!("{place}: {error}")))?;
        let mut own = TokenStream::new();
        for (dialect, pattern) in &schema.dialect_patterns {
            regex_lite::Regex::new(pattern).map_err(|error| Error::new(format!("{place}: {error}")))?;
            let dialect = ident(&pascal(dialect));
            own.extend(quote!(crate::Dialect::#dialect => #pattern,));
        }
        let pattern =
            if own.is_empty() { quote!(#pattern) } else { quote!(match dialect { #own _ => #pattern }) };
        out.extend(quote!(crate::wire::check::pattern(#label, #text, #pattern)?;));
    }
    match (schema.check, shape) {
        (Some(Check::NoNul), Shape::Text | Shape::Secret) => {
            out.extend(quote!(crate::wire::check::no_nul(#label, #text)?;));
        }
        (Some(Check::EnvMap), Shape::Env) => {
            let high = schema.max_properties.and_then(|n| usize::try_from(n).ok());
            let high = option(high.map(|n| quote!(#n)));
            out.extend(quote!(crate::wire::check::env(#label, #reference, #high, dialect)?;));
        }
        (None, _) => {
            if let Some(high) = schema.max_properties.and_then(|n| usize::try_from(n).ok()) {
                out.extend(quote!(crate::wire::check::entries(#label, #receiver.len(), None, Some(#high))?;));
            }
        }
        (Some(_), _) => return odd("`x-check`"),
    }
    if schema.min_items.is_some() || schema.max_items.is_some() {
        let Shape::List(_) = shape else { return odd("a number of items") };
        let size = |n: Option<u64>| option(n.and_then(|n| usize::try_from(n).ok()).map(|n| quote!(#n)));
        let (low, high) = (size(schema.min_items), size(schema.max_items));
        out.extend(quote!(crate::wire::check::entries(#label, #receiver.len(), #low, #high)?;));
    }
    out.extend(inner(document, place, label, shape, schema, access)?);
    Ok(out)
}

/// Checks of what is inside a value.
fn inner(
    document: &Document,
    place: &str,
    label: &TokenStream,
    shape: &Shape,
    schema: &Schema,
    access: &Access,
) -> Result<TokenStream> {
    let Access { reference, place: receiver, .. } = access;
    let each = |shape: &Shape, schema: &Schema, walk: &str| -> Result<TokenStream> {
        let checks = checks(document, place, &quote!(label), shape, schema, &Access::binding())?;
        if checks.is_empty() {
            return Ok(checks);
        }
        let walk = ident(walk);
        Ok(quote!(crate::wire::check::#walk(#label, #reference, |label, value| { #checks Ok(()) })?;))
    };
    match (shape, &schema.items, &schema.additional_properties) {
        (Shape::List(item), Some(items), _) => each(item, items, "items"),
        (Shape::Map(value), _, Some(Additional::Of(values))) => each(value, values, "values"),
        (Shape::Named(_), ..) => {
            Ok(quote!(#receiver.validate_for(dialect).map_err(|refused| refused.inside(#label))?;))
        }
        _ => Ok(TokenStream::new()),
    }
}

fn option(value: Option<TokenStream>) -> TokenStream {
    value.map_or_else(|| quote!(None), |value| quote!(Some(#value)))
}
