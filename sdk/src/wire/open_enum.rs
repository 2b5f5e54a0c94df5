//! Enums that keep values they do not know.

/// Text conversions of an enum whose variants are known texts and `Unknown(String)`: name, default, variants with texts.
macro_rules! open_enum {
    ($name:ident, $default:expr, $($variant:ident = $text:literal),+ $(,)?) => {
        impl $name {
            /// The values known here.
            pub const KNOWN: &'static [&'static str] = &[$($text),+];

            /// The value as it stands on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Unknown(text) => text,
                }
            }

            /// Whether the value is one that is known here.
            pub fn is_known(&self) -> bool {
                !matches!(self, Self::Unknown(_))
            }

            fn known(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                $default
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::known(text).unwrap_or_else(|| Self::Unknown(text.to_owned()))
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::known(&text).unwrap_or(Self::Unknown(text))
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::convert::Infallible;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Ok(Self::from(text))
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.as_str() == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.as_str() == *other
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;

                impl serde::de::Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("a string")
                    }

                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        Ok($name::from(text))
                    }

                    fn visit_string<E: serde::de::Error>(self, text: String) -> Result<$name, E> {
                        Ok($name::from(text))
                    }
                }

                deserializer.deserialize_str(Text)
            }
        }
    };
}

pub(crate) use open_enum;

#[cfg(test)]
mod tests {
    use crate::generated::models::{ContentEncoding, SandboxState};

    #[test]
    fn a_known_value_is_its_variant_both_ways() {
        let state: SandboxState = serde_json::from_str("\"ready\"").unwrap();
        assert_eq!(state, SandboxState::Ready);
        assert_eq!(serde_json::to_string(&state).unwrap(), "\"ready\"");
        assert!(state.is_known());
    }

    #[test]
    fn an_unknown_value_is_kept_and_written_back() {
        let state: SandboxState = serde_json::from_str("\"hiber\\u006eating\"").unwrap();
        assert_eq!(state, SandboxState::Unknown("hibernating".into()));
        assert_eq!(state, "hibernating");
        assert_eq!(serde_json::to_string(&state).unwrap(), "\"hibernating\"");
        assert!(!state.is_known());
    }

    #[test]
    fn something_that_is_not_text_is_an_error() {
        assert!(serde_json::from_str::<SandboxState>("5").is_err());
        assert!(serde_json::from_str::<SandboxState>("null").is_err());
    }

    #[test]
    fn the_default_is_the_documents_or_an_empty_unknown() {
        assert_eq!(ContentEncoding::default(), ContentEncoding::Utf8);
        assert_eq!(SandboxState::default(), SandboxState::Unknown(String::new()));
    }

    #[test]
    fn text_makes_a_value() {
        assert_eq!("archived".parse::<SandboxState>(), Ok(SandboxState::Archived));
        assert_eq!(SandboxState::from("new one".to_owned()).to_string(), "new one");
        assert_eq!(format!("{:>6}", ContentEncoding::Utf8), "  utf8");
    }
}
