//! The list of the strangers' own faults: what is not asked of them, and how each shows.

use serde_json::Value;

/// A fault of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What its runs report it by.
    pub id: String,
    /// The client that has it.
    pub client: String,
    /// The methods that cannot do what they should because of it; none if they do it under other conditions.
    pub methods: Vec<String>,
    /// How it shows, word for word.
    pub symptom: String,
    /// What is wrong in the client, and not in the server.
    pub why: String,
}

/// All that are known.
#[derive(Clone, Debug, Default)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// Reads `faults.json`.
    ///
    /// # Errors
    ///
    /// It is not JSON, or an entry has not exactly the fields of a [`Fault`], or two have the same id.
    pub fn read(text: &str) -> Result<Self, String> {
        let entries: Vec<Value> = serde_json::from_str(text).map_err(|error| format!("faults: {error}"))?;
        let mut faults: Vec<Fault> = Vec::new();
        for entry in entries {
            let fault =
                fault(&entry).ok_or_else(|| format!("not an entry of the list of faults: {entry}"))?;
            if faults.iter().any(|known| (&known.id, &known.client) == (&fault.id, &fault.client)) {
                return Err(format!("two faults of {} are called {}", fault.client, fault.id));
            }
            faults.push(fault);
        }
        Ok(Self(faults))
    }

    /// Those of one client.
    pub fn of<'a>(&'a self, client: &'a str) -> impl Iterator<Item = &'a Fault> {
        self.0.iter().filter(move |fault| fault.client == client)
    }
}

fn fault(entry: &Value) -> Option<Fault> {
    let text = |name: &str| entry[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let methods = entry["methods"].as_array()?.iter().map(|method| method.as_str().map(str::to_owned));
    let fault = Fault {
        id: text("id")?,
        client: text("client")?,
        methods: methods.collect::<Option<_>>()?,
        symptom: text("symptom")?,
        why: text("why")?,
    };
    (entry.as_object()?.len() == 5).then_some(fault)
}
