//! Code in documentation.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A block of code.
#[derive(Debug, Default)]
pub(crate) struct Fence {
    /// What stands behind the opening fence.
    pub(crate) info: String,
    /// What is between the fences.
    pub(crate) code: String,
}

/// The blocks of a documentation.
pub(crate) fn blocks(docs: &str) -> Vec<Fence> {
    let (mut found, mut open): (Vec<Fence>, Option<Fence>) = (Vec::new(), None);
    for line in docs.lines() {
        match (line.trim().strip_prefix("```"), open.take()) {
            (Some(_), Some(fence)) => found.push(fence),
            (Some(info), None) => open = Some(Fence { info: info.to_owned(), ..Fence::default() }),
            (None, Some(mut fence)) => {
                fence.code.push_str(line);
                fence.code.push('\n');
                open = Some(fence);
            }
            (None, None) => {}
        }
    }
    found
}

/// The code of the blocks that are run, without what is commented out.
pub(crate) fn runs(docs: &str) -> Vec<String> {
    let run = blocks(docs).into_iter().filter(|fence| fence.info.is_empty() || fence.info == "rust");
    run.map(|fence| without_comments(&fence.code)).collect()
}

/// Whether code uses a name: as a method, a path's last part, or in a pattern.
pub(crate) fn is_named(code: &str, name: &str) -> bool {
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + name.len()..].chars().next();
        let called = matches!(before, Some('.' | ':'));
        called && !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
    })
}

fn without_comments(code: &str) -> String {
    let mut kept = String::new();
    let mut rest = code;
    while let Some((before, after)) = rest.split_once("/*") {
        kept.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    let lines = kept.lines().map(|line| line.split_once("// ").map_or(line, |(code, _)| code));
    lines.collect::<Vec<_>>().join("\n")
}

/// Every block in the documentation of a folder's files, with its file.
pub(crate) fn fences(folder: &Path) -> Vec<(PathBuf, Fence)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(fences(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let docs: Vec<&str> = text
                .lines()
                .map(|line| line.trim_start())
                .map(|line| line.strip_prefix("///").or(line.strip_prefix("//!")).unwrap_or_default())
                .collect();
            found.extend(blocks(&docs.join("\n")).into_iter().map(|fence| (path.clone(), fence)));
        }
    }
    found
}
