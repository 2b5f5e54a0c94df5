//! Whether every setter, and every verb with arguments, has a line.

use std::{collections::BTreeSet, fs, path::Path};

use super::calls;
use sandboxer_tests::surface::{Listed as Method, Surface};

/// What has no line, and which lines or exceptions are wrong.
pub(crate) fn problems(
    surface: &Surface,
    goldens: &Path,
    types: &[(&str, &str)],
    exceptions: &[(&str, &str, &str)],
) -> Vec<String> {
    let methods = surface.methods();
    let answers = calls::answers(&methods);
    let (mut covered, mut problems) = (BTreeSet::new(), Vec::new());
    let mut files: Vec<_> = fs::read_dir(goldens).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let mut plain = Vec::new();
        for line in text.lines() {
            let Some((how @ ("plain" | "call"), call)) = line.split_once(": ") else { continue };
            let used = match calls::used(call, &answers) {
                Ok(used) => used,
                Err(error) => {
                    problems.push(format!("{}: `{call}`: {error}", file.display()));
                    continue;
                }
            };
            if how == "plain" {
                plain = used.clone();
                covered.extend(used);
                continue;
            }
            let fresh: BTreeSet<String> = used.into_iter().filter(|method| !plain.contains(method)).collect();
            let options: Vec<&String> = fresh.iter().filter(|name| is_setter_of(&methods, name)).collect();
            let owners: BTreeSet<_> =
                options.iter().filter_map(|name| name.split_once("::")).map(|(owner, _)| owner).collect();
            if options.len() > owners.len() {
                problems.push(format!("`{call}` sets more than one thing: {options:?}"));
            }
            covered.extend(fresh);
        }
    }
    let is_excused = |method: &Method| {
        types.iter().any(|(owner, _)| *owner == method.owner)
            || exceptions.iter().any(|(owner, name, _)| *owner == method.owner && *name == method.name)
    };
    for method in methods.iter().filter(|method| needs_line(method)) {
        let name = format!("{}::{}", method.owner, method.name);
        if !covered.contains(&name) && !is_excused(method) {
            problems.push(format!("{name} has no line in tests/goldens"));
        }
    }
    for (owner, _) in types {
        if !methods.iter().any(|method| method.owner == *owner && needs_line(method)) {
            problems.push(format!("{owner} is excused, but has nothing that needs a line"));
        }
    }
    for (owner, name, _) in exceptions {
        if !methods.iter().any(|method| method.owner == *owner && method.name == *name && needs_line(method))
        {
            problems.push(format!("{owner}::{name} is excused, but needs no line"));
        }
        if covered.contains(&format!("{owner}::{name}")) {
            problems.push(format!("{owner}::{name} is excused, but has a line"));
        }
    }
    problems
}

/// Takes a value and gives it back changed.
fn is_setter(method: &Method) -> bool {
    method.takes_self
        && calls::answers(std::slice::from_ref(method)).values().any(|kind| *kind == method.owner)
}

fn is_setter_of(methods: &[Method], name: &str) -> bool {
    methods.iter().any(|method| format!("{}::{}", method.owner, method.name) == name && is_setter(method))
}

fn needs_line(method: &Method) -> bool {
    is_setter(method) || method.arguments > 0
}
