//! What a new API key may do.

use std::time::Duration;

use crate::{
    error::{Error, Result},
    generated::dialects::Dialect,
    models::{ApiKeyPreset, CreateScopedApiKeyRequest},
    sandboxer::given,
};

/// The longest life of a key: 365 days.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// What a new API key may do, where, and for how long; for `create_scoped`.
///
/// What it may do is the sum of its preset and actions; a key can grant no more than it has itself.
///
/// ```
/// use sandboxer::{ScopedKey, models::ApiKeyPreset};
/// use std::time::Duration;
///
/// let key = ScopedKey::new()
///     .name("nightly")
///     .preset(ApiKeyPreset::Ci)
///     .action("snapshot.read")
///     .environment("env_1")
///     .sandbox("bx_23456789")
///     .ttl(Duration::from_secs(30 * 86_400)); // or `no_ttl`, where the service allows it
/// let lasting = ScopedKey::new().action("sandbox.read").no_ttl();
/// # drop((key, lasting));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct ScopedKey {
    request: CreateScopedApiKeyRequest,
    ttl: Option<Life>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Life {
    For(Duration),
    Ever,
}

impl ScopedKey {
    /// A key of the service's defaults: it lives 90 days.
    pub fn new() -> Self {
        Self::default()
    }

    /// The name shown to people, 1 to 100 characters.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.request = self.request.name(name);
        self
    }

    /// How long it lives, 1 second to 365 days; fractions of a second are rounded up.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(Life::For(ttl));
        self
    }

    /// Lets it live until it is revoked. Only [`Dialect::Boat`] has such keys.
    pub fn no_ttl(mut self) -> Self {
        self.ttl = Some(Life::Ever);
        self
    }

    /// A named set of actions: `read-only`, `full-sandbox`, `ci` or `admin`.
    pub fn preset(mut self, preset: impl Into<ApiKeyPreset>) -> Self {
        self.request = self.request.preset(preset);
        self
    }

    /// Grants an action, such as `sandbox.read` or `exec`; several calls add up. The catalog that `list` answers with
    /// names them all.
    pub fn action(mut self, action: impl Into<String>) -> Self {
        self.request.actions.get_or_insert_default().push(action.into());
        self
    }

    /// Limits it to this sandbox; several calls add up.
    pub fn sandbox(mut self, id: impl Into<String>) -> Self {
        self.request.sandbox_ids.get_or_insert_default().push(id.into());
        self
    }

    /// Limits it to this stored environment; several calls add up.
    pub fn environment(mut self, id: impl Into<String>) -> Self {
        self.request.environment_ids.get_or_insert_default().push(id.into());
        self
    }

    pub(super) fn request(self, dialect: Dialect) -> Result<CreateScopedApiKeyRequest> {
        let Self { request, ttl } = self;
        given::filled("preset", request.preset.as_ref().map(ApiKeyPreset::as_str))?;
        match ttl {
            None => Ok(request),
            Some(Life::Ever) if dialect == Dialect::Boat => Ok(request.ttl("never")),
            Some(Life::Ever) => {
                let problem = format!("must be set: {dialect} has no keys that live for ever");
                Err(Error::invalid_input("ttl", problem))
            }
            Some(Life::For(ttl)) => {
                let seconds = ttl.as_secs().saturating_add(u64::from(ttl.subsec_nanos() > 0));
                if seconds == 0 || seconds > LONGEST.as_secs() {
                    return Err(Error::invalid_input("ttl", "must be from 1 second to 365 days"));
                }
                Ok(request.ttl(seconds.to_string()))
            }
        }
    }
}
