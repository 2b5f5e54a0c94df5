//! Remembering deliveries, so that one that was recorded on its way cannot be sent again.

use std::{
    collections::{BTreeSet, HashSet},
    fmt,
    num::NonZeroUsize,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

/// Remembers deliveries. Within the tolerance a signature stays good, so whoever recorded a delivery can send it again; a
/// guard tells.
///
/// It is asked only about deliveries that are good otherwise, so nobody without a secret can fill it. It is not what makes
/// handling an event idempotent: the service delivers at least once and signs anew when it tries again, which is another
/// delivery here, on purpose, since the first may have failed after it was verified. For that, remember
/// [`WebhookEvent::id`](super::WebhookEvent::id) together with what the event caused.
///
/// A store shared by several processes can implement this if it answers without waiting; else look up
/// [`Verified::fingerprint`](super::Verified::fingerprint) after [`verify`](super::Verifier::verify).
///
/// ```
/// use sandboxer::webhooks::{ReplayGuard, Verifier};
/// use std::{collections::HashSet, sync::Mutex, time::SystemTime};
///
/// #[derive(Default)]
/// struct Everything(Mutex<HashSet<String>>);
///
/// impl ReplayGuard for Everything {
///     fn first_time(&self, delivery: &str, _expires: Option<SystemTime>) -> bool {
///         self.0.lock().is_ok_and(|mut seen| seen.insert(delivery.to_owned()))
///     }
/// }
///
/// let guard = Everything::default();
/// assert!(guard.first_time("d1", None) && !guard.first_time("d1", None));
///
/// let verifier = Verifier::new("whsec_1")?.replay_guard(guard);
/// let headers = verifier.sign(SystemTime::UNIX_EPOCH, b"{}")?;
/// assert!(verifier.verify_at(&headers, b"{}", SystemTime::UNIX_EPOCH).is_ok());
/// assert!(verifier.verify_at(&headers, b"{}", SystemTime::UNIX_EPOCH).is_err());
/// # Ok::<(), sandboxer::webhooks::WebhookError>(())
/// ```
pub trait ReplayGuard: Send + Sync {
    /// Remembers `delivery`, a [`fingerprint`](super::Verified::fingerprint), and says whether it is new. Both must be one
    /// step: of two threads that ask at once, one is told `true`. After `expires` the delivery is refused without asking and
    /// need not be remembered; `None` means never, because no tolerance is set.
    fn first_time(&self, delivery: &str, expires: Option<SystemTime>) -> bool;
}

impl<G: ReplayGuard + ?Sized> ReplayGuard for Arc<G> {
    fn first_time(&self, delivery: &str, expires: Option<SystemTime>) -> bool {
        (**self).first_time(delivery, expires)
    }
}

/// Remembers a bounded number of deliveries in this process. When it is full, the one that expires first is forgotten, so
/// the capacity should exceed what arrives in twice the tolerance. About 300 bytes each.
///
/// ```
/// use sandboxer::webhooks::{MemoryReplayGuard, ReplayGuard};
/// use std::time::SystemTime;
///
/// let guard = MemoryReplayGuard::default();
/// assert!(guard.first_time("a", Some(SystemTime::UNIX_EPOCH)));
/// assert!(!guard.first_time("a", Some(SystemTime::UNIX_EPOCH)));
/// ```
pub struct MemoryReplayGuard {
    capacity: NonZeroUsize,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    names: HashSet<Arc<str>>,
    by_expiry: BTreeSet<(Expiry, Arc<str>)>,
}

/// Never comes after every time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Expiry {
    At(SystemTime),
    Never,
}

impl MemoryReplayGuard {
    /// Remembers up to `capacity` deliveries; the default is 65,536.
    ///
    /// ```
    /// use sandboxer::webhooks::{MemoryReplayGuard, ReplayGuard};
    /// use std::num::NonZeroUsize;
    ///
    /// let guard = MemoryReplayGuard::new(NonZeroUsize::MIN); // one
    /// assert!(guard.first_time("a", None));
    /// assert!(guard.first_time("b", None)); // and "a" is forgotten
    /// assert!(guard.first_time("a", None));
    /// ```
    pub fn new(capacity: NonZeroUsize) -> Self {
        Self { capacity, seen: Mutex::default() }
    }
}

impl Default for MemoryReplayGuard {
    fn default() -> Self {
        Self::new(NonZeroUsize::MIN.saturating_add(65_535))
    }
}

impl ReplayGuard for MemoryReplayGuard {
    fn first_time(&self, delivery: &str, expires: Option<SystemTime>) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.names.contains(delivery) {
            return false;
        }
        if seen.names.len() >= self.capacity.get()
            && let Some((_, forgotten)) = seen.by_expiry.pop_first()
        {
            seen.names.remove(&forgotten);
        }
        let (name, expiry) = (Arc::<str>::from(delivery), expires.map_or(Expiry::Never, Expiry::At));
        seen.names.insert(name.clone());
        seen.by_expiry.insert((expiry, name));
        true
    }
}

impl fmt::Debug for MemoryReplayGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryReplayGuard").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}
