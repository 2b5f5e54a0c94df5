//! Logs on the disks of sandboxes: what a command writes is copied there while it runs.

use crate::{
    runner::OutputRing,
    space::{FileError, Files},
};

/// The most bytes that a log grows to.
const LIMIT: u64 = 64 << 20;

/// How many bytes are copied at once.
const AT_ONCE: usize = 1 << 20;

/// Appends to a log whatever a stream brings, until the stream has ended, and says after each piece up to where it is done with
/// it: it is in the log, or the log is full. The first write makes the file, also for a command that says nothing.
pub(crate) async fn copy(
    files: &Files,
    path: &str,
    ring: &OutputRing,
    mut done_to: impl FnMut(u64) + Send,
) -> Result<(), FileError> {
    let mut offset = 0;
    loop {
        let chunk = ring.read_at(offset, AT_ONCE);
        offset = chunk.next_offset();
        let is_last = chunk.closed && offset >= chunk.end;
        files.append_log(path, chunk.bytes, LIMIT).await?;
        done_to(offset);
        if is_last {
            return Ok(());
        }
        ring.changed_since(offset).await;
    }
}
