//! Checking signatures.

use super::{
    WebhookEvent,
    error::WebhookError,
    headers::SignatureHeaders,
    keys::{Keys, fingerprint},
    replay::ReplayGuard,
    scheme::{Claim, Scheme},
};
use crate::{
    clock::{SharedClock, SystemClock},
    wire::Secret,
};
use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// How far the time of a signature may be away when nothing else is said.
const TOLERANCE: Duration = Duration::from_secs(300);

/// Tells deliveries that the service signed from everything else, and signs for tests and relays.
///
/// It needs the body byte for byte as it was received: JSON that was parsed and written again has other bytes. Signatures
/// are compared in constant time, every one with every secret. Cloning is cheap, and nothing of the secrets is printed.
///
/// ```
/// use sandboxer::webhooks::{Verifier, WebhookError, WebhookEventType};
///
/// let verifier = Verifier::new("whsec_new")?.also_accept("whsec_old")?;
/// # use sandboxer::clock::{Clock, SystemClock};
/// # let body = br#"{"id":"evt_1","type":"sandbox.ready","data":{"sandbox":{"id":"bx_23456789","name":"demo"}}}"#;
/// # let headers = Verifier::new("whsec_old")?.sign(SystemClock::new().now(), body)?;
/// let event = verifier.parse(&headers, body)?; // as they came with the request
/// assert_eq!(event.kind, WebhookEventType::SandboxReady);
/// assert_eq!(event.data.sandbox.id, "bx_23456789");
///
/// assert_eq!(verifier.parse(&headers, b"{ }"), Err(WebhookError::NoMatchingSignature));
/// # Ok::<(), WebhookError>(())
/// ```
#[derive(Clone)]
pub struct Verifier {
    pub(super) keys: Keys,
    tolerance: Option<Duration>,
    clock: SharedClock,
    guard: Option<Arc<dyn ReplayGuard>>,
}

/// What is known about a delivery once its signature is good.
///
/// ```
/// use sandboxer::webhooks::{Scheme, Verifier};
/// use std::time::{Duration, SystemTime};
///
/// let verifier = Verifier::new("whsec_new")?.also_accept("whsec_old")?;
/// let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
/// let headers = Verifier::new("whsec_old")?.sign_delivery("evt_1", at, b"{}")?;
///
/// let verified = verifier.verify_at(&headers, b"{}", at)?;
/// assert_eq!((verified.scheme, verified.secret), (Scheme::Delivery, 1)); // the old secret is still in use
/// assert_eq!((verified.delivery.as_deref(), verified.signed_at), (Some("evt_1"), at));
/// assert_eq!(verified.expires, Some(at + Duration::from_secs(300)));
/// # Ok::<(), sandboxer::webhooks::WebhookError>(())
/// ```
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// How the signature came.
    pub scheme: Scheme,
    /// The id in the delivery header; `None` where there is none, as with [`Scheme::Signature`].
    pub delivery: Option<String>,
    /// When it was signed, in whole seconds.
    pub signed_at: SystemTime,
    /// From then on it is too old; `None` without a tolerance.
    pub expires: Option<SystemTime>,
    /// Which secret made the signature: 0 for the first, and so on in the order in which they were given.
    pub secret: usize,
    /// A name for exactly this signed body and time, 64 hexadecimal digits: the same when the request is sent again, whatever
    /// its other headers; another one when the service tries again later, because it signs anew.
    pub fingerprint: String,
}

impl Verifier {
    /// Accepts what is signed with `secret`, the whole of it, `whsec_` included.
    ///
    /// # Errors
    ///
    /// [`WebhookError::NoSecret`] when it is empty.
    ///
    /// ```
    /// use sandboxer::webhooks::{Verifier, WebhookError};
    ///
    /// assert!(Verifier::new("whsec_1").is_ok());
    /// assert_eq!(Verifier::new("").unwrap_err(), WebhookError::NoSecret);
    /// ```
    pub fn new(secret: impl Into<Secret>) -> Result<Self, WebhookError> {
        Self::any_of([secret])
    }

    /// Accepts what is signed with any of these secrets.
    ///
    /// # Errors
    ///
    /// [`WebhookError::NoSecret`] when there is none, or one of them is empty.
    ///
    /// ```
    /// use sandboxer::webhooks::{Verifier, WebhookError};
    ///
    /// let configured = "whsec_new,whsec_old";
    /// assert!(Verifier::any_of(configured.split(',')).is_ok());
    /// assert_eq!(Verifier::any_of([""; 0]).unwrap_err(), WebhookError::NoSecret);
    /// ```
    pub fn any_of<S: Into<Secret>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, WebhookError> {
        Ok(Self {
            keys: Keys::new(secrets.into_iter().map(Into::into))?,
            tolerance: Some(TOLERANCE),
            clock: SystemClock::shared(),
            guard: None,
        })
    }

