//! The dialects: what each service of the API is called, and what it does otherwise.

use indexmap::IndexMap;
use proc_macro2::TokenStream;
use quote::quote;

use crate::{
    Artifact, Error, Result, format,
    load::{CommandVariables, Document, Operation},
    names::{ident, pascal},
};

/// One service: its name and its own document.
pub(crate) struct Dialect {
    /// Its name, as in `x-dialect`.
    pub name: String,
    /// Its own document.
    pub document: Document,
}

/// Generates `generated/dialects.rs`; `joined` is the document that the client is generated from, the first dialect that of
/// the document itself.
pub(crate) fn generate(joined: &Document, dialects: &[Dialect]) -> Result<Artifact> {
    let (mut variants, mut all, mut infos) = (TokenStream::new(), TokenStream::new(), TokenStream::new());
    for (index, dialect) in dialects.iter().enumerate() {
        let variant = ident(&pascal(&dialect.name));
        let title = dialect.document.title();
        let doc = format!(" {title}.");
        let default = (index == 0).then(|| quote!(#[default]));
        variants.extend(quote!(#[doc = #doc] #default #variant,));
        all.extend(quote!(Self::#variant,));
        let info = info(joined, dialect)?;
        infos.extend(quote!(Self::#variant => &#info,));
    }
    let types = types();
    let tokens = quote! {
        use super::operations::Operation;

        /// Which service is spoken to: services that share the API, each with its own names for a few things.
        ///
        /// Chosen with [`Builder::dialect`](crate::Builder::dialect). Programs name operations, codes and headers as the
        /// default dialect does, whichever is spoken.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum Dialect {
            #variants
        }

        impl Dialect {
            /// Every dialect.
            pub const ALL: &'static [Self] = &[#all];

            /// What is known of the service.
            pub const fn info(self) -> &'static DialectInfo {
                match self {
                    #infos
                }
            }

            /// Whether the service has the operation; calls of others are refused before anything is sent.
            pub fn has(self, operation: Operation) -> bool {
                !self.info().absent.contains(&operation)
            }

            /// The path of an operation below the base URL, path parameters in braces.
            pub fn path(self, operation: Operation) -> &'static str {
                let own = self.info().paths.iter().find(|(known, _)| *known == operation);
                own.map_or(operation.info().path, |(_, path)| path)
            }
        }

        impl std::fmt::Display for Dialect {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.info().name)
            }
        }

        #types
    };
    let doc = "The services that speak the API, and what each calls otherwise.";
    Ok(Artifact { path: "sdk/src/generated/dialects.rs".into(), text: format::tokens(tokens, doc)? })
}

fn types() -> TokenStream {
    quote! {
        /// What is known of a dialect's service.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct DialectInfo {
            /// Its name.
            pub name: &'static str,
            /// Where it is, unless another base URL is set.
            pub base_url: &'static str,
            /// The environment variables that may hold the key; the first that is set counts.
            pub key_variables: &'static [&'static str],
            /// The environment variable that may hold the base URL.
            pub url_variable: &'static str,
            /// The environment variable that may hold the organisation.
            pub org_variable: &'static str,
            /// Names of variables that belong to the service, which no sandbox or command may be given.
            pub reserved_variables: &'static [&'static str],
            /// What the host names of sandboxes end with.
            pub host_suffix: &'static str,
            /// The folder, in a sandbox, of the logs of background commands.
            pub log_folder: &'static str,
            /// The headers that sign what is sent to webhook endpoints.
            pub webhook_headers: WebhookHeaders,
            /// How variables reach a command.
            pub command_variables: CommandVariables,
            /// Headers it calls otherwise, in small letters: the default dialect's name, its own.
            pub headers: &'static [(&'static str, &'static str)],
            /// Codes it calls otherwise: what it says, what is meant.
            pub code_aliases: &'static [(&'static str, &'static str)],
            /// Operations that it does not have.
            pub absent: &'static [Operation],
            /// Operations that have another path.
            pub paths: &'static [(Operation, &'static str)],
            /// Operations that take the organisation as the query parameter `org`, not as a header.
            pub org_in_query: &'static [Operation],
            /// Operations that need another key action; `None` when any valid key will do.
            pub key_actions: &'static [(Operation, Option<&'static str>)],
        }

        /// The headers that sign a webhook delivery.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct WebhookHeaders {
            /// One that carries both the time and the signatures, if the service sends such.
            pub combined: Option<&'static str>,
            /// The id of the delivery, signed with the time and the body.
            pub delivery: &'static str,
            /// The time of signing, in seconds since 1970.
            pub timestamp: &'static str,
            /// The signatures of delivery, time and body.
            pub signature: &'static str,
        }

        /// How variables reach a command.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum CommandVariables {
            /// As a field of the request; they stay out of the command's text.
            Field,
            /// As quoted exports in front of the command; its record and the process list show them.
            Exports,
        }
    }
}

