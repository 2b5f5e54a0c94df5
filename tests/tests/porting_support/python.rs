//! The names of the Python packages: those that there are, and those that a table speaks of.

use std::collections::{BTreeMap, BTreeSet};

use super::tables::Row;

/// What a lower-case name before a dot stands for.
const RECEIVERS: &[(&str, &[&str])] = &[
    ("api", &["SandboxerApi", "BoatApi"]),
    ("client", &["Sandboxer", "AsyncSandboxer"]),
    ("sandbox", &["Sandbox"]),
    ("files", &["Files"]),
    ("run", &["PromptRun"]),
    ("command", &["Command"]),
    ("stream", &["CommandStream"]),
    ("result", &["CommandResult"]),
    ("error", &["SandboxerError", "WaitTimeoutError", "SandboxStateError", "CommandError", "RateLimitError"]),
    ("request_options", &["RequestOptions"]),
];

/// Names by package: a class, `Class.member`, `Class.member(option)`, a function, `function(option)`.
pub(crate) struct Names(BTreeMap<String, BTreeSet<String>>);

impl Names {
    /// Of lines that are a package and a name.
    pub(crate) fn read(text: &str) -> Self {
        let mut names = BTreeMap::<_, BTreeSet<_>>::new();
        for (package, name) in text.lines().filter_map(|line| line.split_once(' ')) {
            names.entry(package.to_owned()).or_default().insert(name.to_owned());
        }
        Self(names)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.values().map(BTreeSet::len).sum()
    }

    /// Whether a text is a name of some package.
    pub(crate) fn knows(&self, span: &str) -> bool {
        Spoken::of(span)
            .names
            .iter()
            .any(|readings| readings.iter().any(|name| self.0.values().any(|names| names.contains(name))))
    }

    /// What is wrong between the packages and the rows: a name that no package has, and a name that no row has. A method
    /// of the low-level client that `same` knows needs no row.
    pub(crate) fn compare(&self, rows: &[Row], same: impl Fn(&str) -> bool) -> Vec<String> {
        let mut problems = Vec::new();
        // By package, what its rows speak of.
        let mut covered = BTreeMap::<&str, (BTreeSet<String>, BTreeSet<String>)>::new();
        for row in rows {
            let packages: Vec<_> =
                self.0.iter().filter(|(package, _)| row.heading.contains(package.as_str())).collect();
            if packages.is_empty() {
                problems.push(format!("line {}: the table's heading names no package", row.line));
            }
            for span in &row.there {
                let spoken = Spoken::of(span);
                for readings in &spoken.names {
                    let mut known = false;
                    for (package, names) in &packages {
                        let here: Vec<_> = readings.iter().filter(|name| names.contains(*name)).collect();
                        known |= !here.is_empty();
                        covered.entry(package.as_str()).or_default().0.extend(here.into_iter().cloned());
                    }
                    if !known {
                        problems.push(format!(
                            "line {}: no package has `{}`",
                            row.line,
                            readings.join("` or `")
                        ));
                    }
                }
                for (package, _) in &packages {
                    covered.entry(package.as_str()).or_default().1.extend(spoken.options.clone());
                }
            }
        }
        for (package, names) in &self.0 {
            let nothing = Default::default();
            let (spoken, options) = covered.get(package.as_str()).unwrap_or(&nothing);
            for name in names {
                let low_level = name.strip_prefix("SandboxerApi.").or_else(|| name.strip_prefix("BoatApi."));
                let option = name.split_once('(').map(|(_, option)| option.trim_end_matches(')'));
                let is_covered = spoken.contains(name)
                    || low_level.is_some_and(&same)
                    || option.is_some_and(|option| options.contains(option));
                if !is_covered {
                    problems.push(format!("{package}: no row speaks of `{name}`"));
                }
            }
        }
        problems
    }
}

/// What one code span speaks of.
#[derive(Default)]
struct Spoken {
    /// Each with all ways to read it.
    names: Vec<Vec<String>>,
    /// Options of whatever has them: `timeout=` alone.
    options: Vec<String>,
}

impl Spoken {
    fn of(span: &str) -> Self {
        if let Some(option) = span.strip_suffix('=') {
            return Self { names: Vec::new(), options: vec![option.to_owned()] };
        }
        let (head, inside) = span.split_once('(').unwrap_or((span, ""));
        let path: Vec<&str> = head.split('.').collect();
        let readings: Vec<String> = match path[..] {
            // `sandbox.files.read`
            [.., receiver, member] => match RECEIVERS.iter().find(|(name, _)| *name == receiver) {
                Some((_, classes)) => classes.iter().map(|class| format!("{class}.{member}")).collect(),
                None => vec![format!("{receiver}.{member}")],
            },
            _ => vec![head.to_owned()],
        };
        let options = inside.trim_end_matches(')').split(',').filter_map(|part| part.split_once('='));
        let options = options.map(|(option, _)| {
            readings.iter().map(|reading| format!("{reading}({})", option.trim())).collect::<Vec<_>>()
        });
        let options: Vec<_> = options.collect();
        Self { names: [readings].into_iter().chain(options).collect(), options: Vec::new() }
    }
}
