//! Transfers against a peer that says and records every byte.

mod downloads;
mod peer;
mod resumes;
mod saves;
mod signed;
mod uploads;

use std::sync::{Arc, Mutex};

use super::{Progress, Transfer};

/// `length` bytes without a short period.
fn noise(length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

type Log = Arc<Mutex<Vec<(u64, Option<u64>)>>>;

/// A transfer whose progress is kept.
fn logged(transfer: Transfer) -> (Transfer, Log) {
    let log = Log::default();
    let kept = log.clone();
    let transfer =
        transfer.progress(move |Progress { bytes, total }| kept.lock().unwrap().push((bytes, total)));
    (transfer, log)
}

/// The numbers told of begin with 0, grow, end with `last`, and have this total.
#[track_caller]
fn told(log: &Log, last: u64, total: Option<u64>) {
    let log = log.lock().unwrap();
    assert_eq!(log.first(), Some(&(0, total)));
    assert_eq!(log.last(), Some(&(last, total)));
    assert!(log.windows(2).all(|two| two[0].0 < two[1].0), "{log:?}");
    assert!(log.iter().all(|told| told.1 == total), "{log:?}");
}
