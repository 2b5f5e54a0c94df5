//! Files that are larger than what anybody holds in memory. Alone in its process, whose memory is measured.

use std::{
    io::Read,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use sandboxer::{Create, Dialect, Transfer};
use sandboxer_blocking::Sandboxer;
use sandboxer_mock_server::MockServer;

const SIZE: u64 = 64 << 20;

/// What both ends together may need for it, in KiB: the client holds a write's worth, and each side a few pieces.
#[cfg(target_os = "linux")]
const MOST_KIB: u64 = 40 << 10;

/// A number that bytes and their order decide.
#[derive(Default)]
struct Sum(u64);

impl Sum {
    fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

impl std::io::Write for Sum {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Bytes that are made as they are read, and their sum.
struct Source {
    at: u64,
    sum: Sum,
}

impl Read for Source {
    fn read(&mut self, space: &mut [u8]) -> std::io::Result<usize> {
        let count = space.len().min(usize::try_from(SIZE - self.at).unwrap_or(usize::MAX));
        for (index, byte) in space[..count].iter_mut().enumerate() {
            *byte = ((self.at + index as u64) * 31 / 7) as u8;
        }
        self.at += count as u64;
        self.sum.update(&space[..count]);
        Ok(count)
    }
}

/// The most memory that the process has had since it was last asked to forget it, in KiB.
#[cfg(target_os = "linux")]
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn files_of_any_size_go_through_without_being_held() {
    let server = MockServer::start();
    let client = server.client_builder().dialect(Dialect::Boat).build().expect("a client");
    let client = Sandboxer::from_async(client);
    let sandbox = client.create(Create::new()).expect("a sandbox");
    let files = sandbox.files();
    // What is needed once, for whatever size.
    files.upload_from("warm", &vec![0; 6 << 20][..], Transfer::new()).expect("up");
    files.download_with("warm", Transfer::new()).expect("down").copy_to(std::io::sink()).expect("copy");
    #[cfg(target_os = "linux")]
    let before = {
        std::fs::write("/proc/self/clear_refs", "5").expect("the peak is forgotten");
        peak()
    };

    let mut source = Source { at: 0, sum: Sum::default() };
    let told = Arc::new(AtomicU64::new(0));
    let log = told.clone();
    let transfer = Transfer::new().length(SIZE).progress(move |at| log.store(at.bytes, Ordering::Relaxed));
    assert_eq!(files.upload_from("big", &mut source, transfer).expect("up"), SIZE);
    assert_eq!(told.load(Ordering::Relaxed), SIZE);

    let log = told.clone();
    let transfer = Transfer::new().progress(move |at| log.store(at.bytes, Ordering::Relaxed));
    let download = files.download_with("big", transfer).expect("down");
    assert_eq!(download.total(), Some(SIZE));
    let mut sum = Sum::default();
    assert_eq!(download.copy_to(&mut sum).expect("copy"), SIZE);
    assert_eq!(told.load(Ordering::Relaxed), SIZE);
    assert_eq!(sum.0, source.sum.0);
    #[cfg(target_os = "linux")]
    {
        let grown = peak().saturating_sub(before);
        assert!(grown < MOST_KIB, "{grown} KiB were needed for {} KiB", SIZE >> 10);
    }
}
