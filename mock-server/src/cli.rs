//! The command line of the server.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    MockServer, StartError,
    runner::{Network, RunnerKind},
    world::seed::WorldSeed,
};

/// A local sandbox service: speaks the Sandboxer HTTP API and really runs commands.
#[derive(Debug, Parser)]
#[command(name = "sandboxer-mock-server", version)]
struct Flags {
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", value_parser = parse_address)]
    listen: SocketAddr,

    /// A key that may do everything for the default account; may be given more than once.
    #[arg(long, value_name = "KEY", value_parser = parse_key)]
    api_key: Vec<String>,

    /// Accounts, organisations, keys, plans and machines to start with: a TOML or JSON file.
    #[arg(long, value_name = "FILE")]
    world: Option<PathBuf>,

    /// How commands run: auto, isolated, process or scripted.
    #[arg(long, value_name = "RUNNER", default_value = "auto")]
    runner: RunnerKind,

    /// Network of isolated commands: none or host.
    #[arg(long, value_name = "NETWORK", default_value = "none", value_parser = parse_network)]
    network: Network,

    /// Folder that keeps everything beyond the server's end; in memory and a temporary folder if left out.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Allow an address that other machines can reach.
    #[arg(long)]
    allow_remote: bool,

    /// Another name that the page for people may be asked for by; may be given more than once.
    #[arg(long, value_name = "NAME")]
    page_host: Vec<String>,

    /// Allow webhook endpoints and telemetry collectors on this machine, over http and on any port.
    #[arg(long)]
    allow_loopback_targets: bool,
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "must be an IP address and a port, such as 127.0.0.1:8080".to_owned())
}

fn parse_key(text: &str) -> Result<String, String> {
    match !text.is_empty() && text.bytes().all(|byte| (0x21..0x7f).contains(&byte)) {
        true => Ok(text.to_owned()),
        false => Err("must be printable ASCII without spaces".into()),
    }
}

fn parse_network(text: &str) -> Result<Network, String> {
    match text {
        "none" => Ok(Network::None),
        "host" => Ok(Network::Host),
        _ => Err("must be none or host".into()),
    }
}

/// Runs the server until SIGTERM or SIGINT. Exit status 2, with one line that says why, if it cannot be started.
pub fn main() -> ExitCode {
    let flags = Flags::parse();
    allow_many_files();
    match start(flags) {
        Ok(server) => serve(server),
        Err(problem) => {
            say(std::io::stderr(), &format!("sandboxer-mock-server: {}", problem.replace('\n', " ")));
            ExitCode::from(2)
        }
    }
}

/// Raises the number of files that may be open as far as that is allowed, up to what some thousand streams need: a
/// stream takes about eight.
fn allow_many_files() {
    const WANTED: u64 = 16_384;
    let now = getrlimit(Resource::Nofile);
    if now.current.is_some_and(|current| current < WANTED) {
        let raised = now.maximum.map_or(WANTED, |maximum| maximum.min(WANTED));
        // Not worth a word: it works with fewer, too.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: now.maximum });
    }
}

fn start(flags: Flags) -> Result<MockServer, String> {
    let world = match &flags.world {
        Some(path) => WorldSeed::from_file(path).map_err(|error| error.to_string())?,
        None => WorldSeed::default(),
    };
    if flags.api_key.is_empty() && world.keys.is_empty() {
        return Err("a key is required: give --api-key, or a --world file that has keys".into());
    }
    let mut builder = MockServer::builder()
        .listen(flags.listen)
        .allow_remote(flags.allow_remote)
        .world(world)
        .runner(flags.runner)
        .network(flags.network);
    for key in flags.api_key {
        builder = builder.api_key(key);
    }
    for name in flags.page_host {
        builder = builder.page_host(name);
    }
    if flags.allow_loopback_targets {
        builder = builder.allow_loopback_targets();
    }
    if let Some(folder) = flags.data_dir {
        builder = builder.data_dir(folder);
    }
    builder.start().map_err(|error: StartError| error.to_string())
}

fn serve(server: MockServer) -> ExitCode {
    if let Some(notice) = server.notice() {
        say(std::io::stderr(), &format!("sandboxer-mock-server: {notice}"));
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say(std::io::stderr(), &format!("sandboxer-mock-server: the system refused: {error}"));
            return ExitCode::from(2);
        }
    };
    let waited = runtime.block_on(async {
        // Listened for before the address is printed: whoever reads it may end the server at once.
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        say(std::io::stdout(), &format!("listening on {}\npage at {}", server.url(), server.page_url()));
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok::<(), std::io::Error>(())
    });
    server.shutdown();
    match waited {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(std::io::stderr(), &format!("sandboxer-mock-server: signals cannot be watched: {error}"));
            ExitCode::from(2)
        }
    }
}

/// Writes one line; that nobody reads it is no reason to stop.
fn say(mut to: impl std::io::Write, line: &str) {
    let _ = writeln!(to, "{line}");
    let _ = to.flush();
}
