//! Open enums and choices.

use std::collections::BTreeSet;

use proc_macro2::TokenStream;
use quote::quote;

use crate::{
    Error, Result, docs,
    names::{ident, pascal},
    schema::Schema,
};

/// An open enum: the known values, and anything else kept as text.
pub(crate) fn values(name: &str, schema: &Schema) -> Result<TokenStream> {
    let docs = docs::attributes(&format!(
        "{}\n\nA value that is not known here is kept in `Unknown` and written back unchanged.",
        docs::sentence(schema.description.as_deref().unwrap_or("Known values."))
    ));
    let mut seen = BTreeSet::from(["Unknown".to_owned()]);
    let (mut variants, mut texts) = (Vec::new(), Vec::new());
    for value in schema.values.iter().flatten() {
        let value = value.as_str().ok_or_else(|| Error::new(format!("{name}: a value is not text")))?;
        let variant = pascal(value);
        if !seen.insert(variant.clone()) || syn::parse_str::<syn::Ident>(&variant).is_err() {
            return Err(Error::new(format!("{name}: `{value}` makes no variant name")));
        }
        let variant = ident(&variant);
        let doc = match schema.meanings.get(value) {
            Some(meaning) => docs::attributes(&format!("`{value}`: {}", docs::sentence(meaning))),
            None if schema.meanings.is_empty() => docs::attributes(&format!("`{value}`.")),
            None => return Err(Error::new(format!("{name}: `x-meanings` says nothing of `{value}`"))),
        };
        variants.push(quote!(#doc #variant,));
        texts.push(quote!(#variant = #value));
    }
    if let Some(odd) = schema.meanings.keys().find(|key| !schema.values.iter().flatten().any(|v| v == *key)) {
        return Err(Error::new(format!("{name}: `x-meanings` speaks of `{odd}`, which is no value")));
    }
    let arms: Vec<_> = schema
        .meanings
        .iter()
        .map(|(value, meaning)| {
            let (variant, meaning) = (ident(&pascal(value)), docs::sentence(meaning));
            quote!(Self::#variant => Some(#meaning),)
        })
        .collect();
    let default = match &schema.default {
        None => quote!(Self::Unknown(String::new())),
        Some(default) => {
            let known = schema.values.iter().flatten().any(|value| value == default);
            let default = default.as_str().filter(|_| known);
            let variant = default.map(pascal).ok_or_else(|| Error::new(format!("{name}: an odd default")))?;
            let variant = ident(&variant);
            quote!(Self::#variant)
        }
    };
    let name = ident(name);
    let meaning = (!arms.is_empty()).then(|| {
        quote! {
            impl #name {
                /// What the value means; `None` for one that is not known here.
                pub const fn meaning(&self) -> Option<&'static str> {
                    match self {
                        #(#arms)*
                        Self::Unknown(_) => None,
                    }
                }
            }
        }
    });
    Ok(quote! {
        #docs
        #[non_exhaustive]
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum #name {
            #(#variants)*
            /// A value that is not known here.
            Unknown(String),
        }

        crate::wire::open_enum!(#name, #default, #(#texts),*);

        #meaning
    })
}

/// A choice of structs told apart by one field.
pub(crate) fn choice(name: &str, schema: &Schema) -> Result<TokenStream> {
    let odd = |what: &str| Error::new(format!("{name}: {what}"));
    let discriminator = schema.discriminator.as_ref().ok_or_else(|| odd("a choice needs a discriminator"))?;
    let parts = schema.one_of.iter().flatten().count();
    if parts != discriminator.mapping.len() {
        return Err(odd("the discriminator must map every part once"));
    }
    let tag = &discriminator.property_name;
    let mut variants = Vec::new();
    let mut reads = Vec::new();
    let mut writes = Vec::new();
    for (value, target) in &discriminator.mapping {
        let target = target.rsplit('/').next().unwrap_or(target);
        let variant = ident(&pascal(value.rsplit('.').next().unwrap_or(value)));
        let target = ident(target);
        let doc = format!(" `{tag}` is `{value}`.");
        variants.push(quote!(#[doc = #doc] #variant(super::#target),));
        reads.push(quote! {
            #value => crate::wire::decode::from_value(value).map(Self::#variant).map_err(D::Error::custom),
        });
        writes.push(quote!(Self::#variant(value) => value.serialize(serializer),));
    }
    let docs =
        docs::attributes(&docs::sentence(schema.description.as_deref().unwrap_or("One of several answers.")));
    let name = ident(name);
    Ok(quote! {
        #docs
        #[non_exhaustive]
        #[derive(Clone, Debug, PartialEq)]
        pub enum #name {
            #(#variants)*
            /// A kind that is not known here, as it came.
            Other(serde_json::Value),
        }

        impl<'de> serde::Deserialize<'de> for #name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::Error as _;
                let value = serde_json::Value::deserialize(deserializer)?;
                let tag = value.get(#tag).and_then(serde_json::Value::as_str);
                match tag.ok_or_else(|| D::Error::missing_field(#tag))?.to_owned().as_str() {
                    #(#reads)*
                    _ => Ok(Self::Other(value)),
                }
            }
        }

        impl serde::Serialize for #name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    #(#writes)*
                    Self::Other(value) => value.serialize(serializer),
                }
            }
        }
    })
}
