//! What a run of a stranger wrote, and what it comes to.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::faults::Faults;

/// What a run wrote.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The public methods that the package was found to have.
    methods: BTreeSet<String>,
    /// Those that were called and did what they should.
    called: BTreeSet<String>,
    /// The scenarios, and what went wrong in each.
    scenarios: BTreeMap<String, Option<String>>,
    seconds: f64,
    /// The faults that showed, and how.
    faults: BTreeMap<String, BTreeSet<String>>,
    /// Whether it came to its end.
    ended: bool,
}

impl Report {
    /// Reads the lines of a report.
    ///
    /// # Errors
    ///
    /// A line is none of a report.
    pub fn read(lines: &str) -> Result<Self, String> {
        let mut report = Self::default();
        for line in lines.lines() {
            let known = serde_json::from_str(line).ok().and_then(|entry: Value| report.take(&entry));
            known.ok_or_else(|| format!("not a line of a report: {line}"))?;
        }
        Ok(report)
    }

    fn take(&mut self, entry: &Value) -> Option<()> {
        let text = |name: &str| entry[name].as_str().map(str::to_owned);
        match entry["kind"].as_str()? {
            "method" => drop(self.methods.insert(text("name")?)),
            "called" => drop(self.called.insert(text("name")?)),
            "scenario" => {
                self.seconds += entry["seconds"].as_f64()?;
                let again = self.scenarios.insert(text("name")?, text("error"));
                return again.is_none().then_some(());
            }
            "fault" => drop(self.faults.entry(text("id")?).or_default().insert(text("symptom")?)),
            "end" => self.ended = true,
            _ => return None,
        }
        Some(())
    }

    /// How many public methods the package was found to have.
    pub fn methods(&self) -> usize {
        self.methods.len()
    }

    /// All that is not as it should be, a line each.
    pub fn problems(&self, faults: &Faults, client: &str) -> Vec<String> {
        let mut problems = Vec::new();
        if !self.ended {
            problems.push("the run did not come to its end".to_owned());
        }
        if self.methods.is_empty() || self.scenarios.is_empty() {
            problems.push("nothing was found to be tried".to_owned());
        }
        for (name, error) in &self.scenarios {
            if let Some(error) = error {
                problems.push(format!("scenario {name}: {error}"));
            }
        }
        let exempt: BTreeMap<&str, &str> = faults
            .of(client)
            .flat_map(|fault| fault.methods.iter().map(|method| (method.as_str(), fault.id.as_str())))
            .collect();
        for method in &self.methods {
            match (self.called.contains(method), exempt.get(method.as_str())) {
                (false, None) => problems.push(format!("{method} was not called with success")),
                (true, Some(fault)) => {
                    problems.push(format!("{method} works, in spite of the fault {fault}"))
                }
                _ => {}
            }
        }
        for fault in faults.of(client) {
            match self.faults.get(&fault.id) {
                None => problems.push(format!("the fault {} did not show", fault.id)),
                Some(shown) => {
                    problems.extend(shown.iter().filter(|shown| **shown != fault.symptom).map(|shown| {
                        format!("the fault {} shows as {shown:?}, not {:?}", fault.id, fault.symptom)
                    }))
                }
            }
        }
        let known: BTreeSet<&String> = faults.of(client).map(|fault| &fault.id).collect();
        let unknown = self.faults.keys().filter(|id| !known.contains(id));
        problems.extend(unknown.map(|id| format!("the fault {id} is not in the list")));
        problems
    }

    /// One line: what was called and what was not asked of it.
    pub fn summary(&self, faults: &Faults, client: &str) -> String {
        let listed: BTreeSet<&str> = faults.of(client).map(|fault| fault.id.as_str()).collect();
        let exempted = self.faults.keys().filter(|id| listed.contains(id.as_str())).count();
        format!(
            "{} of {} methods called, {} scenarios, {exempted} exempted faults, {:.1} seconds",
            self.called.intersection(&self.methods).count(),
            self.methods.len(),
            self.scenarios.len(),
            self.seconds,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAULTS: &str = r#"[
        {"id": "plain", "client": "a", "methods": ["Api.ws"], "symptom": "426", "why": "sends no upgrade"},
        {"id": "other", "client": "b", "methods": [], "symptom": "x", "why": "y"}
    ]"#;

    const GOOD: &str = r#"
{"kind": "method", "name": "Api.me"}
{"kind": "method", "name": "Api.ws"}
{"kind": "called", "name": "Api.me"}
{"kind": "fault", "id": "plain", "symptom": "426"}
{"kind": "scenario", "name": "all", "seconds": 1.25, "error": null}
{"kind": "end"}"#;

    fn problems(lines: &str) -> Vec<String> {
        let report = Report::read(lines.trim_start()).unwrap();
        report.problems(&Faults::read(FAULTS).unwrap(), "a")
    }

    #[test]
    fn a_run_that_did_all_it_could_has_no_problem() {
        assert_eq!(problems(GOOD), Vec::<String>::new());
        let report = Report::read(GOOD.trim_start()).unwrap();
        assert_eq!(
            report.summary(&Faults::read(FAULTS).unwrap(), "a"),
            "1 of 2 methods called, 1 scenarios, 1 exempted faults, 1.2 seconds"
        );
    }

    #[test]
    fn whatever_is_missing_or_more_than_listed_is_a_problem() {
        let changed = [
            (r#"{"kind": "called", "name": "Api.me"}"#, "", "Api.me was not called with success"),
            (r#"{"kind": "fault", "id": "plain", "symptom": "426"}"#, "", "the fault plain did not show"),
            (r#""symptom": "426""#, r#""symptom": "400""#, "the fault plain shows as \"400\", not \"426\""),
            (
                r#"{"kind": "end"}"#,
                "{\"kind\": \"end\"}\n{\"kind\": \"called\", \"name\": \"Api.ws\"}",
                "Api.ws works, in spite of the fault plain",
            ),
            (
                r#"{"kind": "end"}"#,
                "{\"kind\": \"end\"}\n{\"kind\": \"fault\", \"id\": \"new\", \"symptom\": \"s\"}",
                "the fault new is not in the list",
            ),
            (r#""error": null"#, r#""error": "1 is not 2""#, "scenario all: 1 is not 2"),
            (r#"{"kind": "end"}"#, "", "the run did not come to its end"),
        ];
        for (from, to, problem) in changed {
            let lines: Vec<String> = GOOD.trim_start().lines().map(|line| line.replace(from, to)).collect();
            let lines: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
            assert_eq!(problems(&lines.join("\n")), [problem]);
        }
        assert_eq!(
            problems("{\"kind\": \"end\"}"),
            ["nothing was found to be tried", "the fault plain did not show"]
        );
        assert!(Report::read("half a li").is_err());
        let twice =
            format!("{}\n{}", GOOD.trim_start(), r#"{"kind": "scenario", "name": "all", "seconds": 1}"#);
        assert!(Report::read(&twice).is_err(), "two scenarios of the same name");
        for bad in [r#"[{"id": "a"}]"#, "{}", &FAULTS.replace("other", "plain").replace("\"b\"", "\"a\"")] {
            assert!(Faults::read(bad).is_err(), "{bad}");
        }
    }
}
