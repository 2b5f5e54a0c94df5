//! Doc comments from descriptions, and limits in words.

use proc_macro2::TokenStream;
use quote::quote;

use crate::schema::{Additional, Check, Schema};

const WIDTH: usize = 100;

/// `#[doc]` attributes for a text of one or more paragraphs; a list item and a heading begin a line of their own, whatever
/// else is broken in a paragraph is filled anew.
pub(crate) fn attributes(text: &str) -> TokenStream {
    let mut out = TokenStream::new();
    for line in filled(text).iter().flat_map(|line| wrap(line)) {
        let line = if line.is_empty() { String::new() } else { format!(" {line}") };
        out.extend(quote!(#[doc = #line]));
    }
    out
}

/// The lines of a text with each paragraph and each list item on one.
fn filled(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.trim().lines().map(str::trim) {
        match lines.last_mut() {
            Some(last) if !starts_a_line(line) && !last.is_empty() && !last.starts_with('#') => {
                last.push(' ');
                last.push_str(line);
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines
}

fn starts_a_line(line: &str) -> bool {
    line.is_empty() || line.starts_with("* ") || line.starts_with('#')
}

fn wrap(line: &str) -> Vec<String> {
    let indent = if line.starts_with("* ") { "  " } else { "" };
    let mut lines = Vec::new();
    let mut current = String::new();
    for word in line.split_whitespace() {
        if !current.is_empty() && current.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(std::mem::replace(&mut current, format!("{indent}{word}")));
        } else {
            if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(word);
        }
    }
    lines.push(current);
    lines
}

/// What to say of something that only one dialect has; begins with a blank.
pub(crate) fn only(dialect: Option<&str>) -> String {
    let variant = |name| crate::names::pascal(name);
    dialect.map_or_else(String::new, |name| {
        format!(" Only [`Dialect::{0}`](crate::Dialect::{0}) has it.", variant(name))
    })
}

/// A description as a sentence, then the schema's limits in words.
pub(crate) fn with_limits(description: &str, schema: &Schema) -> String {
    let mut text = sentence(description);
    for limit in limits(schema) {
        text.push(' ');
        text.push_str(&limit);
    }
    text.push_str(&only(schema.dialect.as_deref()));
    text
}

/// A text that ends as a sentence does.
pub(crate) fn sentence(text: &str) -> String {
    let text = text.trim().replace("\n\n", "\n");
    if text.is_empty() || text.ends_with(['.', '!', '?', ':']) { text } else { format!("{text}.") }
}

fn limits(schema: &Schema) -> Vec<String> {
    let mut limits = Vec::new();
    match (schema.minimum, schema.maximum) {
        (Some(low), Some(high)) => limits.push(format!("From {low} to {high}.")),
        (Some(low), None) => limits.push(format!("At least {low}.")),
        (None, Some(high)) => limits.push(format!("At most {high}.")),
        (None, None) => {}
    }
    match (schema.min_length, schema.max_length) {
        (Some(1), None) => limits.push("Not empty.".into()),
        (Some(1), Some(high)) => limits.push(format!("Not empty, at most {high} characters.")),
        (Some(low), Some(high)) => limits.push(format!("From {low} to {high} characters.")),
        (Some(low), None) => limits.push(format!("At least {low} characters.")),
        (None, Some(high)) => limits.push(format!("At most {high} characters.")),
        (None, None) => {}
    }
    if let Some(bytes) = schema.max_bytes {
        limits.push(format!("At most {bytes} bytes."));
    }
    if let Some(pattern) = &schema.pattern {
        limits.push(format!("Matches `{pattern}`."));
    }
    for (dialect, pattern) in &schema.dialect_patterns {
        let name = crate::names::pascal(dialect);
        limits.push(format!("With [`Dialect::{name}`](crate::Dialect::{name}) it matches `{pattern}`."));
    }
    match (schema.min_items, schema.max_items) {
        (Some(1), None) => limits.push("Not empty.".into()),
        (Some(1), Some(high)) => limits.push(format!("Not empty, at most {high} items.")),
        (Some(low), Some(high)) => limits.push(format!("From {low} to {high} items.")),
        (Some(low), None) => limits.push(format!("At least {low} items.")),
        (None, Some(high)) => limits.push(format!("At most {high} items.")),
        (None, None) => {}
    }
    if let Some(entries) = schema.max_properties {
        limits.push(format!("At most {entries} entries."));
    }
    match schema.check {
        Some(Check::EnvMap) => limits.push(
            "Names are a letter or underscore and up to 127 letters, digits and underscores; some are reserved; names \
             and values take at most 64 KiB and hold no NUL."
                .into(),
        ),
        Some(Check::NoNul) => limits.push("No NUL character.".into()),
        None => {}
    }
    if let Some(Additional::Allowed(true)) = &schema.additional_properties {
        limits.push("Any keys.".into());
    }
    if let Some(default) = &schema.default {
        limits.push(format!(
            "`{}` if left out.",
            default.as_str().map_or_else(|| default.to_string(), str::to_owned)
        ));
    }
    limits
}
