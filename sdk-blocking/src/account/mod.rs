//! The account's side of the service: who pays, keys, webhooks, telemetry, secrets, environments, repositories, retention.

mod api_keys;
mod data_retention;
mod environments;
mod organizations;
mod repositories;
mod secrets;
mod telemetry;
mod webhook_endpoints;

pub use api_keys::ApiKeys;
pub use data_retention::DataRetention;
pub use environments::Environments;
pub use organizations::Organizations;
pub use repositories::Repositories;
pub use secrets::Secrets;
pub use telemetry::Telemetry;
pub use webhook_endpoints::WebhookEndpoints;
