//! Faults of whole connections, and the listener that carries them out.

use std::{
    collections::VecDeque,
    fmt, future, io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll, Waker},
};

use tokio::net::{TcpListener, TcpStream};

use super::stream::{Connection, End, FaultyStream, Shared};

/// What happens to a connection, whatever is asked over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WireFault {
    /// It is reset as soon as it is accepted. For a port that is closed see [`Wire::close_port`].
    Refuse,
    /// It ends where the client has sent so many bytes and the server wants another.
    AfterReceived {
        /// How many bytes of requests get through.
        bytes: u64,
        /// How it ends then.
        end: End,
    },
    /// It ends where the server has sent so many bytes and is to send another.
    AfterSent {
        /// How many bytes of answers get through.
        bytes: u64,
        /// How it ends then.
        end: End,
    },
}

/// The connections of one server and what is to happen to them. Cloning gives another handle to the same.
#[derive(Clone, Default)]
pub struct Wire {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    accepted: u64,
    /// Each with the number of connections it is meant for; no number is for ever.
    planned: VecDeque<(WireFault, Option<u64>)>,
    open: Vec<Weak<Shared>>,
    port: Port,
}

#[derive(Default)]
struct Port {
    address: Option<SocketAddr>,
    listener: Option<TcpListener>,
    /// Bound again, but not yet known to the runtime.
    bound: Option<std::net::TcpListener>,
    waiting: Option<Waker>,
}

impl Wire {
    /// Plans a fault for the next connection, after those planned before.
    pub fn next_connection(&self, fault: WireFault) {
        self.next_connections(1, fault);
    }

    /// Plans a fault for each of the next so many connections.
    pub fn next_connections(&self, count: u64, fault: WireFault) {
        if count > 0 {
            self.lock().planned.push_back((fault, Some(count)));
        }
    }

    /// Plans a fault for all further connections.
    pub fn every_connection(&self, fault: WireFault) {
        self.lock().planned.push_back((fault, None));
    }

    /// Takes back what is planned for further connections.
    pub fn clear(&self) {
        self.lock().planned.clear();
    }

    /// Ends every open connection at once.
    pub fn end_all(&self, end: End) {
        self.connections().iter().for_each(|connection| connection.end_now(end));
    }

    /// Asks every open connection to shut down gracefully: GOAWAY on HTTP/2, closing after the current answer on HTTP/1.
    pub fn go_away(&self) {
        self.connections().iter().for_each(Connection::go_away);
    }

    /// The connections that are open now.
    pub fn connections(&self) -> Vec<Connection> {
        let mut state = self.lock();
        state.open.retain(|shared| shared.strong_count() > 0);
        state.open.iter().filter_map(Weak::upgrade).map(|shared| Connection { shared }).collect()
    }

    /// Stops listening: from now on the system itself refuses connections. Open ones go on.
    pub fn close_port(&self) {
        let mut state = self.lock();
        state.port.listener = None;
        state.port.bound = None;
    }

    /// Listens on the same port again.
    ///
    /// # Errors
    /// If the port was taken meanwhile, or never was open.
    pub fn open_port(&self) -> io::Result<()> {
        let mut state = self.lock();
        let port = &mut state.port;
        if port.listener.is_some() || port.bound.is_some() {
            return Ok(());
        }
        let address = port.address.ok_or(io::ErrorKind::NotConnected)?;
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        port.bound = Some(listener);
        let waiting = port.waiting.take();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Takes an accepted connection into its care; nothing if it is refused.
    pub fn accept(&self, socket: TcpStream) -> Option<FaultyStream> {
        // A reset drops what Nagle's algorithm still holds back, so nothing may be held back.
        let _ = socket.set_nodelay(true);
        let mut state = self.lock();
        state.accepted += 1;
        let connection = Connection::new(state.accepted);
        match state.next_fault() {
            None => {}
            Some(WireFault::Refuse) => {
                let _ = socket.set_zero_linger();
                return None;
            }
            Some(WireFault::AfterReceived { bytes, end }) => connection.end_after_received(bytes, end),
            Some(WireFault::AfterSent { bytes, end }) => connection.end_after_sent(bytes, end),
        }
        state.open.retain(|shared| shared.strong_count() > 0);
        state.open.push(Arc::downgrade(&connection.shared));
        Some(FaultyStream::new(socket, connection))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Wire")
            .field("accepted", &state.accepted)
            .field("planned", &state.planned)
            .finish_non_exhaustive()
    }
}

impl State {
    fn next_fault(&mut self) -> Option<WireFault> {
        let (fault, left) = self.planned.front_mut()?;
        let fault = *fault;
        if let Some(left) = left {
            *left -= 1;
            if *left == 0 {
                self.planned.pop_front();
            }
        }
        Some(fault)
    }
}

impl Port {
    fn poll_accept(&mut self, context: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        if let Some(bound) = self.bound.take() {
            self.listener = Some(TcpListener::from_std(bound)?);
        }
        self.waiting = Some(context.waker().clone());
        match &self.listener {
            Some(listener) => listener.poll_accept(context).map_ok(|(socket, _)| socket),
            None => Poll::Pending,
        }
    }
}

/// A listener whose port can be closed and opened again, and whose connections can be made to break.
#[derive(Debug)]
pub struct FaultyListener {
    wire: Wire,
    address: SocketAddr,
}

impl FaultyListener {
    /// Takes over a listener; only one at a time belongs to a [`Wire`].
    ///
    /// # Errors
    /// If the system does not tell the listener's address.
    pub fn new(listener: TcpListener, wire: &Wire) -> io::Result<Self> {
        let address = listener.local_addr()?;
        wire.lock().port =
            Port { address: Some(address), listener: Some(listener), bound: None, waiting: None };
        Ok(Self { wire: wire.clone(), address })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the next connection that is not refused. Safe to drop and call again.
    ///
    /// # Errors
    /// As the system reports them; listening goes on.
    pub async fn accept(&self) -> io::Result<FaultyStream> {
        loop {
            let socket = future::poll_fn(|context| self.wire.lock().port.poll_accept(context)).await?;
            if let Some(stream) = self.wire.accept(socket) {
                return Ok(stream);
            }
        }
    }
}

impl Drop for FaultyListener {
    fn drop(&mut self) {
        self.wire.lock().port = Port::default();
    }
}
