//! Calls of every operation for the suites: with what is required, and with everything set, through both twins.

use indexmap::IndexMap;
use proc_macro2::TokenStream;
use quote::quote;

use crate::{
    Artifact, Result,
    dialects::Dialect,
    format,
    load::{Answer, Document, Operation},
    names::{ident, pascal, snake},
    samples::{Fill, Given, Samples},
};

/// Generates every file below the tests' `generated`; the first dialect is that of the document itself.
pub(crate) fn generate(document: &Document, dialects: &[Dialect]) -> Result<Vec<Artifact>> {
    let mut groups: IndexMap<&str, (TokenStream, TokenStream)> = IndexMap::new();
    for operation in document.called() {
        let (functions, drive) = drive(document, dialects, operation)?;
        let group = groups.entry(&operation.tag).or_default();
        group.0.extend(functions);
        group.1.extend(drive);
    }
    let (mut artifacts, mut modules, mut all) = (Vec::new(), TokenStream::new(), TokenStream::new());
    for (group, (functions, drives)) in groups {
        let module = ident(&snake(group));
        modules.extend(quote!(mod #module;));
        all.extend(quote!(#module::CALLS,));
        let models = if functions.is_empty() { quote!() } else { quote!(models,) };
        let tokens = quote! {
            use sandboxer::{#models operations::Operation};
            use crate::drive::{Drive, Made, Way};

            #functions

            pub(super) const CALLS: &[Drive] = &[#drives];
        };
        let text = format::tokens(tokens, &format!("Calls of every operation: {group}."))?;
        artifacts.push(Artifact { path: format!("tests/src/generated/{module}.rs"), text });
    }
    let index = quote! {
        use crate::drive::Drive;

        #modules

        /// A call of each method of the low-level client that the dialect has.
        pub fn every_call(dialect: sandboxer::Dialect) -> Vec<Drive> {
            let all: &[&[Drive]] = &[#all];
            all.iter().copied().flatten().copied().filter(|drive| dialect.has(drive.operation)).collect()
        }
    };
    let text = format::tokens(index, "Calls of every operation.")?;
    artifacts.push(Artifact { path: "tests/src/generated/mod.rs".into(), text });
    Ok(artifacts)
}

/// The functions that make requests, and the entry of one operation.
fn drive(
    document: &Document,
    dialects: &[Dialect],
    operation: &Operation,
) -> Result<(TokenStream, TokenStream)> {
    let base = dialects.first().map_or("", |dialect| dialect.name.as_str());
    let home = operation.dialect.as_deref().unwrap_or(base);
    let samples = Samples::new(document, home);
    let (least, most) = (samples.call(operation, Fill::Least)?, samples.call(operation, Fill::Most)?);
    let (mut functions, mut others) = (TokenStream::new(), TokenStream::new());
    for dialect in dialects.iter().filter(|dialect| dialect.name != home && operation.dialect.is_none()) {
        let own = Samples::new(document, &dialect.name).call(operation, Fill::Most)?;
        if own.sent != most.sent {
            let way = way(operation, &format!("most_{}", snake(&dialect.name)), &own, &mut functions);
            let variant = ident(&pascal(&dialect.name));
            others.extend(quote!((sandboxer::Dialect::#variant, #way),));
        }
    }
    let variant = ident(&operation.variant());
    let least = way(operation, "least", &least, &mut functions);
    let most = way(operation, "most", &most, &mut functions);
    let drive = quote! {
        Drive { operation: Operation::#variant, least: #least, most: #most, others: &[#others] },
    };
    Ok((functions, drive))
}

fn way(operation: &Operation, suffix: &str, given: &Given, functions: &mut TokenStream) -> TokenStream {
    let name = ident(&operation.method_name());
    let mut arguments = given.ids.clone();
    if let Some((kind, code)) = &given.request {
        let (make, kind) = (ident(&format!("{}_{suffix}", snake(&operation.id))), ident(kind));
        functions.extend(quote!(fn #make() -> models::#kind { #code }));
        arguments.push(quote!(#make()));
    }
    let sent = given.sent.to_string();
    let seen =
        if matches!(operation.answer, Answer::Json(_)) { quote!(Made::of) } else { quote!(Made::stream) };
    quote! {
        Way {
            call: |api| Box::pin(async move { api.#name(#(#arguments),*).await.map(#seen) }),
            blocking: |api| api.#name(#(#arguments),*).map(#seen),
            sent: #sent,
        }
    }
}
