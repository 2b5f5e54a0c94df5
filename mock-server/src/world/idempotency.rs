//! Idempotency keys: for a day, the same call with the same key is the same sandbox.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{
    ids::hex,
    time::{DAY, Millis},
};
use crate::store::{
    Table,
    typed::{Derived, Record},
};

/// How long a key is remembered, in milliseconds.
pub(crate) const REMEMBERED_MS: Millis = DAY;

/// A key that was used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct UsedKey {
    pub(crate) account: String,
    pub(crate) key: String,
    /// A fingerprint of the operation, the wallet and the body.
    pub(crate) fingerprint: String,
    pub(crate) sandbox: String,
    /// The others that the same call made.
    #[serde(default)]
    pub(crate) more: Vec<String>,
    pub(crate) used_at: Millis,
}

/// The key of a used key.
pub(crate) fn used_key(account: &str, key: &str) -> String {
    format!("{account}/{key}")
}

impl Record for UsedKey {
    const TABLE: Table = Table::Idempotency;
    const DERIVES: bool = true;

    fn derive(&self, derived: &mut Derived) {
        derived.expires(self, self.used_at.saturating_add(REMEMBERED_MS));
    }

    fn key(&self) -> String {
        used_key(&self.account, &self.key)
    }
}

/// A fingerprint of a call: what it does, who pays, and its body with the order of fields taken out.
pub(crate) fn fingerprint(what: &str, wallet: &str, body: &Value) -> String {
    let mut hash = Sha256::new();
    for part in [what, wallet] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    feed(&mut hash, body);
    hex(&hash.finalize())
}

fn feed(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort();
            hash.update(b"{");
            for name in names {
                hash.update(Value::from(name.as_str()).to_string().as_bytes());
                hash.update(b":");
                feed(hash, &fields[name.as_str()]);
                hash.update(b",");
            }
            hash.update(b"}");
        }
        Value::Array(items) => {
            hash.update(b"[");
            for item in items {
                feed(hash, item);
                hash.update(b",");
            }
            hash.update(b"]");
        }
        scalar => hash.update(scalar.to_string().as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_fields_does_not_matter_and_everything_else_does() {
        let one: Value = serde_json::from_str(r#"{"a":1,"b":{"c":[1,2],"d":null}}"#).unwrap();
        let two: Value = serde_json::from_str(r#"{"b":{"d":null,"c":[1,2]},"a":1}"#).unwrap();
        assert_eq!(fingerprint("create", "w", &one), fingerprint("create", "w", &two));
        for other in [json!({"a": 1, "b": {"c": [2, 1], "d": null}}), json!({"a": 1, "b": {"c": [1, 2]}})] {
            assert_ne!(fingerprint("create", "w", &one), fingerprint("create", "w", &other));
        }
        assert_ne!(fingerprint("create", "w", &one), fingerprint("fork", "w", &one));
        assert_ne!(fingerprint("create", "w", &one), fingerprint("create", "v", &one));
    }
}
