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
    in_order("cmd", started_at)
}

/// `evt_` and 32 hexadecimal digits that sort by the time it happened.
pub(crate) fn happening(at: Millis) -> String {
    in_order("evt", at)
}

/// `wh_` and 24 hexadecimal digits that sort by the time.
pub(crate) fn endpoint(at: Millis) -> String {
    in_order("wh", at)[..27].to_owned()
}

/// `wh_` and 24 hexadecimal digits that are told from a text.
pub(crate) fn told_endpoint(text: &str) -> String {
    format!("wh_{}", &digest(text)[..24])
}

/// A prefix, `_` and 32 hexadecimal digits that sort by a time, and within it by the order they were made in.
pub(crate) fn in_order(prefix: &str, at: Millis) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed) & 0xffff_ffff;
    let random = uuid::Uuid::new_v4().as_u128() & 0xffff_ffff_ffff;
    format!("{prefix}_{:012x}{count:08x}{random:012x}", at.max(0))
}

/// A UUID that sorts by a time, and within it by the order they were made in.
pub(crate) fn snapshot(at: Millis) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = u128::from(COUNTER.fetch_add(1, Ordering::Relaxed) & 0xffff_ffff);
    let time = u128::try_from(at).unwrap_or(0) & 0xffff_ffff_ffff;
    let random = uuid::Uuid::new_v4().as_u128() & 0x3ff_ffff_ffff;
    // Version 7: the counter is split around the bits of the variant.
    let (high, low) = (count >> 20, count & 0xf_ffff);
    let bits = (time << 80) | (7 << 76) | (high << 64) | (2 << 62) | (low << 42) | random;
    uuid::Uuid::from_u128(bits).to_string()
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

/// `team_` and a UUID that is like no other.
pub(crate) fn new_organisation() -> String {
    format!("team_{}", uuid::Uuid::new_v4())
}

/// `inv_` and 24 hexadecimal digits, told from the organisation and the address.
pub(crate) fn invite(organisation: &str, email: &str) -> String {
    format!("inv_{}", &digest(&format!("invite of {email} to {organisation}"))[..24])
}

/// `sak_` and 24 hexadecimal digits that are like no other.
pub(crate) fn new_key() -> String {
    format!("sak_{}", &hex32()[..24])
}

/// A UUID that is like no other: of environments and of their versions.
pub(crate) fn new_uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}

/// The id of the environment that an account or an organisation begins with, told from its owner so that a world can name
/// it before it is there.
pub(crate) fn base_environment(owner: &str) -> String {
    told_uuid(&format!("base environment of {owner}"))
}

/// A UUID that is told from a text.
pub(crate) fn told_uuid(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
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
    fn snapshot_ids_are_uuids_that_sort() {
        let ids = [snapshot(5), snapshot(5), snapshot(6), snapshot(1_767_225_600_000)];
        assert!(ids.is_sorted(), "{ids:?}");
        for id in ids {
            let read = uuid::Uuid::parse_str(&id).unwrap();
            assert_eq!((read.get_version_num(), read.get_variant()), (7, uuid::Variant::RFC4122));
        }
    }

    #[test]
    fn command_ids_sort_by_time_and_then_by_order() {
        let ids = [command(5), command(5), command(6), command(1_767_225_600_000)];
        assert!(ids.is_sorted(), "{ids:?}");
    }
}
