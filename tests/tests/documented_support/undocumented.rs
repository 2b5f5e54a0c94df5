//! What has no example.

use sandboxer_tests::surface::{Method, Surface};
use syn::Type;

use super::examples::{blocks, is_named, runs};

/// How many methods were seen, and what has no example.
///
/// A verb, which may fail or is async, needs an example of its own that shows it; a setter, a question, a constructor, and
/// what pulls from a stream, may be shown in that of its type. What `excused` names needs one that is compiled at least.
pub(crate) fn undocumented(surface: &Surface, excused: impl Fn(&str, &str) -> bool) -> (usize, Vec<String>) {
    let (mut seen, mut lacking) = (0, Vec::new());
    let generated = ["generated".to_owned()];
    for (name, shape) in surface.shapes() {
        let written = surface.declared_below(name, generated.iter());
        if !surface.is_public(name) || !shape.declared || written || shape.methods.is_empty() {
            continue;
        }
        let shown = runs(&shape.docs);
        let pulled = shape.item.is_some() || shape.methods.contains_key("next");
        for (verb, method) in &shape.methods {
            // Generated methods have a check of their own.
            if method.docs.contains("# Repetition") {
                continue;
            }
            seen += 1;
            let own = runs(&method.docs);
            let shows =
                |codes: &[String]| codes.iter().any(|code| is_named(code, verb) || iterates(code, verb));
            let fault = if excused(name, verb) {
                let compiled = blocks(&method.docs).into_iter().any(|fence| is_named(&fence.code, verb));
                (!compiled).then_some("no example")
            } else if is_verb(method) && !pulled {
                match own.is_empty() {
                    true => Some("no example that runs"),
                    false => (!shows(&own)).then_some("its example does not show it"),
                }
            } else {
                let shown = shows(&own) || shows(&shown);
                (!shown).then_some("neither its own example nor that of its type shows it")
            };
            lacking.extend(fault.map(|fault| format!("{name}::{verb}: {fault}")));
        }
    }
    (seen, lacking)
}

/// Whether it does something: it is async, or answers a result.
fn is_verb(method: &Method) -> bool {
    let result = match &method.answer {
        Some(Type::Path(path)) => path.path.segments.last().is_some_and(|last| last.ident == "Result"),
        _ => false,
    };
    method.is_async || result
}

/// A loop over an iterator shows its `next`.
fn iterates(code: &str, verb: &str) -> bool {
    verb == "next" && code.contains("for ") && code.contains(" in ")
}
