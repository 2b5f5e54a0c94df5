//! Fields of an answer that are not known here.

use std::{fmt, ops::Deref};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Fields that an answer holds and the models do not name, as they came; they are written back unchanged. Reads like the
/// map it is. Printing it shows names only, since a value that nobody knows may be a secret.
///
/// ```
/// use sandboxer::models::Sandbox;
///
/// let info: Sandbox = serde_json::from_str(r#"{"id":"bx_23456789","state":"ready","colour":"blue"}"#)?;
/// assert_eq!(info.unknown_fields["colour"], "blue");
/// assert_eq!(info.unknown_fields.into_inner().len(), 1);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnknownFields(Map<String, Value>);

impl UnknownFields {
    /// The fields as a map of their own.
    pub fn into_inner(self) -> Map<String, Value> {
        self.0
    }
}

impl Deref for UnknownFields {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl From<Map<String, Value>> for UnknownFields {
    fn from(fields: Map<String, Value>) -> Self {
        Self(fields)
    }
}

impl fmt::Debug for UnknownFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::generated::models::Team;

    #[test]
    fn unknown_fields_are_kept_written_back_and_not_printed() {
        let text = r#"{"id":"t","name":"n","plan":{"tier":["gold"]},"token":"s3cr3t"}"#;
        let team: Team = serde_json::from_str(text).unwrap();
        assert_eq!(team.unknown_fields["plan"]["tier"][0], "gold");
        let back: serde_json::Value = serde_json::to_value(&team).unwrap();
        assert_eq!(back, serde_json::from_str::<serde_json::Value>(text).unwrap());
        let printed = format!("{team:?}");
        assert!(printed.contains("token") && !printed.contains("s3cr3t"), "{printed}");
    }
}
