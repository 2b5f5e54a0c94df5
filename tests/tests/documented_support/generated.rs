//! What generated items say of themselves.

use std::{fs, path::Path};

use quote::ToTokens as _;
use sandboxer_tests::surface::{doc_text, first_sentence};
use syn::{Attribute, Field, ImplItem, Item, Visibility};

/// Units by the end of a field's name: the words, one of which its documentation has to have.
const UNITS: &[(&str, &[&str])] = &[
    ("_seconds", &["second"]),
    ("_secs", &["second"]),
    ("_ms", &["millisecond"]),
    ("_minutes", &["minute"]),
    ("_hours", &["hour"]),
    ("_days", &["day"]),
    ("_bytes", &["byte"]),
    ("_mb", &["MB", "MiB", "megabyte"]),
    ("_mib", &["MiB"]),
    ("_gb", &["GB", "GiB", "gigabyte"]),
    ("_gib", &["GiB"]),
    ("_usd", &["dollar", "USD"]),
    ("_cents", &["cent"]),
    ("_percent", &["percent"]),
    ("_pct", &["percent"]),
];

/// How much was looked at.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) types: usize,
    pub(crate) fields: usize,
    pub(crate) operations: usize,
}

/// Checks every file of a folder but the engine, which nobody sees.
pub(crate) fn check_folder(folder: &Path, seen: &mut Seen, faults: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            check_folder(&path, seen, faults);
        } else if !path.ends_with("engine.rs") && !path.ends_with("mod.rs") {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            check_text(&fs::read_to_string(&path).unwrap(), &name, seen, faults);
        }
    }
}

/// Checks one file.
pub(crate) fn check_text(text: &str, file: &str, seen: &mut Seen, faults: &mut Vec<String>) {
    let mut fault = |what: String| faults.push(format!("{file}: {what}"));
    for item in syn::parse_file(text).unwrap().items {
        match item {
            Item::Struct(item) if is_pub(&item.vis) => {
                seen.types += 1;
                let name = item.ident.to_string();
                if !has_sentence(&item.attrs) {
                    fault(format!("{name}: no sentence"));
                }
                for field in item.fields.iter().filter(|field| is_pub(&field.vis)) {
                    seen.fields += 1;
                    check_field(&name, field, &mut fault);
                }
            }
            Item::Enum(item) if is_pub(&item.vis) => {
                seen.types += 1;
                if !has_sentence(&item.attrs) {
                    fault(format!("{}: no sentence", item.ident));
                }
                for variant in item.variants.iter().filter(|variant| !has_sentence(&variant.attrs)) {
                    fault(format!("{}::{}: no sentence", item.ident, variant.ident));
                }
            }
            Item::Impl(block) if block.trait_.is_none() => {
                let name = block.self_ty.to_token_stream().to_string().replace(' ', "");
                for item in &block.items {
                    let ImplItem::Fn(method) = item else { continue };
                    if !is_pub(&method.vis) {
                        continue;
                    }
                    let place = format!("{name}::{}", method.sig.ident);
                    if !has_sentence(&method.attrs) {
                        fault(format!("{place}: no sentence"));
                    }
                    let docs = doc_text(&method.attrs);
                    if method.sig.asyncness.is_some() || docs.contains("# Repetition") {
                        seen.operations += 1;
                        let errors = docs.split("# Errors").nth(1).unwrap_or_default();
                        if !errors.lines().any(|line| is_code(line.trim())) {
                            fault(format!("{place}: lists no errors"));
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

/// A line such as `` * `not_found` (404): why. ``
fn is_code(line: &str) -> bool {
    let Some((code, rest)) = line.strip_prefix("* `").and_then(|line| line.split_once("` (")) else {
        return false;
    };
    let status = rest.split_once("): ").and_then(|(status, why)| (!why.is_empty()).then_some(status));
    !code.is_empty() && status.is_some_and(|status| status.parse::<u16>().is_ok())
}

fn check_field(owner: &str, field: &Field, fault: &mut impl FnMut(String)) {
    let name = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
    let place = format!("{owner}.{name}");
    if !has_sentence(&field.attrs) {
        fault(format!("{place}: no sentence"));
    }
    let docs = doc_text(&field.attrs);
    for (end, words) in UNITS {
        if name.ends_with(end) && !words.iter().any(|word| docs.to_lowercase().contains(&word.to_lowercase()))
        {
            fault(format!("{place}: does not say that it is in {}s", words[0]));
        }
    }
    let counted =
        ["Timestamp", "String"].iter().any(|kind| field.ty.to_token_stream().to_string().contains(kind));
    if name.ends_with("_at") && !counted && !["second", "ISO"].iter().any(|word| docs.contains(word)) {
        fault(format!("{place}: a time that does not say how it is counted"));
    }
}

fn has_sentence(attributes: &[Attribute]) -> bool {
    first_sentence(attributes).ends_with(['.', '!', '?'])
}

fn is_pub(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The variants of an enum in a text, each with its documentation.
pub(crate) fn variants(text: &str, name: &str) -> Vec<(String, String)> {
    let items = syn::parse_file(text).unwrap().items.into_iter();
    let found = items.filter_map(|item| match item {
        Item::Enum(item) if item.ident == name => Some(item.variants),
        _ => None,
    });
    found.flatten().map(|variant| (variant.ident.to_string(), doc_text(&variant.attrs))).collect()
}
