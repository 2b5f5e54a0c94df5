//! The account's side of the service: who pays, keys, webhooks, telemetry, secrets, environments, repositories, retention.

mod api_keys;
mod checks;
mod data_retention;
mod environment_options;
mod environments;
mod listed_repository;
mod organizations;
mod replace_secrets;
mod repositories;
mod repository_options;
mod retention_update;
mod scoped_key;
mod secrets;
mod telemetry;
mod telemetry_target;
mod webhook_endpoints;
mod webhook_options;

pub use api_keys::AsyncApiKeys;
pub use data_retention::AsyncDataRetention;
pub use environment_options::{EnvironmentUpdate, EnvironmentUpgrade};
pub use environments::AsyncEnvironments;
pub use listed_repository::ListedRepository;
pub use organizations::AsyncOrganizations;
pub use replace_secrets::ReplaceSecrets;
pub use repositories::AsyncRepositories;
pub use repository_options::ListRepositories;
pub use retention_update::RetentionUpdate;
pub use scoped_key::ScopedKey;
pub use secrets::AsyncSecrets;
pub use telemetry::AsyncTelemetry;
pub use telemetry_target::TelemetryTarget;
pub use webhook_endpoints::AsyncWebhookEndpoints;
pub use webhook_options::{NewWebhook, WebhookUpdate};
