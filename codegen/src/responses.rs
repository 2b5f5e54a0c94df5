//! Structs that a client reads.

use proc_macro2::TokenStream;
use quote::quote;

use crate::{Error, Result, docs, load::Document, names::field_among, schema::Schema, shape::Shape};

/// A struct that reads what it can: a field that is missing or odd is defaulted unless it is essential, an unknown one kept.
pub(crate) fn structure(document: &Document, name: &str, schema: &Schema) -> Result<TokenStream> {
    for essential in &schema.essential {
        if !schema.properties.contains_key(essential) {
            return Err(Error::new(format!("{name}: there is no essential field `{essential}`")));
        }
    }
    let mut fields = Vec::new();
    let mut seen = std::collections::BTreeSet::from(["unknown_fields".to_owned()]);
    for (key, property) in &schema.properties {
        let place = format!("{name}.{key}");
        let rust = field_among(key, schema.properties.keys());
        if !seen.insert(rust.to_string()) {
            return Err(Error::new(format!("{place}: another field has this name in Rust")));
        }
        let shape = Shape::of(document, &place, property)?.tokens();
        let required = schema.required.contains(key);
        let optional = !required || property.nullable;
        let essential = schema.essential.contains(key);
        let kind = if optional { quote!(Option<#shape>) } else { shape };
        let docs = docs::attributes(&docs::sentence(document.description(property)));
        let mut attributes = Vec::new();
        if rust != key.as_str() {
            attributes.push(quote!(rename = #key));
        }
        if !essential || optional {
            attributes.push(quote!(default));
        }
        if !required {
            attributes.push(quote!(skip_serializing_if = "Option::is_none"));
        }
        let serde =
            if attributes.is_empty() { TokenStream::new() } else { quote!(#[serde(#(#attributes),*)]) };
        fields.push(quote!(#docs #serde pub #rust: #kind,));
    }
    let docs = docs::attributes(&docs::sentence(schema.description.as_deref().unwrap_or(name)));
    let name = crate::names::ident(name);
    Ok(quote! {
        #docs
        #[non_exhaustive]
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        pub struct #name {
            #(#fields)*
            /// Fields that are not known here, as they came.
            #[serde(flatten)]
            pub unknown_fields: crate::wire::UnknownFields,
        }
    })
}