    /// Accepts what is signed with this secret too: the old one, for a while after a rotation.
    ///
    /// # Errors
    ///
    /// [`WebhookError::NoSecret`] when it is empty.
    ///
    /// ```
    /// use sandboxer::webhooks::Verifier;
    ///
    /// let verifier = Verifier::new("whsec_new")?.also_accept("whsec_old")?;
    /// # assert_eq!(format!("{verifier:?}").matches("whsec").count(), 0);
    /// # Ok::<(), sandboxer::webhooks::WebhookError>(())
    /// ```
    pub fn also_accept(mut self, secret: impl Into<Secret>) -> Result<Self, WebhookError> {
        self.keys.add(&secret.into())?;
        Ok(self)
    }

    /// How far the time of a signature may lie in the past, and as far in the future; the limit itself is accepted. 5 minutes
    /// unless set.
    ///
    /// ```
    /// use sandboxer::webhooks::{Verifier, WebhookError};
    /// use std::time::{Duration, SystemTime};
    ///
    /// let verifier = Verifier::new("whsec_1")?.tolerance(Duration::from_secs(60));
    /// let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
    /// let headers = verifier.sign(at, b"{}")?;
    /// assert!(verifier.verify_at(&headers, b"{}", at + Duration::from_secs(60)).is_ok());
    /// let error = verifier.verify_at(&headers, b"{}", at - Duration::from_secs(61)).unwrap_err();
    /// assert_eq!(error, WebhookError::TooNew { ahead: Duration::from_secs(61) });
    /// # Ok::<(), WebhookError>(())
    /// ```
    #[must_use]
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = Some(tolerance);
        self
    }

    /// Accepts a signature of any time, past and future: for deliveries that were stored. Whoever has seen a delivery can
    /// then send it again for ever.
    ///
    /// ```
    /// use sandboxer::webhooks::Verifier;
    /// use std::time::SystemTime;
    ///
    /// let verifier = Verifier::new("whsec_1")?;
    /// let headers = verifier.sign(SystemTime::UNIX_EPOCH, b"{}")?;
    /// assert!(verifier.verify(&headers, b"{}").is_err());
    /// assert!(verifier.no_tolerance().verify(&headers, b"{}").is_ok());
    /// # Ok::<(), sandboxer::webhooks::WebhookError>(())
    /// ```
    #[must_use]
    pub fn no_tolerance(mut self) -> Self {
        self.tolerance = None;
        self
    }

    /// Where the present time comes from; the machine's clock unless set.
    ///
    /// ```
    /// use sandboxer::{clock::{Clock, ManualClock}, webhooks::{Verifier, WebhookError}};
    /// use std::time::Duration;
    ///
    /// let clock = ManualClock::new();
    /// let verifier = Verifier::new("whsec_1")?.clock(clock.shared());
    /// let headers = verifier.sign(clock.now(), b"{}")?;
    /// clock.advance(Duration::from_secs(301));
    /// let error = verifier.verify(&headers, b"{}").unwrap_err();
    /// assert_eq!(error, WebhookError::TooOld { age: Duration::from_secs(301) });
    /// # Ok::<(), WebhookError>(())
    /// ```
    #[must_use]
    pub fn clock(mut self, clock: SharedClock) -> Self {
        self.clock = clock;
        self
    }

    /// Asks `guard` about every delivery that is good otherwise, and refuses those it has seen. Clones share it.
    ///
    /// ```
    /// use sandboxer::webhooks::{MemoryReplayGuard, Verifier, WebhookError};
    /// use std::time::SystemTime;
    ///
    /// let verifier = Verifier::new("whsec_1")?.replay_guard(MemoryReplayGuard::default());
    /// let now = SystemTime::UNIX_EPOCH;
    /// let headers = verifier.sign(now, b"{}")?;
    /// assert!(verifier.verify_at(&headers, b"{}", now).is_ok());
    /// assert_eq!(verifier.verify_at(&headers, b"{}", now), Err(WebhookError::Replayed));
    /// # Ok::<(), WebhookError>(())
    /// ```
    #[must_use]
    pub fn replay_guard(mut self, guard: impl ReplayGuard + 'static) -> Self {
        self.guard = Some(Arc::new(guard));
        self
    }

    /// Checks that `body` was signed with a secret, lately, and not seen before by the replay guard, if there is one.
    ///
    /// # Errors
    ///
    /// [`MissingHeader`](WebhookError::MissingHeader), [`DuplicateHeader`](WebhookError::DuplicateHeader) and
    /// [`BadHeader`](WebhookError::BadHeader) for headers that carry no readable signature; then, in this order,
    /// [`NoMatchingSignature`](WebhookError::NoMatchingSignature), [`TooOld`](WebhookError::TooOld) or
    /// [`TooNew`](WebhookError::TooNew), [`Replayed`](WebhookError::Replayed). A delivery with headers of more than one
    /// [`Scheme`] is judged by the preferred one alone.
    ///
    /// ```
    /// use sandboxer::{clock::{Clock, SystemClock}, webhooks::{Verifier, WebhookError}};
    ///
    /// let verifier = Verifier::new("whsec_1")?;
    /// let headers = verifier.sign(SystemClock::new().now(), br#"{"id":"evt_1"}"#)?;
    /// verifier.verify(&headers, br#"{"id":"evt_1"}"#)?;
    /// let spaced = verifier.verify(&headers, br#"{"id": "evt_1"}"#);
    /// assert_eq!(spaced, Err(WebhookError::NoMatchingSignature)); // the same JSON in other bytes
    /// # Ok::<(), WebhookError>(())
    /// ```
    pub fn verify(
        &self,
        headers: impl Into<SignatureHeaders>,
        body: &[u8],
    ) -> Result<Verified, WebhookError> {
        self.verify_at(headers, body, self.clock.now())
    }

    /// The same, as if it were `now`.
    ///
    /// # Errors
    ///
    /// Those of [`verify`](Self::verify).
    ///
    /// ```
    /// use sandboxer::webhooks::Verifier;
    /// use std::time::{Duration, SystemTime};
    ///
    /// let body = br#"{"hello": "world"}"#;
    /// let value = "t=1767225600,v1=106f36d894c0985ea33fbe8968ea8470906939cd94bcbdcf7dcae1d2514362a2";
    /// let received_at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600);
    /// let verified = Verifier::new("whsec_1")?.verify_at([("Sandboxer-Signature", value)], body, received_at)?;
    /// assert_eq!(verified.signed_at, received_at);
    /// # Ok::<(), sandboxer::webhooks::WebhookError>(())
    /// ```
    pub fn verify_at(
        &self,
        headers: impl Into<SignatureHeaders>,
        body: &[u8],
        now: SystemTime,
    ) -> Result<Verified, WebhookError> {
        let headers = headers.into();
        let claim = Claim::read(&headers)?;
        let secret = self.keys.matching(&claim.prefix(), body, claim.signatures());
        let secret = secret.ok_or(WebhookError::NoMatchingSignature)?;
        if let Some(tolerance) = self.tolerance {
            match now.duration_since(claim.signed_at) {
                Ok(age) if age > tolerance => return Err(WebhookError::TooOld { age }),
                Err(future) if future.duration() > tolerance => {
                    return Err(WebhookError::TooNew { ahead: future.duration() });
                }
                _ => {}
            }
        }
        let verified = Verified {
            scheme: claim.scheme,
            delivery: claim.delivery.map(str::to_owned),
            signed_at: claim.signed_at,
            expires: self.tolerance.and_then(|tolerance| claim.signed_at.checked_add(tolerance)),
            secret,
            fingerprint: fingerprint(claim.seconds, body),
        };
        match &self.guard {
            Some(guard) if !guard.first_time(&verified.fingerprint, verified.expires) => {
                Err(WebhookError::Replayed)
            }
            _ => Ok(verified),
        }
    }

    /// Verifies the delivery and reads the event in it.
    ///
    /// # Errors
    ///
    /// Those of [`verify`](Self::verify), and [`WebhookError::BadPayload`] when the body is not JSON or lacks what every
    /// event has.
    ///
    /// ```
    /// use sandboxer::{clock::{Clock, SystemClock}, webhooks::Verifier};
    ///
    /// let verifier = Verifier::new("whsec_1")?;
    /// let body = br#"{ "type": "sandbox.archived", "id": "evt_1", "data": { "sandbox": { "id": "bx_23456789" } } }"#;
    /// let headers = verifier.sign(SystemClock::new().now(), body)?;
    /// assert_eq!(verifier.parse(&headers, body)?.data.sandbox.id, "bx_23456789");
    /// # Ok::<(), sandboxer::webhooks::WebhookError>(())
    /// ```
    pub fn parse(
        &self,
        headers: impl Into<SignatureHeaders>,
        body: &[u8],
    ) -> Result<WebhookEvent, WebhookError> {
        self.parse_at(headers, body, self.clock.now())
    }

    /// The same, as if it were `now`.
    ///
    /// # Errors
    ///
    /// Those of [`parse`](Self::parse).
    ///
    /// ```
    /// use sandboxer::webhooks::Verifier;
    /// use std::time::SystemTime;
    ///
    /// let verifier = Verifier::new("whsec_1")?;
    /// let body = br#"{"id":"evt_1","type":"sandbox.hydrated","data":{"sandbox":{"id":"bx_23456789"}}}"#;
    /// let headers = verifier.sign_boat("evt_1", SystemTime::UNIX_EPOCH, body)?;
    /// assert_eq!(verifier.parse_at(&headers, body, SystemTime::UNIX_EPOCH)?.id, "evt_1");
    /// # Ok::<(), sandboxer::webhooks::WebhookError>(())
    /// ```
    pub fn parse_at(
        &self,
        headers: impl Into<SignatureHeaders>,
        body: &[u8],
        now: SystemTime,
    ) -> Result<WebhookEvent, WebhookError> {
        self.verify_at(headers, body, now)?;
        WebhookEvent::read(body)
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier")
            .field("secrets", &self.keys.len())
            .field("tolerance", &self.tolerance)
            .field("replay_guard", &self.guard.is_some())
            .finish_non_exhaustive()
    }
}
