//! How much room there is for what nobody asked for.

use std::path::Path;

/// The most that is kept free, in bytes.
const MOST: u64 = 512 << 20;

/// Whether there is so much room where a folder is that something may be put there without need: a part is left to whoever
/// works in a sandbox. True if that cannot be told.
pub(crate) fn is_spacious(folder: &Path) -> bool {
    rustix::fs::statvfs(folder).map_or(true, |look| {
        let bytes = |blocks: u64| blocks.saturating_mul(look.f_frsize);
        leaves_enough(bytes(look.f_bavail), bytes(look.f_blocks))
    })
}

/// A twentieth of all is enough.
fn leaves_enough(free: u64, all: u64) -> bool {
    free >= (all / 20).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_left_to_others() {
        assert!(leaves_enough(5, 100) && !leaves_enough(4, 100));
        assert!(leaves_enough(MOST, u64::MAX) && !leaves_enough(MOST - 1, u64::MAX));
        assert!(leaves_enough(0, 0), "a file system that does not say");
        assert!(is_spacious(Path::new("/no/such/folder")));
    }
}
