//! What the blocking twin calls otherwise than the async SDK.

/// Twins whose name is not the async one without `Async`: the async name, the twin's, and why.
pub const RENAMED: &[(&str, &str, &str)] = &[
    ("AsyncCommand", "CommandHandle", "`Command` is what is run"),
    ("ByteBody", "ByteIter", "it is an iterator and a reader"),
];

/// The name in the twin of an async type, or of anything else, by these exceptions.
pub fn twin_name(name: &str, renamed: &[(&str, &str, &str)]) -> String {
    match renamed.iter().find(|(from, ..)| *from == name) {
        Some((_, to, _)) => (*to).to_owned(),
        None => name.strip_prefix("Async").filter(|rest| !rest.is_empty()).unwrap_or(name).to_owned(),
    }
}
