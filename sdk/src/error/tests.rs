use std::{fs, path::Path};

use regex_lite::Regex;

fn sources(folder: &Path, into: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("tests") {
            continue;
        } else if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            let shipped = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            // An example of a comment shows codes of the service.
            for line in shipped.lines().filter(|line| !line.trim_start().starts_with("//")) {
                into.push_str(line);
                into.push('\n');
            }
        }
    }
}

/// The kinds and this client's codes that the code makes are those that `docs/errors.md` tells of.
#[test]
fn the_documentation_names_every_kind_and_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // A published crate has neither the documentation nor its twin beside it.
    let Ok(page) = fs::read_to_string(root.join("../docs/errors.md")) else { return };
    let kinds = fs::read_to_string(root.join("src/error/kind.rs")).unwrap();
    let variants =
        kinds.split("pub enum ErrorKind {").nth(1).and_then(|rest| rest.split("\n}").next()).unwrap();
    let mut count = 0;
    for variant in variants.lines().map(str::trim).filter(|line| !line.starts_with("//") && !line.is_empty())
    {
        count += 1;
        let variant = variant.trim_end_matches(',');
        assert!(page.contains(&format!("`{variant}`")), "docs/errors.md lacks the kind {variant}");
    }
    assert_eq!(count, 21);
    let mut code = String::new();
    sources(&root.join("src"), &mut code);
    sources(&root.join("../sdk-blocking/src"), &mut code);
    let made = Regex::new(r#"ErrorKind::\w+,\s*(?:Delivery::\w+,\s*)?"([a-z_0-9]+)""#).unwrap();
    let mut codes: Vec<&str> =
        made.captures_iter(&code).map(|found| found.get(1).unwrap().as_str()).collect();
    codes.sort_unstable();
    codes.dedup();
    assert!(codes.len() >= 20, "{codes:?}");
    let missing: Vec<_> = codes.iter().filter(|code| !page.contains(&format!("`{code}`"))).collect();
    assert!(missing.is_empty(), "docs/errors.md lacks {missing:?}");
}
