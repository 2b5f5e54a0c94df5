//! Request fields where leaving out, `null` and a value mean three things.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What to do with a field: leave it as it is, send `null`, or send a value.
///
/// ```
/// use sandboxer::{models::UpdateSandboxRequest, wire::Patch};
///
/// let json = |request| serde_json::to_string(&request).unwrap();
/// assert_eq!(json(UpdateSandboxRequest::new()), "{}");
/// assert_eq!(json(UpdateSandboxRequest::new().ttl_seconds(None)), r#"{"ttlSeconds":null}"#);
/// assert_eq!(json(UpdateSandboxRequest::new().ttl_seconds(60)), r#"{"ttlSeconds":60}"#);
///
/// let minutes = Patch::Value(2);
/// assert_eq!((minutes.value(), minutes.map(|n| n * 60).into_value()), (Some(&2), Some(120)));
/// assert!(Patch::<i64>::default().is_unset() && Patch::<i64>::Null.is_null());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Patch<T> {
    /// The field is left out.
    #[default]
    Unset,
    /// The field is sent as `null`.
    Null,
    /// The field is sent with this value.
    Value(T),
}

impl<T> Patch<T> {
    /// Whether the field is left out.
    pub const fn is_unset(&self) -> bool {
        matches!(self, Self::Unset)
    }

    /// Whether the field is sent as `null`.
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The value, when there is one.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Unset | Self::Null => None,
        }
    }

    /// The value, when there is one, taken out.
    pub fn into_value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Unset | Self::Null => None,
        }
    }

    /// The same with another kind of value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Patch<U> {
        match self {
            Self::Unset => Patch::Unset,
            Self::Null => Patch::Null,
            Self::Value(value) => Patch::Value(change(value)),
        }
    }
}

impl<T> From<T> for Patch<T> {
    fn from(value: T) -> Self {
        Self::Value(value)
    }
}

impl<T> From<Option<T>> for Patch<T> {
    /// `None` becomes `null`.
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Self::Value)
    }
}

impl From<&str> for Patch<String> {
    fn from(value: &str) -> Self {
        Self::Value(value.to_owned())
    }
}

impl<T: Serialize> Serialize for Patch<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            // A container leaves an unset field out; alone there is nothing closer than null.
            Self::Unset | Self::Null => serializer.serialize_none(),
            Self::Value(value) => value.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::Patch;
    use crate::generated::models::CreateSandboxRequest;

    #[test]
    fn three_states_round_trip() {
        for (text, state) in [
            ("{}", Patch::Unset),
            (r#"{"ttlSeconds":null}"#, Patch::Null),
            (r#"{"ttlSeconds":60}"#, Patch::Value(60)),
        ] {
            let request: CreateSandboxRequest = serde_json::from_str(text).unwrap();
            assert_eq!(request.ttl_seconds, state, "{text}");
            assert_eq!(serde_json::to_string(&request).unwrap(), text);
        }
    }

    #[test]
    fn setters_take_values_options_and_text() {
        let request = CreateSandboxRequest::new().ttl_seconds(5).org("acme");
        assert_eq!(request.ttl_seconds.value(), Some(&5));
        assert_eq!(request.org.value().map(String::as_str), Some("acme"));
        assert!(CreateSandboxRequest::new().org(None).org.is_null());
        assert_eq!(Patch::Value(2).map(|n| n * 2), Patch::Value(4));
    }
}
