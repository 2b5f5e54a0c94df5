//! A collector for the account's measurements.

use http::{HeaderName, HeaderValue};

use crate::{
    error::{Error, Result},
    models::TelemetrySetRequest,
    wire::Secret,
};

use super::checks;

/// The longest value of a header, in bytes.
const VALUE_LIMIT: usize = 8192;

/// An OpenTelemetry collector that the account's measurements go to. Printing it does not show the values of its headers.
///
/// ```
/// use sandboxer::TelemetryTarget;
///
/// let target = TelemetryTarget::new("https://otel.example:4318").header("Authorization", "Bearer hush");
/// assert!(!format!("{target:?}").contains("hush"));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "options do nothing until a verb takes them"]
pub struct TelemetryTarget {
    endpoint: String,
    headers: Vec<(String, Secret)>,
}

impl TelemetryTarget {
    /// At this address: an `https` URL on port 443 or 4318 with a public host, up to 2048 characters. The service puts
    /// `/v1/metrics` and `/v1/logs` behind it, and cuts such an ending off first. A local server may also take `http` and
    /// any port of this machine.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self { endpoint: endpoint.into(), headers: Vec::new() }
    }

    /// Sends a header along, each name once: a value has up to 8192 bytes, and nothing that a header cannot carry.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Secret>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(super) fn request(self) -> Result<TelemetrySetRequest> {
        checks::https("endpoint", &self.endpoint, &[443, 4318])?;
        let request = TelemetrySetRequest::new(self.endpoint);
        if self.headers.is_empty() {
            return Ok(request);
        }
        let mut names = Vec::new();
        for (name, value) in &self.headers {
            let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
                return Err(Error::invalid_input("headers", "each name must be one that a header can have"));
            };
            if names.contains(&name) {
                let problem = "must be given once, small and capital letters being the same";
                return Err(Error::invalid_input(&format!("headers.{name}"), problem));
            }
            if value.expose().len() > VALUE_LIMIT || HeaderValue::from_str(value.expose()).is_err() {
                let problem = format!("must have at most {VALUE_LIMIT} bytes, and no control characters");
                return Err(Error::invalid_input(&format!("headers.{name}"), problem));
            }
            names.push(name);
        }
        let headers: std::collections::BTreeMap<String, Secret> = self.headers.into_iter().collect();
        Ok(request.headers(headers))
    }
}
