//! Structs that a client sends: a constructor for what is required, chainable setters, and checks.

use indexmap::IndexMap;
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use serde_json::Value;

use crate::{
    Error, Result, docs,
    load::Document,
    names::{field_among, ident, pascal},
    schema::Schema,
    shape::Shape,
    validation::{Access, checks},
};

/// One field of something that is sent.
pub(crate) struct SentField<'a> {
    /// Its name on the wire, used in errors.
    pub key: &'a str,
    /// Its name in Rust.
    pub rust: Ident,
    /// What it may be.
    pub schema: &'a Schema,
    /// What it is for.
    pub description: &'a str,
    /// Whether it must be given.
    pub required: bool,
}

/// The parts of a struct that is sent.
pub(crate) struct Sent {
    /// The fields, with docs and serde attributes when `serde` was asked for.
    pub fields: TokenStream,
    /// `new`, the setters and `validate`.
    pub methods: TokenStream,
}

/// A request body. `forced` are fields that streaming faces fill in; they do not show.
pub(crate) fn structure(
    document: &Document,
    name: &str,
    schema: &Schema,
    forced: &IndexMap<String, Value>,
) -> Result<TokenStream> {
    let given = schema.properties.iter().filter(|(key, _)| !forced.contains_key(*key));
    let fields = given.map(|(key, property)| SentField {
        key,
        rust: field_among(key, schema.properties.keys()),
        schema: property,
        description: document.description(property),
        required: schema.required.contains(key),
    });
    let sent = parts(document, name, &fields.collect::<Vec<_>>(), true)?;
    let docs = docs::attributes(&docs::sentence(schema.description.as_deref().unwrap_or(name)));
    let name = ident(name);
    let (fields, methods) = (sent.fields, sent.methods);
    Ok(quote! {
        #docs
        #[non_exhaustive]
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        pub struct #name {
            #fields
        }

        impl #name {
            #methods
        }
    })
}

