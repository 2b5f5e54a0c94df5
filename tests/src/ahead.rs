//! A clock that runs like the machine's and can be moved ahead, also by another program.

use std::{
    io::{self, BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

use sandboxer::clock::{Clock, SharedClock, Sleep, SystemClock};
use tokio::sync::watch;

/// Such a clock.
#[derive(Clone, Debug)]
pub struct Ahead {
    system: SystemClock,
    by: watch::Sender<Duration>,
}

impl Default for Ahead {
    fn default() -> Self {
        Self { system: SystemClock::new(), by: watch::Sender::new(Duration::ZERO) }
    }
}

impl Ahead {
    /// The same clock, for a server.
    pub fn shared(&self) -> SharedClock {
        Arc::new(self.clone())
    }

    /// Moves it; whoever sleeps on it may be woken.
    pub fn advance(&self, by: Duration) {
        self.by.send_modify(|ahead| *ahead += by);
    }

    /// Listens for other programs: each line of a connection is a number of milliseconds to move it by, and answered with
    /// `moved`. Until the process ends.
    ///
    /// # Errors
    ///
    /// The system refuses to listen.
    pub fn listen(&self) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let clock = self.clone();
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                // One after the other; a connection that breaks is no reason to end.
                let _ = BufReader::new(&connection).lines().map_while(Result::ok).try_for_each(|line| {
                    clock.advance(Duration::from_millis(line.trim().parse().unwrap_or_default()));
                    (&connection).write_all(b"moved\n")
                });
            }
        });
        Ok(address)
    }
}

impl Clock for Ahead {
    fn now(&self) -> SystemTime {
        self.system.now() + *self.by.borrow()
    }

    fn elapsed(&self) -> Duration {
        self.system.elapsed() + *self.by.borrow()
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        let clock = self.clone();
        let end = self.elapsed().saturating_add(duration);
        Box::pin(async move {
            let mut moved = clock.by.subscribe();
            loop {
                // Looked at after it was marked as seen, so that no move falls between them.
                moved.borrow_and_update();
                let left = end.saturating_sub(clock.elapsed());
                if left.is_zero() {
                    return;
                }
                tokio::select! {
                    () = clock.system.sleep(left) => {}
                    _ = moved.changed() => {}
                }
            }
        })
    }
}
