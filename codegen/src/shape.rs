//! What a schema is in Rust.

use proc_macro2::TokenStream;
use quote::quote;

use crate::{
    Error, Result,
    load::Document,
    names::ident,
    schema::{Additional, Check, Schema},
};

/// The Rust shape of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Text,
    Time,
    Secret,
    Integer,
    Number,
    Boolean,
    /// A named open enum.
    Values(String),
    /// A named struct, or a named choice of structs.
    Named(String),
    List(Box<Shape>),
    Map(Box<Shape>),
    Env,
    Any,
    AnyMap,
}

impl Shape {
    /// Works out the shape of a schema; `null` is the caller's matter.
    pub(crate) fn of(document: &Document, place: &str, schema: &Schema) -> Result<Self> {
        if let Some(name) = schema.referred() {
            let target = document.schema(name)?;
            return if is_values(target) {
                Ok(Self::Values(name.to_owned()))
            } else if !target.properties.is_empty() || target.one_of.is_some() {
                Ok(Self::Named(name.to_owned()))
            } else {
                Self::of(document, name, target)
            };
        }
        let unknown = || Error::new(format!("{place}: this kind of schema is not understood"));
        if schema.all_of.is_some() || schema.one_of.is_some() {
            return Err(Error::new(format!("{place}: only a named schema may be a combination of others")));
        }
        match schema.kind.as_deref() {
            Some("string") if schema.secret => Ok(Self::Secret),
            Some("string") => match schema.format.as_deref() {
                Some("date-time") => Ok(Self::Time),
                None => Ok(Self::Text),
                Some(_) => Err(unknown()),
            },
            Some("integer") => Ok(Self::Integer),
            Some("number") => Ok(Self::Number),
            Some("boolean") => Ok(Self::Boolean),
            Some("array") => {
                let items = schema.items.as_deref().ok_or_else(unknown)?;
                Ok(Self::List(Box::new(Self::of(document, place, items)?)))
            }
            Some("object") if !schema.properties.is_empty() => {
                Err(Error::new(format!("{place}: give the object a name of its own")))
            }
            Some("object") => match &schema.additional_properties {
                Some(Additional::Of(_)) if schema.check == Some(Check::EnvMap) => Ok(Self::Env),
                Some(Additional::Of(value)) => Ok(Self::Map(Box::new(Self::of(document, place, value)?))),
                Some(Additional::Allowed(true)) => Ok(Self::AnyMap),
                _ => Err(unknown()),
            },
            None => Ok(Self::Any),
            Some(_) => Err(unknown()),
        }
    }

    /// Its Rust type, as a file of the models names it.
    pub(crate) fn tokens(&self) -> TokenStream {
        match self {
            Self::Text => quote!(String),
            Self::Time => quote!(crate::wire::Timestamp),
            Self::Secret => quote!(crate::wire::Secret),
            Self::Integer => quote!(i64),
            Self::Number => quote!(f64),
            Self::Boolean => quote!(bool),
            Self::Values(name) | Self::Named(name) => {
                let name = ident(name);
                quote!(super::#name)
            }
            Self::List(item) => {
                let item = item.tokens();
                quote!(Vec<#item>)
            }
            Self::Map(value) => {
                let value = value.tokens();
                quote!(std::collections::BTreeMap<String, #value>)
            }
            Self::Env => quote!(crate::wire::EnvMap),
            Self::Any => quote!(serde_json::Value),
            Self::AnyMap => quote!(serde_json::Map<String, serde_json::Value>),
        }
    }
}

/// Whether a component is a set of known text values.
pub(crate) fn is_values(schema: &Schema) -> bool {
    schema.kind.as_deref() == Some("string") && schema.values.as_ref().is_some_and(|values| values.len() > 1)
}
