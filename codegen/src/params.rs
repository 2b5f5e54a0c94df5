//! Structs for what a call takes beside path ids: query parameters, headers the caller may set, and the body if both.

use proc_macro2::TokenStream;
use quote::quote;

use crate::{
    Error, Result, docs,
    load::{Document, Operation},
    names::ident,
    requests::{SentField, parts},
    schema::Place,
};

/// The parameter struct of an operation, when it has one.
pub(crate) fn structure(document: &Document, operation: &Operation) -> Result<Option<TokenStream>> {
    let Some(name) = operation.params_name() else { return Ok(None) };
    if operation.body.is_some() {
        return Err(Error::new(format!("{}: parameters beside a body are not supported", operation.id)));
    }
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
    let sent = parts(document, &name, &fields, false)?;
    let docs = docs::attributes(&format!(
        "Parameters of [`{method}`](crate::Api::{method}).",
        method = operation.method_name()
    ));
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
        }
    }))
}
