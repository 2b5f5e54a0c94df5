//! Signing, for tests and relays.

use super::{error::WebhookError, scheme::Scheme, verifier::Verifier};
use http::HeaderMap;
use std::time::SystemTime;

impl Verifier {
    /// The `Sandboxer-Signature` header for `body`, signed at `at` (in whole seconds) with every secret.
    ///
    /// # Errors
    ///
    /// [`WebhookError::BadHeader`] when `at` lies before 1970.
    ///
    /// ```
    /// use sandboxer::webhooks::Verifier;
    /// use std::time::SystemTime;
    ///
    /// let headers = Verifier::any_of(["whsec_new", "whsec_old"])?.sign(SystemTime::UNIX_EPOCH, b"{}")?;
    /// let value = headers["sandboxer-signature"].to_str()?;
    /// assert!(value.starts_with("t=0,v1="));
    /// assert_eq!(value.matches("v1=").count(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sign(&self, at: SystemTime, body: &[u8]) -> Result<HeaderMap, WebhookError> {
        self.keys.headers(Scheme::Signature, "", at, body)
    }

    /// The headers of [`Scheme::Delivery`] for `body`, signed at `at` (in whole seconds) with every secret. Without a
    /// `delivery` id, an empty one, that header is left out.
    ///
    /// # Errors
    ///
    /// [`WebhookError::BadHeader`] when `at` lies before 1970, or `delivery` is not visible ASCII without spaces and dots.
    ///
    /// ```
    /// use sandboxer::webhooks::Verifier;
    /// use std::time::SystemTime;
    ///
    /// let verifier = Verifier::new("whsec_1")?;
    /// let headers = verifier.sign_delivery("evt_1", SystemTime::UNIX_EPOCH, b"{}")?;
    /// assert_eq!(headers["x-sandboxer-delivery"], "evt_1");
    /// assert_eq!(headers["x-sandboxer-timestamp"], "0");
    /// assert!(verifier.sign_delivery("evt.1", SystemTime::UNIX_EPOCH, b"{}").is_err());
    /// # Ok::<(), sandboxer::webhooks::WebhookError>(())
    /// ```
    pub fn sign_delivery(
        &self,
        delivery: &str,
        at: SystemTime,
        body: &[u8],
    ) -> Result<HeaderMap, WebhookError> {
        self.keys.headers(Scheme::Delivery, delivery, at, body)
    }

    /// The same under boat's names, [`Scheme::Boat`].
    ///
    /// # Errors
    ///
    /// Those of [`sign_delivery`](Self::sign_delivery).
    ///
    /// ```
    /// use sandboxer::webhooks::Verifier;
    /// use std::time::SystemTime;
    ///
    /// let headers = Verifier::new("whsec_1")?.sign_boat("evt_1", SystemTime::UNIX_EPOCH, b"{}")?;
    /// assert_eq!(headers["x-ascii-delivery"], "evt_1");
    /// # Ok::<(), sandboxer::webhooks::WebhookError>(())
    /// ```
    pub fn sign_boat(&self, delivery: &str, at: SystemTime, body: &[u8]) -> Result<HeaderMap, WebhookError> {
        self.keys.headers(Scheme::Boat, delivery, at, body)
    }
}
