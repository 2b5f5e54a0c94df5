//! A connection that can be made to break.

use std::{
    fmt,
    io::{self, IoSlice},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
};

use bytes::{Buf, Bytes};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Cleanly (FIN): the client sees the end of the stream.
    Cut,
    /// Abruptly (RST): the client sees an error.
    Reset,
    /// Not at all: nothing is read or sent any more, and the connection stays open.
    Stall,
}

/// A handle to one connection, with which it can be ended from outside. Cloning is cheap.
#[derive(Clone)]
pub struct Connection {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    number: u64,
    going_away: CancellationToken,
    plan: Mutex<Plan>,
}

#[derive(Default)]
struct Plan {
    /// Bytes that may still be read, and what then.
    reads: Option<(u64, End)>,
    /// Bytes that may still be sent, and what then.
    writes: Option<(u64, End)>,
    /// What happens once everything written so far is on the wire.
    after_flush: Option<End>,
    now: Option<End>,
    /// Sent in place of whatever is written, before a clean end.
    instead: Option<Bytes>,
    wakers: [Option<Waker>; 2],
}

impl Connection {
    pub(super) fn new(number: u64) -> Self {
        Self {
            shared: Arc::new(Shared { number, going_away: CancellationToken::new(), plan: Mutex::default() }),
        }
    }

    /// Its number, counted from 1 over the server's life.
    pub fn number(&self) -> u64 {
        self.shared.number
    }

    /// Ends it at once; what is not sent yet is lost.
    pub fn end_now(&self, end: End) {
        self.change(|plan| plan.now = Some(end));
    }

    /// Ends it once everything written so far is on the wire.
    pub fn end_after_flush(&self, end: End) {
        self.change(|plan| plan.after_flush = Some(end));
    }

    /// Ends it where the client has sent so many more bytes and the server wants another.
    pub fn end_after_received(&self, bytes: u64, end: End) {
        self.change(|plan| plan.reads = Some((bytes, end)));
    }

    /// Ends it where so many more bytes are sent and another is to be.
    pub fn end_after_sent(&self, bytes: u64, end: End) {
        self.change(|plan| plan.writes = Some((bytes, end)));
    }

    /// Sends these bytes instead of the answer that is written next, then ends it cleanly.
    pub fn replace_answer(&self, bytes: Bytes) {
        self.change(|plan| plan.instead = Some(bytes));
    }

    /// Asks whoever drives the connection to shut it down gracefully.
    pub fn go_away(&self) {
        self.shared.going_away.cancel();
    }

    /// Waits until it is asked to go away.
    pub async fn going_away(&self) {
        self.shared.going_away.cancelled().await;
    }

    fn change(&self, change: impl FnOnce(&mut Plan)) {
        let wakers = {
            let mut plan = self.lock();
            change(&mut plan);
            [plan.wakers[0].take(), plan.wakers[1].take()]
        };
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, Plan> {
        self.shared.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connection").field(&self.shared.number).finish()
    }
}

/// A TCP stream that obeys its [`Connection`] handle.
#[derive(Debug)]
pub struct FaultyStream {
    /// Gone once the connection has ended.
    socket: Option<TcpStream>,
    connection: Connection,
}

impl FaultyStream {
    pub(super) fn new(socket: TcpStream, connection: Connection) -> Self {
        Self { socket: Some(socket), connection }
    }

    /// The handle to this connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Whether everything goes its normal way; ends or stalls the connection if that is due. `side` is 0 for reading and 1
    /// for writing, whose wakers are kept apart.
    fn check(&mut self, side: usize, context: &Context<'_>) -> Poll<io::Result<()>> {
        let mut plan = self.connection.lock();
        let due = plan.now;
        if due.is_none_or(|end| end == End::Stall) {
            plan.wakers[side] = Some(context.waker().clone());
        }
        drop(plan);
        match due {
            None if self.socket.is_some() => Poll::Ready(Ok(())),
            Some(End::Stall) => Poll::Pending,
            Some(end) => Poll::Ready(Err(self.end(end))),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    /// Ends the connection here and now; stalling is up to the caller.
    fn end(&mut self, end: End) -> io::Error {
        self.connection.lock().now = Some(end);
        if let Some(mut socket) = self.socket.take() {
            if end == End::Reset {
                let _ = socket.set_zero_linger();
            } else if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                // Closing a socket with unread bytes in it would reset the connection: read on until the client closes.
                runtime.spawn(async move {
                    let _ = socket.shutdown().await;
                    let mut rest = [0; 4096];
                    while socket.read(&mut rest).await.is_ok_and(|read| read > 0) {}
                });
            }
        }
        io::ErrorKind::ConnectionAborted.into()
    }

    fn end_or_stall<T>(&mut self, end: End) -> Poll<io::Result<T>> {
        if end == End::Stall {
            self.connection.lock().now = Some(End::Stall);
            return Poll::Pending;
        }
        Poll::Ready(Err(self.end(end)))
    }

    fn socket(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        self.socket.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl AsyncRead for FaultyStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.check(0, context))?;
        let limit = self.connection.lock().reads;
        let Some((left, end)) = limit else { return self.socket()?.poll_read(context, buffer) };
        if left == 0 {
            return self.end_or_stall(end);
        }
        let room = buffer.remaining().min(usize::try_from(left).unwrap_or(usize::MAX));
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(room));
        ready!(self.socket()?.poll_read(context, &mut part))?;
        let read = part.filled().len();
        buffer.advance(read);
        self.connection.lock().reads = Some((left - read as u64, end));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for FaultyStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.check(1, context))?;
        let (limit, swallowed) = {
            let plan = self.connection.lock();
            (plan.writes, plan.instead.is_some())
        };
        if swallowed {
            return Poll::Ready(Ok(bytes.len()));
        }
        let Some((left, end)) = limit else { return self.socket()?.poll_write(context, bytes) };
        if left == 0 && !bytes.is_empty() {
            return self.end_or_stall(end);
        }
        let part = &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        let written = ready!(self.socket()?.poll_write(context, part))?;
        self.connection.lock().writes = Some((left - written as u64, end));
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let plain = {
            let plan = self.connection.lock();
            plan.writes.is_none() && plan.instead.is_none()
        };
        if plain {
            ready!(self.check(1, context))?;
            return self.socket()?.poll_write_vectored(context, parts);
        }
        let first = parts.iter().find(|part| !part.is_empty()).map_or(&[][..], |part| part);
        self.poll_write(context, first)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.check(1, context))?;
        let instead = self.connection.lock().instead.clone();
        if let Some(mut bytes) = instead {
            while bytes.has_remaining() {
                let written = ready!(self.socket()?.poll_write(context, &bytes))?;
                bytes.advance(written);
                self.connection.lock().instead = Some(bytes.clone());
            }
            return self.end_or_stall(End::Cut);
        }
        ready!(self.socket()?.poll_flush(context))?;
        let due = self.connection.lock().after_flush.take();
        match due {
            Some(end) => self.end_or_stall(end),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.socket() {
            Ok(socket) => socket.poll_shutdown(context),
            Err(_) => Poll::Ready(Ok(())),
        }
    }
}
