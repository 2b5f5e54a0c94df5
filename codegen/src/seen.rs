//! What suites saw the local server answer, held against the document: whether every operation and every code came up.
//!
//! A line of what was seen is an operation's id, or `-` for a path without one, the status, and the code of a failure, or
//! `-`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use crate::{
    Error, Inputs, Result,
    codes::Produced,
    documents,
    load::{Answer, Document, Operation},
};

/// What is seen of the WebSocket routes, as long as the local server opens none.
const NO_WEBSOCKET: u16 = 426;

/// What came up and what did not.
#[derive(Clone, Debug)]
pub struct Report {
    /// A line for each operation: the statuses and codes it was seen to answer with.
    pub table: String,
    /// What is missing, and what should not be there.
    pub faults: Vec<String>,
}

/// Holds the lines of `text` against the document with what overlays add.
///
/// Each operation must have been answered with a success, faces counted by themselves; with each code that it lists, faces
/// counted together; each code that all operations or those with one parameter share must have come up once; and no code may
/// have come up that the operation does not have.
///
/// # Errors
/// When the document cannot be read, or a line is none.
pub fn report(inputs: &Inputs, text: &str) -> Result<Report> {
    let (document, dialects) = documents(inputs)?;
    let services = dialects.iter().filter_map(|dialect| dialect.document.service.as_ref());
    let aliases: BTreeMap<&str, &str> = services
        .flat_map(|service| &service.code_aliases)
        .map(|(says, means)| (says.as_str(), means.as_str()))
        .collect();
    let mut seen = Seen::default();
    for line in text.lines() {
        let odd = || Error::new(format!("`{line}` is not an operation, a status and a code"));
        let [operation, status, code] = line.split(' ').collect::<Vec<_>>()[..] else { return Err(odd()) };
        let status: u16 = status.parse().map_err(|_| odd())?;
        let code = Some(code).filter(|code| *code != "-");
        let code = code.map(|code| aliases.get(code).copied().unwrap_or(code));
        seen.0.entry(operation).or_default().entry(status).or_default().extend(code);
    }
    Ok(Report { table: seen.table(&document), faults: seen.faults(&document) })
}

/// Codes by status by operation.
#[derive(Default)]
struct Seen<'a>(BTreeMap<&'a str, BTreeMap<u16, BTreeSet<&'a str>>>);

impl Seen<'_> {
    fn codes(&self, operation: &str) -> impl Iterator<Item = &str> {
        self.0.get(operation).into_iter().flat_map(|statuses| statuses.values().flatten().copied())
    }

    fn succeeded(&self, operation: &Operation) -> bool {
        let is_success = |status: &u16| match operation.answer {
            Answer::WebSocket => *status == NO_WEBSOCKET || *status == operation.success,
            _ => (200..300).contains(status),
        };
        self.0.get(operation.id.as_str()).is_some_and(|statuses| statuses.keys().any(is_success))
    }

    fn table(&self, document: &Document) -> String {
        let mut table = String::new();
        let width = document.operations.iter().map(|operation| operation.id.len()).max().unwrap_or(0);
        let ids = document.operations.iter().map(|operation| operation.id.as_str());
        for id in ids.chain(["-"]) {
            let statuses = self.0.get(id).into_iter().flatten();
            let answers: Vec<String> = statuses
                .map(|(status, codes)| {
                    codes.iter().fold(status.to_string(), |text, code| format!("{text} {code}"))
                })
                .collect();
            let answers = if answers.is_empty() { "nothing".to_owned() } else { answers.join(", ") };
            let _ = writeln!(table, "{id:<width$}  {answers}");
        }
        let ways = |way| document.errors.values().filter(|code| code.produced == way).count();
        let _ = writeln!(
            table,
            "{} operations and faces; {} codes: {} ruled, {} by a scenario, {} of other operations",
            document.operations.len(),
            document.errors.len(),
            ways(Produced::Ruled),
            ways(Produced::Scenario),
            ways(Produced::Elsewhere),
        );
        table
    }

    fn faults(&self, document: &Document) -> Vec<String> {
        let mut faults = Vec::new();
        let way = |code: &str| document.errors.get(code).map_or_else(String::new, |code| code.way());
        let everywhere: BTreeSet<&str> = self.0.keys().flat_map(|operation| self.codes(operation)).collect();
        let mut shared: BTreeSet<&String> = document.common_errors.iter().collect();
        for operation in &document.operations {
            let id = operation.id.as_str();
            if !self.succeeded(operation) {
                faults.push(format!("{id}: no success"));
            }
            shared.extend(operation.parameters.iter().flat_map(|parameter| &parameter.errors));
            let own: BTreeSet<&str> = operation.own_errors.iter().map(String::as_str).collect();
            for code in self.codes(id).filter(|code| !operation.errors.iter().any(|known| known == code)) {
                faults.push(format!("{id}: {code} is none of its codes"));
            }
            if operation.face_of.is_some() {
                continue;
            }
            let faces = document.operations.iter().filter(|face| {
                face.face_of.as_ref().is_some_and(|(of, _)| of == id) || face.id == operation.id
            });
            let found: BTreeSet<&str> = faces.flat_map(|face| self.codes(&face.id)).collect();
            for code in own.difference(&found) {
                faults.push(format!("{id}: never {code} ({})", way(code)));
            }
        }
        for code in shared.into_iter().filter(|code| !everywhere.contains(code.as_str())) {
            faults.push(format!("never {code} ({})", way(code)));
        }
        let known = |id: &str| id == "-" || document.operations.iter().any(|operation| operation.id == id);
        for (id, statuses) in &self.0 {
            if !known(id) {
                faults.push(format!("{id}: there is no such operation"));
            }
            for code in self.codes(id).filter(|code| !document.errors.contains_key(*code)) {
                faults.push(format!("{id}: {code} is not described"));
            }
            for (status, _) in statuses.iter().filter(|(status, codes)| **status >= 400 && codes.is_empty()) {
                faults.push(format!("{id}: {status} without a code"));
            }
        }
        faults
    }
}
