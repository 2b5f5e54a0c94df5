//! The operation table, the repeat rules and the error codes.

use proc_macro2::TokenStream;
use quote::quote;

use crate::{
    Artifact, Error, Result, docs, format,
    load::{Answer, Delivery, Document, RepeatClass, RepeatRule},
    names::ident,
};

/// Generates `generated/operations.rs`.
pub(crate) fn generate(document: &Document) -> Result<Artifact> {
    let (mut variants, mut all, mut infos) = (TokenStream::new(), TokenStream::new(), TokenStream::new());
    for operation in &document.operations {
        let variant = ident(&operation.variant());
        let summary = docs::attributes(&format!(
            "{}{}",
            docs::sentence(&operation.summary),
            docs::only(operation.dialect.as_deref())
        ));
        variants.extend(quote!(#summary #variant,));
        all.extend(quote!(Self::#variant,));
        let (id, name, method, path) =
            (&operation.id, operation.method_name(), &operation.method, &operation.path);
        let (class, action) = (repeat(operation.repeat), option(operation.key_action.as_deref()));
        let (success, errors, keyed) = (operation.success, &operation.errors, operation.keyed());
        let media = match operation.answer {
            Answer::Json(_) => quote!(Media::Json),
            Answer::Ndjson(_) => quote!(Media::Ndjson),
            Answer::Sse(_) => quote!(Media::Sse),
            Answer::Bytes => quote!(Media::Bytes),
            Answer::WebSocket => quote!(Media::WebSocket),
        };
        infos.extend(quote! {
            Self::#variant => &OperationInfo {
                id: #id,
                name: #name,
                method: #method,
                path: #path,
                repeat: #class,
                key_action: #action,
                success: #success,
                media: #media,
                idempotency_key: #keyed,
                errors: &[#(#errors),*],
            },
        });
    }
    let types = types();
    let rules = document.rules.iter().map(rule).collect::<Result<Vec<_>>>()?;
    let codes = document.errors.iter().map(|(code, error)| {
        let (status, retryable, meaning) = (error.status, option(error.retryable), &error.meaning);
        let others =
            document.operations.iter().filter(|operation| error.status_at.contains_key(&operation.id));
        let other_statuses = others.map(|operation| {
            let (variant, status) = (ident(&operation.variant()), error.status_of(&operation.id));
            quote!((Operation::#variant, #status))
        });
        quote! {
            ErrorCode {
                code: #code,
                status: #status,
                other_statuses: &[#(#other_statuses),*],
                retryable: #retryable,
                meaning: #meaning,
            }
        }
    });
    let tokens = quote! {
        use std::time::Duration;

        use crate::error::Delivery;

        /// One operation of the service's HTTP API.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Operation {
            #variants
        }

        impl Operation {
            /// Every operation.
            pub const ALL: &'static [Self] = &[#all];

            /// The row of the operation table.
            pub const fn info(self) -> &'static OperationInfo {
                match self {
                    #infos
                }
            }

            /// The operation whose method is called `name`, such as `delete_sandbox`.
            pub fn from_engine_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|operation| operation.info().name == name)
            }

            /// Its id in the API document, such as `deleteSandbox`.
            pub const fn id(self) -> &'static str {
                self.info().id
            }

            /// Its method on the low-level client, such as `delete_sandbox`.
            pub const fn name(self) -> &'static str {
                self.info().name
            }

            /// When a failed try may be followed by another.
            pub const fn repeat(self) -> Repeat {
                self.info().repeat
            }
        }

        impl std::fmt::Display for Operation {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.id())
            }
        }

        #types

        /// Which failed try may be followed by another: rows are tried from the top, the first that fits decides.
        pub const REPEAT_RULES: &[RepeatRule] = &[#(#rules),*];

        /// Every code the service answers a failure with.
        pub const ERROR_CODES: &[ErrorCode] = &[#(#codes),*];
    };
    Ok(Artifact {
        path: "sdk/src/generated/operations.rs".into(),
        text: format::tokens(
            tokens,
            "The operations of the service, what a failure may mean, and when a try is repeated.",
        )?,
    })
}

fn types() -> TokenStream {
    quote! {
        /// What is known of an operation beside its arguments.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct OperationInfo {
            /// Its id in the API document.
            pub id: &'static str,
            /// Its method on the low-level client, or the name it would have there.
            pub name: &'static str,
            /// The HTTP method.
            pub method: &'static str,
            /// The path below the base URL, path parameters in braces.
            pub path: &'static str,
            /// When a failed try may be followed by another.
            pub repeat: Repeat,
            /// The action that an API key must grant; `None` when any valid key will do, `session` when none will.
            pub key_action: Option<&'static str>,
            /// The status of a success.
            pub success: u16,
            /// What a success is answered with.
            pub media: Media,
            /// Whether one `Idempotency-Key` goes with all tries of a call.
            pub idempotency_key: bool,
            /// The codes it can fail with.
            pub errors: &'static [&'static str],
        }

        /// When a failed try of an operation may be followed by another.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Repeat {
            /// It only reads.
            Safe,
            /// One idempotency key for all tries makes them one call.
            Keyed,
            /// Doing it again leaves the same end state.
            Replace,
            /// It runs a command: only when the service proves that it never ran.
            Command,
            /// It changes something: only when the service says that it did not.
            Write,
        }

        /// What a success is answered with.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Media {
            /// One JSON document.
            Json,
            /// JSON frames, a line each.
            Ndjson,
            /// Server-sent events.
            Sse,
            /// Raw bytes.
            Bytes,
            /// A WebSocket: such an operation has no method on the low-level client.
            WebSocket,
        }

        /// A row of the repeat table.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct RepeatRule {
            /// Its name in the API document.
            pub name: &'static str,
            /// The failures it is for.
            pub when: RepeatWhen,
            /// The classes that are repeated.
            pub repeat: &'static [Repeat],
            /// The shortest wait before the next try.
            pub pause: Duration,
            /// Whether tries go on until the call's total limit, whatever their number.
            pub until_deadline: bool,
            /// Why.
            pub why: &'static str,
        }

        /// What a failure must be for a row to fit; what is `None` or empty does not matter.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct RepeatWhen {
            /// How far the request came.
            pub delivery: Option<Delivery>,
            /// The lowest and the highest status.
            pub status: Option<(u16, u16)>,
            /// One of these codes.
            pub codes: &'static [&'static str],
            /// What the answer says of a repetition.
            pub retryable: Option<bool>,
            /// A text that the answer's message holds.
            pub message: Option<&'static str>,
            /// The quota's window in the answer's details.
            pub window: Option<&'static str>,
            /// Whether the answer says when to come back.
            pub hint: Option<bool>,
        }

        /// A code that a failure is answered with.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct ErrorCode {
            /// The code.
            pub code: &'static str,
            /// The HTTP status it comes under.
            pub status: u16,
            /// The operations at which that is another one, which stands beside them.
            pub other_statuses: &'static [(Operation, u16)],
            /// What it says of a repetition, when it always says the same.
            pub retryable: Option<bool>,
            /// What went wrong.
            pub meaning: &'static str,
        }
    }
}

