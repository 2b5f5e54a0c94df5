//! How values look on the wire: open enums, three-state fields, times, secrets, environments, checks of what is sent, and
//! lenient reading of what comes back.

pub(crate) mod check;
pub(crate) mod decode;
mod env_map;
mod invalid_field;
mod open_enum;
mod patch;
mod secret;
mod secret_url;
mod timestamp;
mod unknown_fields;

pub use env_map::EnvMap;
pub use invalid_field::InvalidField;
pub(crate) use open_enum::open_enum;
pub use patch::Patch;
pub use secret::Secret;
pub use secret_url::SecretUrl;
pub use timestamp::Timestamp;
pub use unknown_fields::UnknownFields;
