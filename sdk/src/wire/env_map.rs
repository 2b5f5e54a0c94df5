//! Environment variables of a request.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use serde::{Deserialize, Serialize};

/// Environment variables by name. Printing them shows names only; what may be in them is checked before they are sent.
///
/// ```
/// use sandboxer::wire::EnvMap;
///
/// let mut variables = EnvMap::new();
/// assert!(variables.is_empty());
/// variables.insert("CI", "1");
/// assert_eq!((variables.get("CI"), variables.len()), (Some("1"), 1));
/// assert_eq!(variables.iter().next(), Some(("CI", "1")));
/// assert!(!format!("{variables:?}").contains('1'), "values are never printed");
/// ```
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EnvMap(BTreeMap<String, String>);

impl EnvMap {
    /// No variables.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Sets a variable; one of that name is replaced.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Names and values, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// How many variables there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for EnvMap {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl<N: Into<String>, V: Into<String>> Extend<(N, V)> for EnvMap {
    fn extend<I: IntoIterator<Item = (N, V)>>(&mut self, variables: I) {
        self.0.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
    }
}

impl<N: Into<String>, V: Into<String>, const COUNT: usize> From<[(N, V); COUNT]> for EnvMap {
    fn from(variables: [(N, V); COUNT]) -> Self {
        variables.into_iter().collect()
    }
}

impl<N: Into<String>, V: Into<String>> From<Vec<(N, V)>> for EnvMap {
    fn from(variables: Vec<(N, V)>) -> Self {
        variables.into_iter().collect()
    }
}

impl From<BTreeMap<String, String>> for EnvMap {
    fn from(variables: BTreeMap<String, String>) -> Self {
        Self(variables)
    }
}

impl<S> From<HashMap<String, String, S>> for EnvMap {
    fn from(variables: HashMap<String, String, S>) -> Self {
        variables.into_iter().collect()
    }
}

impl fmt::Debug for EnvMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::EnvMap;

    #[test]
    fn values_are_not_printed() {
        let map = EnvMap::from([("TOKEN", "s3cr3t"), ("CI", "1")]);
        assert_eq!(format!("{map:?}"), r#"{"CI", "TOKEN"}"#);
        assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"CI":"1","TOKEN":"s3cr3t"}"#);
        assert_eq!(map.get("CI"), Some("1"));
    }
}