fn rule(rule: &RepeatRule) -> Result<TokenStream> {
    let when = &rule.when;
    let delivery = option_tokens(when.delivery.map(|delivery| match delivery {
        Delivery::NotSent => quote!(Delivery::NotSent),
        Delivery::Answered => quote!(Delivery::Answered),
        Delivery::Unknown => quote!(Delivery::Unknown),
    }));
    let status = option_tokens(match when.status.as_deref() {
        None => None,
        Some([one]) => Some(quote!((#one, #one))),
        Some([low, high]) if low <= high => Some(quote!((#low, #high))),
        Some(_) => return Err(Error::new(format!("row {}: a status is one number or a range", rule.name))),
    });
    let (codes, retryable, hint) = (&when.codes, option(when.retryable), option(when.hint));
    let (message, window) = (option(when.message.as_deref()), option(when.window.as_deref()));
    let classes = rule.repeat.iter().map(|class| repeat(*class));
    let (name, why, until) = (&rule.name, &rule.why, rule.until_deadline);
    let pause = rule.pause_ms.unwrap_or(0);
    Ok(quote! {
        RepeatRule {
            name: #name,
            when: RepeatWhen {
                delivery: #delivery,
                status: #status,
                codes: &[#(#codes),*],
                retryable: #retryable,
                message: #message,
                window: #window,
                hint: #hint,
            },
            repeat: &[#(#classes),*],
            pause: Duration::from_millis(#pause),
            until_deadline: #until,
            why: #why,
        }
    })
}

fn repeat(class: RepeatClass) -> TokenStream {
    match class {
        RepeatClass::Safe => quote!(Repeat::Safe),
        RepeatClass::Keyed => quote!(Repeat::Keyed),
        RepeatClass::Replace => quote!(Repeat::Replace),
        RepeatClass::Command => quote!(Repeat::Command),
        RepeatClass::Write => quote!(Repeat::Write),
    }
}

fn option<T: quote::ToTokens>(value: Option<T>) -> TokenStream {
    option_tokens(value.map(|value| quote!(#value)))
}

fn option_tokens(value: Option<TokenStream>) -> TokenStream {
    value.map_or_else(|| quote!(None), |value| quote!(Some(#value)))
}
