//! Rust names for the document's names.

use heck::{ToPascalCase, ToSnakeCase};
use proc_macro2::{Ident, Span};

/// `sandboxId` becomes `sandbox_id`.
pub(crate) fn snake(name: &str) -> String {
    name.to_snake_case()
}

/// `in_progress` becomes `InProgress`; `self`, which alone makes a keyword, gets a trailing underscore.
pub(crate) fn pascal(name: &str) -> String {
    let name = name.to_pascal_case();
    if name == "Self" { "Self_".into() } else { name }
}

/// An identifier for a field, setter or argument; `type` becomes `kind`, another keyword, and what every request has as a
/// method, gets a trailing underscore.
pub(crate) fn field(name: &str) -> Ident {
    match name {
        "type" => ident("kind"),
        "new" | "validate" => ident(&format!("{name}_")),
        _ => ident(&callable(name)),
    }
}

/// The same for one of several fields of one thing: `type` beside `kind` becomes `type_`.
pub(crate) fn field_among<'a>(name: &str, mut all: impl Iterator<Item = &'a String>) -> Ident {
    if name == "type" && all.any(|other| snake(other) == "kind") { ident("type_") } else { field(name) }
}

/// A method's name; a keyword gets a trailing underscore, as the engine's generator gives it.
pub(crate) fn callable(name: &str) -> String {
    let name = snake(name);
    if syn::parse_str::<syn::Ident>(&name).is_err() { format!("{name}_") } else { name }
}

/// An identifier as it stands.
pub(crate) fn ident(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}
