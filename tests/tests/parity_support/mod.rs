//! How the surfaces of the two twins differ.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens as _;
use sandboxer_tests::surface::{self, Method, Parameter, Surface};
use syn::{Type, visit_mut::VisitMut};

/// What is allowed to differ. Each entry ends with its reason.
#[derive(Clone, Copy, Default)]
pub(crate) struct Rules<'a> {
    pub(crate) renamed: &'a [(&'a str, &'a str, &'a str)],
    pub(crate) different: &'a [(&'a str, &'a str, &'a str)],
    pub(crate) extra: &'a [(&'a str, &'a str, &'a str)],
}

impl Rules<'_> {
    /// The name of an async type, or of anything else, in the twin.
    fn twin_name(&self, name: &str) -> String {
        surface::twin_name(name, self.renamed)
    }
}

/// The exported types that cannot be shared with a blocking program.
fn async_types(surface: &Surface) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    loop {
        let more: Vec<String> = surface
            .shapes()
            .filter(|(name, _)| !found.contains(*name))
            .filter(|(_, shape)| {
                shape
                    .methods
                    .values()
                    .any(|verb| verb.is_async || verb.answer.as_ref().is_some_and(|a| mentions(a, &found)))
            })
            .map(|(name, _)| name.to_owned())
            .collect();
        if more.is_empty() {
            return found.into_iter().filter(|name| surface.exported().contains(name)).collect();
        }
        found.extend(more);
    }
}

fn takes(verb: &Method, rules: &Rules<'_>) -> String {
    let shown = verb.parameters.iter().map(|parameter| match parameter {
        Parameter::Receiver(receiver) => receiver.clone(),
        Parameter::Named(name, kind) => format!("{name}: {}", in_twin(kind, rules)),
    });
    format!("({})", shown.collect::<Vec<_>>().join(", "))
}

fn answers(verb: &Method, rules: &Rules<'_>) -> String {
    verb.answer.as_ref().map_or_else(|| "()".to_owned(), |answer| in_twin(answer, rules))
}

fn described(verb: &Method, rules: &Rules<'_>) -> String {
    let mut text = verb.sentence.clone();
    for (from, to, _) in rules.renamed {
        text = text.replace(from, to);
    }
    text.replace("Async", "")
}

/// How many verbs were compared, and what differs.
pub(crate) fn compare(sdk: &Surface, twin: &Surface, rules: &Rules<'_>) -> (usize, Vec<String>) {
    let (mut compared, mut differences) = (0, Vec::new());
    let async_types = async_types(sdk);
    for name in sdk.exported() {
        let module =
            sdk.modules().iter().find(|(_, names)| names.contains(name)).map(|(module, _)| module.as_str());
        if !async_types.contains(name) && !twin.gives_out(name, module) {
            differences.push(format!("{name}: the twin does not re-export it"));
        }
    }
    for name in &async_types {
        let twin_name = rules.twin_name(name);
        if !twin.exported().contains(&twin_name) {
            differences.push(format!("{name}: the twin lacks `{twin_name}`"));
            continue;
        }
        let none = BTreeMap::new();
        let verbs = sdk.shape(name).map_or(&none, |shape| &shape.methods);
        let twins = twin.shape(&twin_name).map_or(&none, |shape| &shape.methods);
        let item = twin.shape(&twin_name).and_then(|shape| shape.item.as_ref());
        for (verb_name, verb) in verbs {
            let excepted = rules.different.iter().any(|(kind, verb, _)| kind == name && verb == verb_name);
            let found = differences_of(verb_name, verb, twins.get(verb_name), item, rules);
            match (found.is_empty(), excepted) {
                (true, true) => differences
                    .push(format!("{name}::{verb_name}: listed as an exception, but it does not differ")),
                (false, false) => {
                    differences
                        .extend(found.into_iter().map(|found| format!("{name}::{verb_name}: {found}")));
                }
                _ => {}
            }
            compared += 1;
        }
        for verb_name in twins.keys().filter(|verb_name| !verbs.contains_key(*verb_name)) {
            if !rules.extra.iter().any(|(kind, verb, _)| *kind == twin_name && verb == verb_name) {
                differences.push(format!("{twin_name}::{verb_name}: the async SDK lacks it"));
            }
        }
    }
    for (kind, verb, _) in rules.extra {
        if twin.method(kind, verb).is_none() {
            differences.push(format!("{kind}::{verb}: listed as an extra, but the twin does not have it"));
        }
    }
    (compared, differences)
}

fn differences_of(
    name: &str,
    verb: &Method,
    twin: Option<&Method>,
    item: Option<&Type>,
    rules: &Rules<'_>,
) -> Vec<String> {
    let Some(twin) = twin else {
        // A stream's `next` is what its twin does as an iterator.
        return match item {
            Some(item) if name == "next" => {
                let (async_answer, answer) =
                    (answers(verb, rules), format!("Option < {} >", in_twin(item, rules)));
                let same = async_answer == answer;
                if same { vec![] } else { vec![format!("answers `{async_answer}`, its twin `{answer}`")] }
            }
            _ => vec!["the twin lacks it".to_owned()],
        };
    };
    let pairs = [
        ("takes", takes(verb, rules), takes(twin, rules)),
        ("answers", answers(verb, rules), answers(twin, rules)),
        ("is described as", described(verb, rules), described(twin, rules)),
    ];
    pairs
        .into_iter()
        .filter(|(_, a, b)| a != b)
        .map(|(what, a, b)| format!("{what} `{a}`, its twin `{b}`"))
        .collect()
}

/// The type as the twin writes it: the last segment of each path, under the twin's name.
fn in_twin(kind: &Type, rules: &Rules<'_>) -> String {
    struct Normalise<'a>(&'a Rules<'a>);
    impl VisitMut for Normalise<'_> {
        fn visit_path_mut(&mut self, path: &mut syn::Path) {
            if let Some(mut last) = path.segments.pop() {
                last.ident = syn::Ident::new(&self.0.twin_name(&last.ident.to_string()), last.ident.span());
                path.leading_colon = None;
                path.segments.clear();
                path.segments.push(last);
            }
            syn::visit_mut::visit_path_mut(self, path);
        }
    }
    let mut kind = kind.clone();
    Normalise(rules).visit_type_mut(&mut kind);
    kind.to_token_stream().to_string()
}

fn mentions(kind: &Type, names: &BTreeSet<String>) -> bool {
    let text = kind.to_token_stream().to_string();
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| names.contains(word))
}