/// The body of a streaming face: the public request with the fields that the face forces.
pub(crate) fn face_body(name: &str, request: &str, forced: &IndexMap<String, Value>) -> Result<TokenStream> {
    let mut fields = Vec::new();
    let mut values = Vec::new();
    for (key, value) in forced {
        let Value::Bool(value) = value else {
            return Err(Error::new(format!("{name}: only a boolean field can be forced")));
        };
        let rust = ident(&crate::names::snake(key));
        fields.push(quote!(#[serde(rename = #key)] #rust: bool,));
        values.push(quote!(#rust: #value,));
    }
    let doc = format!(" A [`{request}`] with the fields that a streaming answer needs.");
    let (name, request) = (ident(name), ident(request));
    Ok(quote! {
        #[doc = #doc]
        #[derive(Clone, Debug, serde::Serialize)]
        pub(crate) struct #name {
            #[serde(flatten)]
            request: #request,
            #(#fields)*
        }

        impl From<#request> for #name {
            fn from(request: #request) -> Self {
                Self { request, #(#values)* }
            }
        }
    })
}

/// The fields and methods of something that is sent.
pub(crate) fn parts(document: &Document, name: &str, list: &[SentField<'_>], serde: bool) -> Result<Sent> {
    let (mut fields, mut setters, mut validation) =
        (TokenStream::new(), TokenStream::new(), TokenStream::new());
    let (mut arguments, mut values) = (Vec::new(), Vec::new());
    for sent in list {
        let place = format!("{name}.{}", sent.key);
        let shape = Shape::of(document, &place, sent.schema)?;
        let (rust, kind, key) = (&sent.rust, shape.tokens(), sent.key);
        // Required and null all the same: the caller says which.
        let null = serde && sent.required && sent.schema.nullable;
        let three = sent.schema.three_state;
        if three && sent.required {
            return Err(Error::new(format!("{place}: a required field has no three states")));
        }
        let text = docs::with_limits(sent.description, sent.schema);
        let docs = docs::attributes(&text);
        let rename = (serde && *rust != key).then(|| quote!(rename = #key));
        let (stored, absent) = match (sent.required, three) {
            (true, _) if null => (quote!(Option<#kind>), None),
            (true, _) => (kind.clone(), None),
            (false, true) => (quote!(crate::wire::Patch<#kind>), Some("crate::wire::Patch::is_unset")),
            (false, false) => (quote!(Option<#kind>), Some("Option::is_none")),
        };
        let skip = absent.filter(|_| serde).map(|path| quote!(default, skip_serializing_if = #path));
        let attributes: Vec<_> = rename.into_iter().chain(skip).collect();
        let attributes = if attributes.is_empty() { quote!() } else { quote!(#[serde(#(#attributes),*)]) };
        fields.extend(quote!(#docs #attributes pub #rust: #stored,));

        let set = docs::attributes(&format!("Sets `{key}`. {text}"));
        let (argument, value) = match (sent.required, three) {
            (true, _) if null => {
                (quote!(impl Into<crate::wire::Patch<#kind>>), quote!(#rust.into().into_value()))
            }
            (true, _) => (quote!(impl Into<#kind>), quote!(#rust.into())),
            (false, true) => (quote!(impl Into<#stored>), quote!(#rust.into())),
            (false, false) if shape == Shape::Boolean => (quote!(bool), quote!(Some(#rust))),
            (false, false) => (quote!(impl Into<#kind>), quote!(Some(#rust.into()))),
        };
        if sent.required {
            arguments.push(quote!(#rust: #argument));
            values.push(quote!(#rust: #value,));
        } else {
            setters.extend(quote! {
                #set
                #[must_use]
                pub fn #rust(mut self, #rust: #argument) -> Self {
                    self.#rust = #value;
                    self
                }
            });
        }
        let access = if sent.required && !null { Access::field(rust) } else { Access::binding() };
        let statements = checks(document, &place, &quote!(#key), &shape, sent.schema, &access)?;
        if let Some(dialect) = &sent.schema.dialect {
            if sent.required {
                return Err(Error::new(format!("{place}: what only one dialect has cannot be required")));
            }
            let (variant, given) = (
                ident(&pascal(dialect)),
                if three { quote!(!self.#rust.is_unset()) } else { quote!(self.#rust.is_some()) },
            );
            validation.extend(quote! {
                crate::wire::check::dialect(#key, #given, dialect, crate::Dialect::#variant)?;
            });
        }
        if !statements.is_empty() {
            validation.extend(match (sent.required, three) {
                (true, _) if null => quote!(if let Some(value) = &self.#rust { #statements }),
                (true, _) => statements,
                (false, true) => {
                    quote!(if let crate::wire::Patch::Value(value) = &self.#rust { #statements })
                }
                (false, false) => quote!(if let Some(value) = &self.#rust { #statements }),
            });
        }
    }
    let default = arguments.is_empty();
    let made = match values.len() {
        0 => quote!(Self::default()),
        all if all == list.len() => quote!(Self { #(#values)* }),
        _ => quote!(Self { #(#values)* ..Self::default() }),
    };
    let new_doc = if default { " Nothing set." } else { " With what is required; the rest is left out." };
    let dialect = if mentions(&validation, "dialect") { quote!(dialect) } else { quote!(_) };
    let methods = quote! {
        #[doc = #new_doc]
        pub fn new(#(#arguments),*) -> Self {
            #made
        }

        #setters

        /// Checks every field that is given against its limits, as the default dialect has them.
        ///
        /// # Errors
        /// The first field that is out of its limits, with what is allowed.
        pub fn validate(&self) -> Result<(), crate::wire::InvalidField> {
            self.validate_for(crate::Dialect::default())
        }

        /// Checks every field that is given against its limits; a call does this before anything is sent.
        ///
        /// # Errors
        /// The first field that is out of its limits or that the dialect does not have, with what is allowed.
        pub fn validate_for(&self, #dialect: crate::Dialect) -> Result<(), crate::wire::InvalidField> {
            #validation
            Ok(())
        }
    };
    Ok(Sent { fields, methods })
}

/// Whether the tokens have an identifier of that name.
fn mentions(tokens: &TokenStream, name: &str) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        proc_macro2::TokenTree::Ident(found) => found == name,
        proc_macro2::TokenTree::Group(group) => mentions(&group.stream(), name),
        _ => false,
    })
}
