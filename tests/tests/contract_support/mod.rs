//! The API document as something answers can be held against.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use jsonschema::Validator;
use sandboxer_mock_server::checks::translate;
use serde_json::{Value, json};

/// The document, and what of it was seen in answers.
pub struct Contract {
    document: Value,
    definitions: Value,
    /// Operation ids with a success, and with an error, that were checked.
    pub succeeded: BTreeSet<String>,
    pub failed: BTreeSet<String>,
    validators: BTreeMap<String, Validator>,
}

/// An answer as it came.
pub struct Answer {
    pub status: u16,
    pub media: String,
    pub body: Vec<u8>,
}

impl Contract {
    /// Reads the document of this repository.
    pub fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../specs/sandboxer.openapi.yaml");
        let text = std::fs::read_to_string(path).unwrap();
        let document: Value = serde_yaml_ng::from_str(&text).unwrap();
        let definitions = translate::definitions(&document["components"]["schemas"]);
        Self {
            document,
            definitions,
            succeeded: BTreeSet::new(),
            failed: BTreeSet::new(),
            validators: BTreeMap::new(),
        }
    }

    /// The ids of all operations, a second face included.
    pub fn operations(&self) -> BTreeSet<String> {
        let paths = self.document["paths"].as_object().unwrap();
        let all = paths.values().flat_map(|path| path.as_object().unwrap().values());
        all.flat_map(|operation| [operation, &operation["x-streaming-face"]])
            .filter_map(|operation| operation.get("operationId")?.as_str().map(str::to_owned))
            .collect()
    }

    /// Checks a success: its status is documented, its media type too, and its body, or every frame of it, fits.
    #[track_caller]
    pub fn success(&mut self, id: &str, answer: &Answer) {
        let documented = self.operation(id)["responses"][answer.status.to_string()]["content"].clone();
        let text = String::from_utf8_lossy(&answer.body);
        assert!(documented.is_object(), "{id}: {} is not documented: {text}", answer.status);
        let schema = &documented[&answer.media]["schema"];
        assert!(schema.is_object(), "{id}: {} is not documented", answer.media);
        match answer.media.as_str() {
            "application/json" => self.fits(id, schema, &serde_json::from_slice(&answer.body).unwrap()),
            "application/x-ndjson" => {
                assert!(text.ends_with('\n'), "{id}: {text:?}");
                for line in text.lines() {
                    self.fits(id, schema, &serde_json::from_str(line).unwrap());
                }
            }
            "text/event-stream" => {
                for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
                    self.fits(id, schema, &serde_json::from_str(data).unwrap());
                }
            }
            other => {
                assert!(matches!(other, "application/octet-stream" | "application/x-tar"), "{id}: {other}");
            }
        }
        self.succeeded.insert(id.to_owned());
    }

    /// Checks a failure: its code is one the operation may answer with, under the code's status, in the one shape there is.
    #[track_caller]
    pub fn failure(&mut self, id: &str, answer: &Answer, code: &str) {
        assert_eq!(answer.media, "application/json", "{id}");
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        // A few failures have a shape of their own, which their status names.
        let bare = self.operation(id)["responses"].get(answer.status.to_string()).is_some();
        assert_eq!(body[if bare { "error" } else { "code" }], code, "{id}: {body}");
        let own = self.operation(id)["x-errors"].as_array().cloned().unwrap_or_default();
        let common = self.document["x-common-errors"].as_array().unwrap();
        assert!(own.iter().chain(common).any(|known| known == code), "{id}: {code} is not documented");
        let described = &self.document["x-error-codes"][code];
        let status = described["statusAt"].get(id).unwrap_or(&described["status"]);
        assert_eq!(*status, answer.status, "{id}: {body}");
        let shape = if bare { "BareError" } else { "ErrorEnvelope" };
        self.fits(id, &json!({"$ref": format!("#/components/schemas/{shape}")}), &body);
        self.failed.insert(id.to_owned());
    }

    /// Id, method and path of every operation that no failure was seen of.
    pub fn unrefused(&self) -> Vec<(String, String, String)> {
        let paths = self.document["paths"].as_object().unwrap();
        let all =
            paths.iter().flat_map(|(path, item)| item.as_object().unwrap().iter().map(move |m| (path, m)));
        all.filter_map(|(path, (method, operation))| {
            let id = operation.get("operationId")?.as_str()?;
            (!self.failed.contains(id)).then(|| (id.to_owned(), method.to_uppercase(), path.clone()))
        })
        .collect()
    }

    fn operation(&self, id: &str) -> &Value {
        let paths = self.document["paths"].as_object().unwrap();
        let mut all = paths.values().flat_map(|path| path.as_object().unwrap().values());
        let found = all.find(|operation| {
            operation["operationId"] == id || operation["x-streaming-face"]["operationId"] == id
        });
        found.unwrap_or_else(|| panic!("no operation is called {id}"))
    }

    #[track_caller]
    fn fits(&mut self, id: &str, schema: &Value, value: &Value) {
        let validator = self.validators.entry(schema.to_string()).or_insert_with(|| {
            let mut whole = translate::schema(schema);
            whole["$defs"] = self.definitions.clone();
            jsonschema::draft202012::options().should_validate_formats(true).build(&whole).unwrap()
        });
        let problems: Vec<String> =
            validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(problems.is_empty(), "{id}: {problems:#?}\n{value:#}");
    }
}
