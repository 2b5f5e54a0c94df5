//! The API document, as rules for answers.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use jsonschema::Validator;
use serde_json::{Value, json};

use super::{overlay, translate};

/// Where it lies; the suites run in its repository.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../specs");

/// The document.
pub(crate) struct Document {
    /// By the id of the operation, each of two faces for itself.
    operations: BTreeMap<String, Operation>,
    /// The responses that every operation shares, by name.
    responses: Value,
    /// The status of each code, and those that it has at some operations.
    statuses: BTreeMap<String, (u64, BTreeMap<String, u64>)>,
    definitions: Value,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

struct Operation {
    responses: Value,
    codes: BTreeSet<String>,
    /// The media type of a success that is this face's own.
    only: Option<String>,
    /// The media type of a success that is the other face's.
    not: Option<String>,
}

/// What one answer may be.
pub(crate) struct Rules {
    /// Its status.
    pub(crate) status: u16,
    /// The schema by media type.
    pub(crate) media: BTreeMap<String, Value>,
    /// The document's entry of each header.
    pub(crate) headers: Value,
    /// Whether a failure may have the older shape.
    pub(crate) may_be_bare: bool,
    codes: BTreeSet<String>,
    operation: Option<String>,
}

impl Rules {
    /// What is wrong with a code of a failure.
    pub(crate) fn code_problem(&self, document: &Document, code: &str) -> Option<String> {
        let Some((status, elsewhere)) = document.statuses.get(code) else {
            return Some(format!("the code {code:?} is not documented"));
        };
        let status = self.operation.as_ref().and_then(|id| elsewhere.get(id)).unwrap_or(status);
        if *status != u64::from(self.status) {
            return Some(format!("{code} has the status {status}"));
        }
        (!self.codes.contains(code)).then(|| format!("{code} is none of the operation's codes"))
    }
}

impl Document {
    /// The one of this repository, read once.
    #[expect(clippy::panic, reason = "only suites have this, and without the document they check nothing")]
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Document> = OnceLock::new();
        SHARED.get_or_init(|| {
            let read = |name: &str| {
                let text =
                    fs::read_to_string(Path::new(FOLDER).join(name)).map_err(|error| error.to_string());
                let value =
                    text.and_then(|text| serde_yaml_ng::from_str(&text).map_err(|error| error.to_string()));
                value.unwrap_or_else(|error| panic!("{FOLDER}/{name}: {error}"))
            };
            let mut document: Value = read("sandboxer.openapi.yaml");
            overlay::join(&mut document, &read("boat.overlay.yaml"));
            Self::new(&document)
        })
    }

    fn new(document: &Value) -> Self {
        let common = strings(&document["x-common-errors"]);
        let mut operations = BTreeMap::new();
        for operation in document["paths"]
            .as_object()
            .into_iter()
            .flatten()
            .flat_map(|(_, path)| path.as_object().into_iter().flatten().map(|(_, operation)| operation))
        {
            let Some(id) = operation.get("operationId").and_then(Value::as_str) else { continue };
            let mut codes: BTreeSet<String> = strings(&operation["x-errors"]).chain(common.clone()).collect();
            if operation["x-key-action"] == "session" {
                codes.insert("session_required".to_owned());
            }
            // Some parameters have codes of their own.
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
                let shared = name.map(|name| &document["components"]["parameters"][name]["x-errors"]);
                codes.extend(shared.into_iter().flat_map(strings));
            }
            let face = &operation["x-streaming-face"];
            let media = face["mediaType"].as_str().map(str::to_owned);
            let entry = |only: Option<String>, not: Option<String>| Operation {
                responses: operation["responses"].clone(),
                codes: codes.clone(),
                only,
                not,
            };
            operations.insert(id.to_owned(), entry(None, media.clone()));
            if let Some(id) = face["operationId"].as_str() {
                operations.insert(id.to_owned(), entry(media, None));
            }
        }
        let codes = document["x-error-codes"].as_object().into_iter().flatten();
        let statuses = codes.filter_map(|(code, entry)| {
            let elsewhere = entry["statusAt"].as_object().into_iter().flatten();
            let elsewhere = elsewhere.filter_map(|(id, status)| Some((id.clone(), status.as_u64()?)));
            Some((code.clone(), (entry["status"].as_u64()?, elsewhere.collect())))
        });
        Self {
            operations,
            responses: document["components"]["responses"].clone(),
            statuses: statuses.collect(),
            definitions: translate::definitions(&document["components"]["schemas"]),
            validators: Mutex::default(),
        }
    }

    /// The rules for an answer of an operation, or of none, with this status; nothing where it may not have it.
    pub(crate) fn rules(&self, operation: Option<&str>, status: u16) -> Option<Rules> {
        let none = json!({"default": {"$ref": "#/components/responses/Error"}});
        let entry = operation.map(|id| self.operations.get(id));
        let (responses, codes) = match entry {
            Some(entry) => (&entry?.responses, entry?.codes.clone()),
            None => (&none, ["not_found", "method_not_allowed", "internal_error"].map(str::to_owned).into()),
        };
        let named = &responses[status.to_string()];
        let response = match (named, status) {
            (Value::Null, 400..) => &responses["default"],
            (named, _) => named,
        };
        let reference = response["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
        let response = reference.map_or(response, |name| &self.responses[name]);
        let (only, not) = match entry.flatten() {
            Some(entry) if status < 400 => (entry.only.as_ref(), entry.not.as_ref()),
            _ => (None, None),
        };
        let media = response["content"].as_object().into_iter().flatten();
        let media = media
            .filter(|(media, _)| only.is_none_or(|only| only == *media) && not != Some(*media))
            .map(|(media, entry)| (media.clone(), entry["schema"].clone()));
        response.is_object().then(|| Rules {
            status,
            media: media.collect(),
            headers: response["headers"].clone(),
            may_be_bare: matches!(reference, Some("BareError" | "EitherError")),
            codes,
            operation: operation.map(str::to_owned),
        })
    }

    /// Whether there is such a code.
    pub(crate) fn knows(&self, code: &str) -> bool {
        self.statuses.contains_key(code)
    }

    /// Where a value does not fit a schema of the document.
    pub(crate) fn problems(&self, schema: &Value, value: &Value) -> Vec<String> {
        match self.validator(schema) {
            Ok(validator) => validator
                .iter_errors(value)
                .map(|error| format!("at {:?}: {error}", error.instance_path().to_string()))
                .collect(),
            Err(error) => vec![error],
        }
    }

    fn validator(&self, schema: &Value) -> Result<Arc<Validator>, String> {
        let mut all = self.validators.lock().unwrap_or_else(PoisonError::into_inner);
        let name = schema.to_string();
        if let Some(known) = all.get(&name) {
            return Ok(known.clone());
        }
        let mut whole = translate::schema(schema);
        whole["$defs"] = self.definitions.clone();
        let options = jsonschema::draft202012::options().should_validate_formats(true);
        let validator = options.build(&whole).map_err(|error| format!("the schema {name}: {error}"))?;
        let validator = Arc::new(validator);
        all.insert(name, validator.clone());
        Ok(validator)
    }
}

fn strings(list: &Value) -> impl Iterator<Item = String> + Clone + '_ {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned)
}
