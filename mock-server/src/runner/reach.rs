//! Connections to a port inside a network namespace. A socket stays in the namespace that it was made in, whoever holds it.

use std::{
    io,
    net::{SocketAddr, TcpStream as StdStream},
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    process::Stdio,
    thread,
    time::Duration,
};

use rustix::{
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};
use sandboxer::clock::{Clock as _, SystemClock};
use tokio::{io::AsyncReadExt as _, net::TcpStream, process::Command, sync::oneshot};

/// Real time that a connection on one machine may take.
const CONNECTING: Duration = Duration::from_secs(5);

/// Opens a connection as file 3, says so, and waits to be ended.
const OPEN: &str = r#"exec 3<>"/dev/tcp/$1/$2" && echo ready && read -r _"#;
const READY: &[u8; 6] = b"ready\n";

/// The first of the places that answers.
pub(crate) async fn directly(places: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = refused();
    for place in places {
        let connecting = TcpStream::connect(place);
        let clock = SystemClock::new();
        let connected = tokio::select! {
            connected = connecting => connected,
            () = clock.sleep(CONNECTING) => Err(io::ErrorKind::TimedOut.into()),
        };
        match connected {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The same inside a namespace, from a thread that enters it and then ends. Takes the privilege to enter it.
pub(crate) async fn by_thread(namespace: OwnedFd, places: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let (answer, connected) = oneshot::channel();
    thread::Builder::new().name("sandbox-reach".into()).spawn(move || {
        let network = Some(LinkNameSpaceType::Network);
        let connected = move_into_link_name_space(namespace.as_fd(), network)
            .map_err(io::Error::from)
            .and_then(|()| connect(&places));
        // Whoever asked may have gone away.
        let _ = answer.send(connected);
    })?;
    into_async(connected.await.map_err(io::Error::other)??)
}

fn connect(places: &[SocketAddr]) -> io::Result<StdStream> {
    let mut last = refused();
    for place in places {
        match StdStream::connect_timeout(place, CONNECTING) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The same for an ordinary user, who cannot enter with a thread of a program that has several: a child enters, connects, and
/// its socket is taken over. `init` is a process of the namespaces.
pub(crate) async fn by_child(
    nsenter: &Path,
    bash: &Path,
    init: u32,
    places: &[SocketAddr],
) -> io::Result<TcpStream> {
    let mut last = refused();
    for place in places {
        let attempt = take_over(nsenter, bash, init, *place);
        let clock = SystemClock::new();
        let connected = tokio::select! {
            connected = attempt => connected,
            () = clock.sleep(CONNECTING) => Err(io::ErrorKind::TimedOut.into()),
        };
        match connected {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn take_over(nsenter: &Path, bash: &Path, init: u32, place: SocketAddr) -> io::Result<TcpStream> {
    let mut command = Command::new(nsenter);
    command.args(["--target", &init.to_string(), "--user", "--preserve-credentials", "--net", "--"]);
    command.arg(bash).args(["--norc", "--noprofile", "-c", OPEN, "bash"]);
    command.args([place.ip().to_string(), place.port().to_string()]);
    command.env_clear().current_dir("/").process_group(0).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).ok_or_else(refused)?;
    let handle = pidfd_open(pid, PidfdFlags::empty())?;
    let mut said = [0; READY.len()];
    let mut output = child.stdout.take().ok_or_else(refused)?;
    output.read_exact(&mut said).await.map_err(|_| refused())?;
    if &said != READY {
        return Err(refused());
    }
    let socket = pidfd_getfd(&handle, 3, PidfdGetfdFlags::empty())?;
    // Nobody is left to read from it but us.
    child.kill().await?;
    into_async(socket.into())
}

fn into_async(stream: StdStream) -> io::Result<TcpStream> {
    stream.set_nonblocking(true)?;
    TcpStream::from_std(stream)
}

fn refused() -> io::Error {
    io::Error::new(
        io::ErrorKind::ConnectionRefused,
        "no program of the sandbox takes connections on this port",
    )
}
