//! Streams and what they are made of: pieces of output, text and line decoding, pages, raw bodies.
//!
//! Every stream here is pulled: nothing is read ahead without bound, and dropping a stream ends its local side only.

mod body;
mod chunk;
pub(crate) mod frames;
pub(crate) mod kept;
pub(crate) mod lines;
mod pager;
pub(crate) mod sse;
mod text;

pub use body::ByteBody;
pub use chunk::{Chunk, Gap, OutputStream};
pub use pager::Pager;
pub(crate) use pager::{Page, PageRequest};
pub use text::TextDecoder;

use std::pin::Pin;

use bytes::Bytes;
use futures_core::Stream;

use crate::error::Result;

/// Bytes that arrive in pieces, wherever they come from.
pub(crate) type ByteSource = Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>;

/// The next item of a stream, for `next` methods that need no trait in scope.
pub(crate) async fn next<S: Stream + Unpin + ?Sized>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await
}
