//! Ids in the service's shapes.

use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};

use super::time::Millis;

const SANDBOX_ALPHABET: &[u8; 31] = b"23456789abcdefghjkmnpqrstuvwxyz";

/// `bx_` and eight characters that are hard to mistake for one another.
pub(crate) fn sandbox() -> String {
    let bytes = uuid::Uuid::new_v4().into_bytes();
    // Bytes 6 and 8 carry the version of the UUID and are not random.
    let tail: String = [0, 1, 2, 3, 4, 5, 9, 10]
        .into_iter()
        .map(|i: usize| char::from(SANDBOX_ALPHABET[usize::from(bytes[i]) % SANDBOX_ALPHABET.len()]))
        .collect();
    format!("bx_{tail}")
}

/// `req_` and 32 hexadecimal digits.
pub(crate) fn request() -> String {
    format!("req_{}", hex32())
}

/// `bdop_` and 32 hexadecimal digits.
pub(crate) fn deletion() -> String {
    format!("bdop_{}", hex32())
}

/// `stop_` and 32 hexadecimal digits.
pub(crate) fn stop() -> String {
    format!("stop_{}", hex32())
}

/// `cmd_` and 32 hexadecimal digits that sort by the time the command began.
pub(crate) fn command(started_at: Millis) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed) & 0xffff_ffff;
    let random = uuid::Uuid::new_v4().as_u128() & 0xffff_ffff_ffff;
    format!("cmd_{:012x}{count:08x}{random:012x}", started_at.max(0))
}

/// The id of an account, told from its login so that a seed file gives the same one every time.
pub(crate) fn account(login: &str) -> String {
    format!("acc_{}", &digest(login)[..24])
}

/// `team_` and a UUID, told from the name.
pub(crate) fn organisation(name: &str) -> String {
    let hash = Sha256::digest(name.as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    format!("team_{}", uuid::Builder::from_random_bytes(bytes).into_uuid())
}

/// `sak_` and 24 hexadecimal digits, told from the secret.
pub(crate) fn key(secret: &str) -> String {
    format!("sak_{}", &digest(&format!("id of {secret}"))[..24])
}

/// SHA-256 of a text in hexadecimal: how secrets are kept.
pub(crate) fn digest(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A three-word name for the hosted ports.
pub(crate) fn subdomain() -> String {
    const FIRST: [&str; 16] = [
        "amber", "brisk", "calm", "deep", "early", "fresh", "gold", "high", "jolly", "keen", "light", "mild",
        "north", "open", "plain", "quiet",
    ];
    const SECOND: [&str; 16] = [
        "ash", "birch", "cedar", "dune", "elm", "fern", "grove", "heath", "iris", "juniper", "kelp", "larch",
        "moss", "nettle", "oak", "pine",
    ];
    let bytes = uuid::Uuid::new_v4().into_bytes();
    let third = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    // The last word ends in a letter: a name that ends in a dash and a number would read as a port.
    format!("{}-{}-{third:08x}z", FIRST[usize::from(bytes[4] % 16)], SECOND[usize::from(bytes[5] % 16)])
}

fn hex32() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_service_shapes() {
        let id = sandbox();
        assert_eq!(id.len(), 11);
        assert!(id[3..].bytes().all(|b| SANDBOX_ALPHABET.contains(&b)), "{id}");
        assert_eq!(request().len(), 36);
        assert_eq!(deletion().len(), 37);
        assert!(organisation("Acme").starts_with("team_"));
        assert_eq!(organisation("Acme"), organisation("Acme"));
    }

    #[test]
    fn command_ids_sort_by_time_and_then_by_order() {
        let ids = [command(5), command(5), command(6), command(1_767_225_600_000)];
        assert!(ids.is_sorted(), "{ids:?}");
    }
}