fn info(joined: &Document, dialect: &Dialect) -> Result<TokenStream> {
    let odd = |what: &str| Error::new(format!("{}: there is no {what}", dialect.name));
    let service = dialect.document.service.as_ref().ok_or_else(|| odd("`x-service`"))?;
    let base_url = dialect.document.base_url.as_ref().ok_or_else(|| odd("server"))?;
    let mut headers: IndexMap<String, String> = IndexMap::new();
    let (mut absent, mut paths, mut by_query, mut actions) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for name in &service.absent {
        if !joined.operations.iter().any(|operation| operation.id == *name) {
            return Err(Error::new(format!("{}: there is no operation `{name}` to be absent", dialect.name)));
        }
    }
    for operation in &joined.operations {
        let variant = ident(&operation.variant());
        let own = dialect.document.operations.iter().find(|own| own.id == operation.id);
        let Some(own) = own.filter(|_| !service.absent.contains(&operation.id)) else {
            absent.push(quote!(Operation::#variant));
            continue;
        };
        if own.path != operation.path {
            let path = &own.path;
            paths.push(quote!((Operation::#variant, #path)));
        }
        if own.key_action != operation.key_action {
            let action = match &own.key_action {
                Some(action) => quote!(Some(#action)),
                None => quote!(None),
            };
            actions.push(quote!((Operation::#variant, #action)));
        }
        if compare(operation, own, &mut headers)? {
            by_query.push(quote!(Operation::#variant));
        }
    }
    let headers = headers.iter().map(|(from, to)| quote!((#from, #to)));
    let aliases = service.code_aliases.iter().map(|(from, to)| quote!((#from, #to)));
    let variables = match service.command_variables {
        CommandVariables::Field => quote!(CommandVariables::Field),
        CommandVariables::Exports => quote!(CommandVariables::Exports),
    };
    let (name, keys, url, org) =
        (&service.name, &service.key_variables, &service.url_variable, &service.org_variable);
    let reserved = &service.reserved_variables;
    let (host_suffix, log_folder) = (&service.host_suffix, &service.log_folder);
    let combined = match &service.webhook_signature_header {
        Some(name) => quote!(Some(#name)),
        None => quote!(None),
    };
    let [delivery, timestamp, signature] =
        ["Delivery", "Timestamp", "Signature"].map(|part| format!("{}{part}", service.webhook_header_prefix));
    Ok(quote! {
        DialectInfo {
            name: #name,
            base_url: #base_url,
            key_variables: &[#(#keys),*],
            url_variable: #url,
            org_variable: #org,
            reserved_variables: &[#(#reserved),*],
            host_suffix: #host_suffix,
            log_folder: #log_folder,
            webhook_headers: WebhookHeaders {
                combined: #combined,
                delivery: #delivery,
                timestamp: #timestamp,
                signature: #signature,
            },
            command_variables: #variables,
            headers: &[#(#headers),*],
            code_aliases: &[#(#aliases),*],
            absent: &[#(#absent),*],
            paths: &[#(#paths),*],
            org_in_query: &[#(#by_query),*],
            key_actions: &[#(#actions),*],
        }
    })
}

/// Finds the headers that are called otherwise, and whether the organisation is a query parameter of its own here.
fn compare(ours: &Operation, own: &Operation, headers: &mut IndexMap<String, String>) -> Result<bool> {
    let more = own.parameters.len().checked_sub(ours.parameters.len());
    let added = more.map(|_| &own.parameters[ours.parameters.len()..]).unwrap_or_default();
    if more.is_none() || added.iter().any(|parameter| parameter.name != "org") {
        return Err(Error::new(format!("{}: the client cannot be told of these parameters", own.id)));
    }
    for (ours, own) in ours.parameters.iter().zip(&own.parameters) {
        if ours.name != own.name {
            headers.insert(ours.name.to_lowercase(), own.name.to_lowercase());
        }
    }
    Ok(!added.is_empty())
}
