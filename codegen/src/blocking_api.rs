//! The blocking twin of the low-level client.

use proc_macro2::TokenStream;
use quote::quote;

use crate::{
    Artifact, Result,
    api::{description, path_ids, request_type},
    docs, format,
    load::{Answer, Document, Operation},
    names::ident,
};

/// Generates the twin's `generated/api.rs`.
pub(crate) fn generate(document: &Document) -> Result<Artifact> {
    let methods = document.called().map(|o| method(document, o)).collect::<Result<Vec<_>>>()?;
    let tokens = quote! {
        use crate::ByteIter;
        use sandboxer::{Result, models};

        #[rustfmt::skip]
        impl crate::Api {
            #(#methods)*
        }
    };
    Ok(Artifact {
        path: "sdk-blocking/src/generated/api.rs".into(),
        text: format::tokens(tokens, "One method for each operation of the service, without async.")?,
    })
}

fn method(document: &Document, operation: &Operation) -> Result<TokenStream> {
    let (mut arguments, mut owned, mut passed) = (Vec::new(), Vec::new(), Vec::new());
    for (id, _) in path_ids(document, operation)? {
        let name = &id.name;
        if id.number {
            arguments.push(quote!(#name: i64));
            passed.push(quote!(#name));
        } else {
            arguments.push(quote!(#name: &str));
            owned.push(quote!(let #name = #name.to_owned();));
            passed.push(quote!(&#name));
        }
    }
    if let Some(request) = request_type(operation) {
        let request = ident(&request);
        arguments.push(quote!(request: models::#request));
        passed.push(quote!(request));
    }
    let name = ident(&operation.method_name());
    let (answer, run) = match &operation.answer {
        Answer::Json(answer) => {
            let answer = ident(answer);
            (quote!(models::#answer), quote!(call))
        }
        _ => (quote!(ByteIter), quote!(stream)),
    };
    let docs = docs::attributes(&description(document, operation).replace("(crate::", "(sandboxer::"));
    Ok(quote! {
        #docs
        pub fn #name(&self, #(#arguments),*) -> Result<#answer> {
            let api = self.inner.clone();
            #(#owned)*
            self.#run(async move { api.#name(#(#passed),*).await })
        }
    })
}
