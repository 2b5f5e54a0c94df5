//! What attributes say: documentation, `doc(hidden)`, derives.

use syn::{Attribute, Expr, ExprLit, Lit, Meta, Token, punctuated::Punctuated};

/// The documentation, one line each.
pub fn doc_text(attributes: &[Attribute]) -> String {
    doc_lines(attributes).collect::<Vec<_>>().join("\n")
}

/// The first sentence of the documentation.
pub fn first_sentence(attributes: &[Attribute]) -> String {
    let lines = doc_lines(attributes).map(|line| line.trim().to_owned());
    let paragraph: Vec<String> =
        lines.skip_while(String::is_empty).take_while(|line| !line.is_empty()).collect();
    let paragraph = paragraph.join(" ");
    paragraph.split_inclusive(". ").next().unwrap_or_default().trim_end().to_owned()
}

fn doc_lines(attributes: &[Attribute]) -> impl Iterator<Item = String> {
    attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => text_of(&pair.value),
        _ => None,
    })
}

/// The text of a literal, or of several in a `concat!`.
fn text_of(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        Expr::Macro(used) if used.mac.path.is_ident("concat") => {
            let parts = used.mac.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated).ok()?;
            parts.iter().map(text_of).collect()
        }
        _ => None,
    }
}

/// Whether the documentation does not show it.
pub(super) fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("doc") && list.tokens.to_string() == "hidden",
        _ => false,
    })
}

/// The derived traits, each by the last segment of its path.
pub(super) fn derived(attributes: &[Attribute]) -> Vec<String> {
    let lists = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("derive") => Some(list.tokens.to_string()),
        _ => None,
    });
    let paths = lists.flat_map(|list| list.split(',').map(str::to_owned).collect::<Vec<_>>());
    paths.filter_map(|path| path.rsplit("::").next().map(|last| last.trim().to_owned())).collect()
}
