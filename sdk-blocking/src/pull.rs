//! An async stream read from a blocking program: one item a call, nothing read ahead.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
};

use futures_core::Stream;
use sandboxer::{Delivery, Error, ErrorKind, Result};

use crate::driver::Driver;

/// A stream and the driver that reads it. Dropping it drops the stream on the runtime, which ends its connection.
#[derive(Debug)]
pub(crate) struct Pull<S: Send + 'static> {
    driver: Driver,
    /// Lent to the runtime while an item is read; it stays away if reading it panicked.
    stream: Option<Box<S>>,
}

impl<S: Send + 'static> Pull<S> {
    pub(crate) fn new(driver: Driver, stream: S) -> Self {
        Self { driver, stream: Some(Box::new(stream)) }
    }

    /// The stream, for what it can say without waiting.
    pub(crate) fn get(&self) -> Option<&S> {
        self.stream.as_deref()
    }

    /// The stream changed by `change`.
    pub(crate) fn map(mut self, change: impl FnOnce(S) -> S) -> Self {
        self.stream = self.stream.take().map(|stream| Box::new(change(*stream)));
        self
    }

    /// Another stream made of it.
    pub(crate) fn convert<T: Send + 'static>(mut self, change: impl FnOnce(S) -> T) -> Pull<T> {
        let stream = self.stream.take().map(|stream| Box::new(change(*stream)));
        Pull { driver: self.driver.clone(), stream }
    }

    /// Waits for the next item.
    pub(crate) fn next<T>(&mut self) -> Option<Result<T>>
    where
        S: Stream<Item = Result<T>> + Unpin,
        T: Send + 'static,
    {
        // Away while it is read: it stays away if that panics.
        let mut stream = self.stream.take()?;
        let ready = self.driver.ready(|context| Pin::new(&mut *stream).poll_next(context));
        self.stream = Some(stream);
        if let Some(item) = ready {
            return item;
        }
        let item = self.lend(|mut stream| async move {
            let item = poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await;
            (stream, item)
        })?;
        item.unwrap_or_else(|error| Some(Err(error)))
    }

    /// Waits for what `read` makes of the stream, which it gives back.
    pub(crate) fn lend<T, F, Fut>(&mut self, read: F) -> Option<Result<T>>
    where
        F: FnOnce(Box<S>) -> Fut,
        Fut: Future<Output = (Box<S>, T)> + Send + 'static,
        T: Send + 'static,
    {
        let stream = self.stream.take()?;
        Some(self.driver.wait(read(stream)).map(|(stream, value)| {
            self.stream = Some(stream);
            value
        }))
    }

    /// Waits for what `finish` makes of the stream, which it uses up.
    pub(crate) fn finish<T, F, Fut>(mut self, finish: F) -> Result<T>
    where
        F: FnOnce(S) -> Fut,
        Fut: Future<Output = Result<T>> + Send + 'static,
        T: Send + 'static,
    {
        match self.stream.take() {
            Some(stream) => self.driver.run(finish(*stream)),
            None => {
                let message = "reading the stream has panicked before";
                Err(Error::local(ErrorKind::Closed, Delivery::Unknown, "stream_lost", message, None))
            }
        }
    }
}

impl<S: Send + 'static> Drop for Pull<S> {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take() {
            self.driver.discard(stream);
        }
    }
}
