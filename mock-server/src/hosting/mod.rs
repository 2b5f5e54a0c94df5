//! The ways into sandboxes from outside: for each a port of this machine, on loopback, that leads to one port of one sandbox
//! and nowhere else.
//!
//! Why a port each, who is let in and what is forwarded stands in `docs/adr/0008-hosted-ports.md`.

mod access;
mod door;
mod pages;
mod proxy;
mod ssh;

use std::{
    collections::HashMap,
    io,
    net::{Ipv4Addr, TcpListener as StdListener},
    sync::{Arc, Mutex},
};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::access::TOKEN_QUERY;
use crate::{
    app::{App, lock},
    reply::ApiError,
    store::{StoreError, Writer, typed},
    world::{desktops::Desktop, hosted_ports::HostedPort, sandboxes::Sandbox, ssh_keys::SshKey},
};

/// What a door leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Goal {
    Port(u16),
    Desktop,
    /// A line that says that nobody can sign in here.
    Ssh,
}

/// A way in, by the sandbox it leads to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    sandbox: String,
    goal: Goal,
}

struct Opened {
    outside: u16,
    closing: CancellationToken,
}

/// Every door that is open.
#[derive(Default)]
pub(crate) struct Gateway {
    doors: Mutex<HashMap<Place, Opened>>,
    /// Held while a door and its record change together.
    pub(crate) turn: tokio::sync::Mutex<()>,
}

/// Opens a door, if it is not open already, and says at which port of this machine: the one of `before` if that is free.
pub(crate) fn open(app: &Arc<App>, sandbox: &str, goal: Goal, before: Option<u16>) -> Result<u16, ApiError> {
    let place = Place { sandbox: sandbox.to_owned(), goal };
    let mut doors = lock(&app.hosting.doors);
    if let Some(opened) = doors.get(&place) {
        return Ok(opened.outside);
    }
    let (listener, outside) = listen(before).map_err(ApiError::internal)?;
    let closing = app.closing.child_token();
    app.tasks.spawn(door::keep(app.clone(), listener, place.clone(), outside, closing.clone()));
    doors.insert(place, Opened { outside, closing });
    Ok(outside)
}

fn listen(before: Option<u16>) -> io::Result<(TcpListener, u16)> {
    let listener = before
        .and_then(|port| StdListener::bind((Ipv4Addr::LOCALHOST, port)).ok())
        .map_or_else(|| StdListener::bind((Ipv4Addr::LOCALHOST, 0)), Ok)?;
    listener.set_nonblocking(true)?;
    let outside = listener.local_addr()?.port();
    Ok((TcpListener::from_std(listener)?, outside))
}

/// Closes a door, and cuts whatever goes through it.
pub(crate) fn close(app: &App, sandbox: &str, goal: Goal) {
    let place = Place { sandbox: sandbox.to_owned(), goal };
    if let Some(opened) = lock(&app.hosting.doors).remove(&place) {
        opened.closing.cancel();
    }
}

/// Closes every door of a sandbox.
pub(crate) fn close_all(app: &App, sandbox: &str) {
    lock(&app.hosting.doors).retain(|place, opened| {
        let stays = place.sandbox != sandbox;
        if !stays {
            opened.closing.cancel();
        }
        stays
    });
}

/// Forgets what was recorded of a sandbox's doors.
pub(crate) fn forget(tx: &mut dyn Writer, sandbox: &str) -> Result<(), StoreError> {
    let prefix = format!("{sandbox}/");
    typed::remove_all::<HostedPort>(tx, &prefix)?;
    typed::remove_all::<SshKey>(tx, &prefix)?;
    typed::remove::<Desktop>(tx, sandbox)
}

/// Opens the doors that an earlier server on the same folder had open: at the same ports, as far as those are free.
pub(crate) fn take_up(app: &Arc<App>) -> Result<(), StoreError> {
    let (ports, desktops) = app.read(|tx| {
        // Those of a sandbox that is being deleted stay closed.
        let is_there = |id: &str| Ok::<_, StoreError>(typed::get::<Sandbox>(tx, id)?.is_some());
        let (mut ports, mut desktops) = (Vec::new(), Vec::new());
        for port in typed::with_prefix::<HostedPort>(tx, "")? {
            if is_there(&port.sandbox)? {
                ports.push(port);
            }
        }
        for desktop in typed::with_prefix::<Desktop>(tx, "")? {
            if is_there(&desktop.sandbox)? {
                desktops.push(desktop);
            }
        }
        Ok::<_, StoreError>((ports, desktops))
    })?;
    let reopen = |sandbox: &str, goal, outside: u16| match open(app, sandbox, goal, Some(outside)) {
        Ok(now) => now,
        Err(error) => {
            tracing::warn!(%sandbox, code = error.code(), "a hosted port could not be opened again");
            outside
        }
    };
    for mut port in ports {
        let now = reopen(&port.sandbox, Goal::Port(port.port), port.outside);
        if now != port.outside {
            port.outside = now;
            app.write_later(|tx| typed::put(tx, &port))?;
        }
    }
    for mut desktop in desktops {
        let now = reopen(&desktop.sandbox, Goal::Desktop, desktop.outside);
        if now != desktop.outside {
            desktop.outside = now;
            app.write_later(|tx| typed::put(tx, &desktop))?;
        }
    }
    Ok(())
}

/// The address of a door; that of a private one lets in whoever has it.
pub(crate) fn url(outside: u16, public: bool, token: &str) -> String {
    let host = Ipv4Addr::LOCALHOST;
    match public {
        true => format!("http://{host}:{outside}/"),
        false => format!("http://{host}:{outside}/?{TOKEN_QUERY}={token}"),
    }
}
