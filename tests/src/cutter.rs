//! A proxy on loopback that cuts connections after a number of answered bytes.

use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
};

/// Forwards every connection to one address and cuts the answers of those it was told to.
///
/// A cut is by the bytes that came back on the connection: with `[Some(1000), None]` the first connection whose request
/// contains the marker is cut after 1000 answered bytes, the second is left alone.
pub struct Cutter {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    cuts: Arc<AtomicUsize>,
}

impl Cutter {
    /// Listens on a free port; connections whose first request contains `marker` take their turn in `plan`.
    pub fn start(
        target: SocketAddr,
        marker: &str,
        plan: impl IntoIterator<Item = Option<usize>>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let cuts = Arc::new(AtomicUsize::new(0));
        let plan: Arc<Mutex<VecDeque<Option<usize>>>> = Arc::new(Mutex::new(plan.into_iter().collect()));
        let (stopped, counted, marker) = (stop.clone(), cuts.clone(), marker.to_owned());
        thread::spawn(move || {
            for client in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(client) = client else { continue };
                let (plan, counted, marker) = (plan.clone(), counted.clone(), marker.clone());
                thread::spawn(move || forward(client, target, &marker, &plan, &counted));
            }
        });
        Ok(Self { address, stop, cuts })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections it has cut.
    pub fn cuts(&self) -> usize {
        self.cuts.load(Ordering::SeqCst)
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn forward(
    client: TcpStream,
    target: SocketAddr,
    marker: &str,
    plan: &Mutex<VecDeque<Option<usize>>>,
    cuts: &AtomicUsize,
) -> Option<()> {
    let server = TcpStream::connect(target).ok()?;
    client.set_nodelay(true).ok()?;
    server.set_nodelay(true).ok()?;
    // The plan is asked once a marked request is seen; until then everything passes.
    let limit: Arc<Mutex<Option<usize>>> = Arc::default();
    let (mut from_client, mut to_server) = (client.try_clone().ok()?, server.try_clone().ok()?);
    let (mut from_server, mut to_client) = (server, client);
    thread::scope(|scope| {
        let limit_of_answers = limit.clone();
        scope.spawn(move || {
            let mut buffer = [0; 16 * 1024];
            while let Ok(read @ 1..) = from_client.read(&mut buffer) {
                if String::from_utf8_lossy(&buffer[..read]).contains(marker) {
                    let turn = plan.lock().unwrap_or_else(PoisonError::into_inner).pop_front().flatten();
                    *limit.lock().unwrap_or_else(PoisonError::into_inner) = turn;
                }
                if to_server.write_all(&buffer[..read]).is_err() {
                    break;
                }
            }
            let _ = to_server.shutdown(Shutdown::Write);
        });
        let mut buffer = [0; 16 * 1024];
        let mut answered = 0;
        while let Ok(read @ 1..) = from_server.read(&mut buffer) {
            let limit = *limit_of_answers.lock().unwrap_or_else(PoisonError::into_inner);
            let take = limit.map_or(read, |limit| read.min(limit.saturating_sub(answered)));
            answered += take;
            if to_client.write_all(&buffer[..take]).is_err() {
                break;
            }
            if limit.is_some_and(|limit| answered >= limit) {
                cuts.fetch_add(1, Ordering::SeqCst);
                break;
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
        let _ = from_server.shutdown(Shutdown::Both);
    });
    Some(())
}
