//! How much output of an account the history takes up in an hour.

use std::io::{self, Write};

use ruzstd::encoding::{CompressionLevel, FrameCompressor};
use serde::{Deserialize, Serialize};

use super::time::{HOUR, Millis};
use crate::store::{
    StoreError, Table, Writer,
    typed::{self, Record},
};

/// The most of it, in bytes once they are compressed.
const LIMIT: u64 = 10 << 20;

/// How many bytes are compressed to tell how much is left of many more, in parts of how many from all over them.
const SAMPLE: usize = 64 << 10;
const PART: usize = 8 << 10;

/// What the history took up of an account's output in the hour that was last written in.
#[derive(Debug, Serialize, Deserialize)]
struct OutputHour {
    account: String,
    /// Hours since 1970.
    hour: Millis,
    packed: u64,
}

impl Record for OutputHour {
    const TABLE: Table = Table::OutputHours;

    fn key(&self) -> String {
        self.account.clone()
    }
}

/// Counts output of so many bytes once compressed; says whether there was room for it.
pub(crate) fn take(tx: &mut dyn Writer, account: &str, packed: u64, now: Millis) -> Result<bool, StoreError> {
    if packed == 0 {
        return Ok(true);
    }
    let hour = now.div_euclid(HOUR);
    let before: Option<OutputHour> = typed::get(&*tx, account)?;
    let used = before.filter(|before| before.hour == hour).map_or(0, |before| before.packed);
    let packed = used.saturating_add(packed);
    if packed > LIMIT {
        return Ok(false);
    }
    typed::put(tx, &OutputHour { account: account.to_owned(), hour, packed })?;
    Ok(true)
}

/// How many bytes are left of these once they are compressed; of many, as far as parts of them tell.
pub(crate) fn packed(bytes: &[u8]) -> u64 {
    if bytes.len() <= SAMPLE {
        return compressed(bytes);
    }
    let parts = SAMPLE / PART;
    let step = bytes.len() / parts;
    let sample: Vec<u8> = (0..parts).flat_map(|part| &bytes[part * step..][..PART]).copied().collect();
    compressed(&sample).saturating_mul(bytes.len() as u64) / SAMPLE as u64
}

fn compressed(bytes: &[u8]) -> u64 {
    if bytes.is_empty() {
        return 0;
    }
    let mut left = Counter(0);
    let mut compressor = FrameCompressor::new(CompressionLevel::Fastest);
    compressor.set_source(bytes);
    compressor.set_drain(&mut left);
    compressor.compress();
    drop(compressor);
    left.0
}

struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, RedbStore};

    #[test]
    fn an_hour_has_room_for_so_much_and_the_next_for_as_much_again() {
        let store = RedbStore::in_memory().unwrap();
        let take = |account: &str, bytes: u64, now: Millis| {
            typed::write::<_, StoreError>(&store, Durability::Now, |tx| take(tx, account, bytes, now))
                .unwrap()
        };
        assert!(take("a", LIMIT - 1, 5 * HOUR));
        assert!(!take("a", 2, 6 * HOUR - 1));
        assert!(take("a", 1, 6 * HOUR - 1));
        assert!(!take("a", 1, 6 * HOUR - 1));
        assert!(take("a", 0, 6 * HOUR - 1) && take("b", LIMIT, 6 * HOUR - 1));
        assert!(take("a", LIMIT, 6 * HOUR));
    }

    #[test]
    fn what_repeats_counts_little() {
        assert_eq!(packed(b""), 0);
        let (same, length) = (packed(&[b'x'; 100_000]), 100_000);
        assert!(same < length / 100, "{same}");
        let mut random = 1_u64;
        let noise: Vec<u8> = (0..length)
            .map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 56) as u8
            })
            .collect();
        assert!(packed(&noise) > length * 9 / 10);
    }
}
