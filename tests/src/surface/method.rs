//! One method or function.

use quote::ToTokens as _;
use syn::{Attribute, FnArg, Pat, ReceiverKind, ReturnType, Signature, Type};

use super::docs::{doc_text, first_sentence};

/// A public method, associated function or free function.
#[derive(Clone, Debug)]
pub struct Method {
    /// What it takes, the receiver first.
    pub parameters: Vec<Parameter>,
    /// What it gives back; `None` for nothing.
    pub answer: Option<Type>,
    /// Whether it is an `async fn`.
    pub is_async: bool,
    /// The first sentence of its documentation.
    pub sentence: String,
    /// Its documentation, one line each.
    pub docs: String,
}

/// One parameter of a [`Method`].
#[derive(Clone, Debug)]
pub enum Parameter {
    /// `self`, `& self` or `& mut self`, in these spellings.
    Receiver(String),
    /// A name (or pattern) and its type.
    Named(String, Box<Type>),
}

impl Method {
    pub(super) fn new(signature: &Signature, attributes: &[Attribute]) -> Self {
        Self {
            parameters: signature.inputs.iter().map(Parameter::new).collect(),
            answer: match &signature.output {
                ReturnType::Default => None,
                ReturnType::Type(_, answer) => Some((**answer).clone()),
            },
            is_async: signature.asyncness.is_some(),
            sentence: first_sentence(attributes),
            docs: doc_text(attributes),
        }
    }

    /// `self`, `& self` or `& mut self`; `None` for a function without a receiver.
    pub fn receiver(&self) -> Option<&str> {
        match self.parameters.first()? {
            Parameter::Receiver(receiver) => Some(receiver),
            Parameter::Named(..) => None,
        }
    }

    /// The parameters after the receiver, with their types.
    pub fn arguments(&self) -> impl Iterator<Item = (&str, &Type)> {
        self.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Receiver(_) => None,
            Parameter::Named(name, kind) => Some((name.as_str(), &**kind)),
        })
    }
}

impl Parameter {
    fn new(input: &FnArg) -> Self {
        match input {
            // `mut self` is the method's own affair.
            FnArg::Receiver(receiver) => Self::Receiver(match receiver.kind {
                ReceiverKind::Value => "self".to_owned(),
                _ => receiver.to_token_stream().to_string(),
            }),
            FnArg::Typed(typed) => {
                let name = match &*typed.pat {
                    Pat::Ident(name) => name.ident.to_string(),
                    other => other.to_token_stream().to_string(),
                };
                Self::Named(name, typed.ty.clone())
            }
        }
    }
}
