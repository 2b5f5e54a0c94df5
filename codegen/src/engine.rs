//! The engine: what the OpenAPI generator makes of the cut document, its types replaced by ours, and passes over its syntax.

use std::collections::HashMap;

use progenitor::{GenerationSettings, Generator, HooksMode, InterfaceStyle, TypeImpl};
use quote::{ToTokens, quote};
use serde_json::Value;
use syn::{
    Expr, FnArg, ImplItem, Item, Pat, Stmt,
    visit_mut::{self, VisitMut},
};

use crate::{
    Error, Result,
    load::{Answer, Document},
};

/// The engine's file and what its methods take.
pub(crate) struct Engine {
    /// The whole file.
    pub file: syn::File,
    /// Each method's arguments in order: name and type.
    pub methods: HashMap<String, Vec<(String, String)>>,
}

/// Generates the engine.
pub(crate) fn generate(document: &Document, spec: &Value) -> Result<Engine> {
    let api: openapiv3::OpenAPI = serde_json::from_value(spec.clone())
        .map_err(|error| Error::new(format!("the engine's view: {error}")))?;
    let mut settings = GenerationSettings::new();
    settings
        .with_interface(InterfaceStyle::Positional)
        .with_hooks(HooksMode::Expected)
        .with_inner_type(quote!(crate::transport::Context));
    for name in spec["components"]["schemas"].as_object().into_iter().flat_map(|schemas| schemas.keys()) {
        let impls = [TypeImpl::Display].into_iter();
        settings.with_replacement(name, format!("crate::generated::models::{name}"), impls);
    }
    let tokens = Generator::new(&settings)
        .generate_tokens(&api)
        .map_err(|error| Error::new(format!("the engine: {error}")))?;
    let mut file: syn::File =
        syn::parse2(tokens).map_err(|error| Error::new(format!("the engine: {error}")))?;

    file.items.retain(|item| match item {
        Item::Mod(module) => !matches!(module.ident.to_string().as_str(), "types" | "prelude"),
        _ => true,
    });
    let mut passes = Passes::default();
    passes.visit_file_mut(&mut file);
    let json = document.called().filter(|o| matches!(o.answer, Answer::Json(_))).count();
    for (what, found, want) in [
        ("answers read", passes.decoded, json),
        ("version headers dropped", passes.version_headers, document.called().count()),
        ("constructors dropped", passes.constructors, 1),
    ] {
        if found != want {
            return Err(Error::new(format!("the engine: {found} {what}, {want} were expected")));
        }
    }
    let methods = methods(&file);
    for operation in document.called() {
        if !methods.contains_key(&operation.method_name()) {
            return Err(Error::new(format!("the engine has no method for `{}`", operation.id)));
        }
    }
    Ok(Engine { file, methods })
}

#[derive(Default)]
struct Passes {
    decoded: usize,
    version_headers: usize,
    constructors: usize,
}

impl VisitMut for Passes {
    /// The engine is private: its descriptions are on the public methods.
    fn visit_attributes_mut(&mut self, attributes: &mut Vec<syn::Attribute>) {
        attributes.retain(|attribute| !attribute.path().is_ident("doc"));
    }

    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        visit_mut::visit_expr_mut(self, expression);
        if let Expr::Call(call) = expression
            && call.func.to_token_stream().to_string().replace(' ', "") == "ResponseValue::from_response"
        {
            let arguments = &call.args;
            *expression = syn::parse_quote!(crate::wire::decode::decode(#arguments, info.operation_id));
            self.decoded += 1;
        }
    }

    fn visit_block_mut(&mut self, block: &mut syn::Block) {
        visit_mut::visit_block_mut(self, block);
        let before = block.stmts.len();
        block.stmts.retain(|statement| {
            !matches!(statement, Stmt::Expr(Expr::MethodCall(call), _)
                if call.method == "append" && call.to_token_stream().to_string().contains("\"api-version\""))
        });
        self.version_headers += before - block.stmts.len();
        for statement in &mut block.stmts {
            if let Stmt::Local(local) = statement
                && local.pat.to_token_stream().to_string() == "mut header_map"
            {
                local.attrs.push(syn::parse_quote!(#[allow(unused_mut)]));
            }
        }
    }

    fn visit_item_impl_mut(&mut self, item: &mut syn::ItemImpl) {
        visit_mut::visit_item_impl_mut(self, item);
        if item.trait_.is_none() {
            let before = item.items.len();
            item.items
                .retain(|entry| !matches!(entry, ImplItem::Fn(function) if function.sig.ident == "new"));
            self.constructors += before - item.items.len();
        }
    }
}

fn methods(file: &syn::File) -> HashMap<String, Vec<(String, String)>> {
    let impls = file.items.iter().filter_map(|item| match item {
        Item::Impl(item) if item.trait_.is_none() => Some(item),
        _ => None,
    });
    let functions = impls.flat_map(|item| &item.items).filter_map(|item| match item {
        ImplItem::Fn(function) if function.sig.asyncness.is_some() => Some(&function.sig),
        _ => None,
    });
    functions
        .map(|signature| {
            let arguments = signature.inputs.iter().filter_map(|input| match input {
                FnArg::Typed(typed) => match typed.pat.as_ref() {
                    Pat::Ident(name) => {
                        let kind = typed.ty.to_token_stream().to_string().replace(' ', "");
                        Some((name.ident.to_string(), kind.replace("&'a", "&")))
                    }
                    _ => None,
                },
                FnArg::Receiver(_) => None,
            });
            (signature.ident.to_string(), arguments.collect())
        })
        .collect()
}
