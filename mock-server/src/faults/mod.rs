//! Faults on demand: per operation, and on the wire.
//!
//! A script names an operation and the replies that its next requests get instead of the real ones; what no script takes
//! is answered by the real world. On the wire, whole connections are refused, cut, reset or stalled.
//!
//! ```
//! use std::time::Duration;
//! use sandboxer::{Operation, clock::SystemClock};
//! use sandboxer_mock_server::faults::{End, Faults, Reply, WireFault};
//!
//! let faults = Faults::new(SystemClock::shared());
//! faults.on(Operation::Create).reply(Reply::status(503).retry_after(Duration::from_secs(1))).times(2);
//! faults.on(Operation::AttachCommand).reply(Reply::pass().end_body_after(1000, End::Cut));
//! faults.wire().next_connections(3, WireFault::AfterSent { bytes: 10, end: End::Reset });
//! ```

mod answer;
mod body;
mod reply;
mod script;
mod stream;
mod wire;

pub use reply::Reply;
pub use script::{Faults, Script};
pub use stream::{Connection, End, FaultyStream};
pub use wire::{FaultyListener, Wire, WireFault};
