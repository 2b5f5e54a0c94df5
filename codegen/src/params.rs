//! Structs for what a call takes beside path ids: query parameters, headers the caller may set, and with them the fields of
//! a body.

use proc_macro2::TokenStream;
use quote::quote;

use crate::{
    Error, Result, docs,
    load::{Document, Operation},
    names::{field_among, ident},
    requests::{SentField, parts},
    schema::{Place, Schema},
    shape::Shape,
};

/// The parameter struct of an operation, when it has one.
pub(crate) fn structure(document: &Document, operation: &Operation) -> Result<Option<TokenStream>> {
    let Some(name) = operation.params_name() else { return Ok(None) };
    let mut fields = Vec::new();
    for parameter in operation.given(Place::Query).chain(operation.given(Place::Header)) {
        fields.push(SentField {
            key: &parameter.name,
            rust: parameter.rust_name(),
            schema: &parameter.schema,
            description: &parameter.description,
            required: parameter.required && parameter.default_from_path.is_none(),
        });
    }
    let body = operation.body.as_ref().map(|body| Ok((&body.schema, document.schema(&body.schema)?)));
    let body = body.transpose()?;
    if let Some((schema, properties)) = body.map(|(schema, body)| (schema, &body.properties)) {
        if operation.face_of.is_some() {
            let text = "a streaming face cannot have parameters beside a body";
            return Err(Error::new(format!("{}: {text}", operation.id)));
        }
        for (key, property) in properties {
            let rust = field_among(key, properties.keys());
            if fields.iter().any(|known| known.rust == rust) {
                return Err(Error::new(format!("{schema}.{key}: a parameter has this name")));
            }
            let required = document.schema(schema)?.required.contains(key);
            let description = document.description(property);
            fields.push(SentField { key, rust, schema: property, description, required });
        }
    }
    let sent = parts(document, &name, &fields, false)?;
    let what = if body.is_some() { "Parameters and body" } else { "Parameters" };
    let docs = docs::attributes(&format!(
        "{what} of [`{method}`](crate::Api::{method}).",
        method = operation.method_name()
    ));
    let made = body.map(|(schema, body)| body_of(document, schema, body)).transpose()?;
    let name = ident(&name);
    let (fields, methods) = (sent.fields, sent.methods);
    Ok(Some(quote! {
        #docs
        #[non_exhaustive]
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct #name {
            #fields
        }

        impl #name {
            #methods

            #made
        }
    }))
}

/// The method that gives the body alone.
fn body_of(document: &Document, name: &str, schema: &Schema) -> Result<TokenStream> {
    let values = schema.properties.iter().map(|(key, property)| {
        let rust = field_among(key, schema.properties.keys());
        let copied = matches!(
            Shape::of(document, &format!("{name}.{key}"), property)?,
            Shape::Boolean | Shape::Integer | Shape::Number
        );
        let value = if copied { quote!(self.#rust) } else { quote!(self.#rust.clone()) };
        Ok(quote!(#rust: #value,))
    });
    let values = values.collect::<Result<Vec<_>>>()?;
    let name = ident(name);
    Ok(quote! {
        /// The body alone.
        pub(crate) fn body(&self) -> super::#name {
            super::#name { #(#values)* }
        }
    })
}
