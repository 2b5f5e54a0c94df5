//! The ways into sandboxes from outside: for each a port of this machine, on loopback, that leads to one port of one sandbox
//! and nowhere else.
//!
//! Why a port each, who is let in and what is forwarded stands in `docs/adr/0008-hosted-ports.md`.

mod access;
mod door;
mod pages;
mod proxy;
mod ssh;
mod ways;

use std::{
    collections::HashMap,
    io,
    net::{Ipv4Addr, TcpListener as StdListener},
    sync::{Arc, Mutex},
};

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(crate) use self::ways::WaysIn;
use self::{
    access::TOKEN_QUERY,
    door::{CONNECTIONS, Door},
};
use crate::{
    app::{App, lock},
    reply::ApiError,
    store::{Reader, StoreError, Writer, typed, typed::Record},
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
    guests: Arc<Guests>,
}

/// Who came in without the token, while everybody might.
struct Guests(Mutex<CancellationToken>);

impl Guests {
    /// Whatever a guest has open ends with it.
    fn stay(&self) -> CancellationToken {
        lock(&self.0).clone()
    }
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
    let guests = Arc::new(Guests(Mutex::new(closing.child_token())));
    let door = Door {
        app: app.clone(),
        place: place.clone(),
        outside,
        closing: closing.clone(),
        guests: guests.clone(),
    };
    app.tasks.spawn(door::keep(door, listener, CONNECTIONS));
    doors.insert(place, Opened { outside, closing, guests });
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

/// Cuts what goes through a door for those who came without its token: it does not take everybody any more.
pub(crate) fn show_guests_out(app: &App, sandbox: &str, goal: Goal) {
    let place = Place { sandbox: sandbox.to_owned(), goal };
    if let Some(opened) = lock(&app.hosting.doors).get(&place) {
        let next = opened.closing.child_token();
        std::mem::replace(&mut *lock(&opened.guests.0), next).cancel();
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
    let (ports, desktops, keys): (Vec<HostedPort>, Vec<Desktop>, Vec<SshKey>) =
        app.read(|tx| Ok::<_, StoreError>((of_present(tx)?, of_present(tx)?, of_present(tx)?)))?;
    let reopen = |sandbox: &str, goal, outside: &mut u16| {
        let before = *outside;
        match open(app, sandbox, goal, Some(before)) {
            Ok(now) => *outside = now,
            Err(error) => {
                tracing::warn!(%sandbox, code = error.code(), "a way in could not be opened again");
            }
        }
        *outside != before
    };
    for mut port in ports {
        let HostedPort { sandbox, port: goal, outside, .. } = &mut port;
        if reopen(sandbox, Goal::Port(*goal), outside) {
            app.write_later(|tx| typed::put(tx, &port))?;
        }
    }
    for mut desktop in desktops {
        let Desktop { sandbox, outside, .. } = &mut desktop;
        if reopen(sandbox, Goal::Desktop, outside) {
            app.write_later(|tx| typed::put(tx, &desktop))?;
        }
    }
    // The keys of a sandbox share a door.
    for mut key in keys {
        let SshKey { sandbox, outside, .. } = &mut key;
        if reopen(sandbox, Goal::Ssh, outside) {
            app.write_later(|tx| typed::put(tx, &key))?;
        }
    }
    Ok(())
}

/// The records of doors, but for those of sandboxes that are being deleted: those stay closed. Their keys begin with that of
/// the sandbox.
fn of_present<R: Record>(tx: &dyn Reader) -> Result<Vec<R>, StoreError> {
    let mut present = Vec::new();
    for record in typed::with_prefix::<R>(tx, "")? {
        let key = record.key();
        if typed::get::<Sandbox>(tx, key.split('/').next().unwrap_or_default())?.is_some() {
            present.push(record);
        }
    }
    Ok(present)
}

/// The address of a door; that of a private one lets in whoever has it.
pub(crate) fn url(outside: u16, public: bool, token: &str) -> String {
    let host = Ipv4Addr::LOCALHOST;
    match public {
        true => format!("http://{host}:{outside}/"),
        false => format!("http://{host}:{outside}/?{TOKEN_QUERY}={token}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{testing::Setting, world::sandboxes::State};

    #[tokio::test]
    async fn the_doors_of_a_sandbox_that_is_being_deleted_stay_closed() {
        let set = Setting::new();
        let app = &set.app;
        set.sandbox(State::Ready).await;
        set.write(|tx| {
            for sandbox in ["bx_1", "bx_gone"] {
                let (sandbox, token, outside) = (sandbox.to_owned(), String::new(), 0);
                typed::put(
                    tx,
                    &Desktop {
                        sandbox: sandbox.clone(),
                        outside,
                        token: token.clone(),
                        public: true,
                        theme: None,
                        ready_at: 0,
                    },
                )?;
                let (port, public, localhost, title) = (80, true, true, None);
                typed::put(tx, &HostedPort { sandbox, port, outside, token, public, localhost, title })?;
            }
            Ok(())
        });
        take_up(app).unwrap();
        let mut open: Vec<_> = lock(&app.hosting.doors).keys().cloned().collect();
        open.sort_by_key(|place| place.goal == Goal::Desktop);
        let place = |goal| Place { sandbox: "bx_1".into(), goal };
        assert_eq!(open, [place(Goal::Port(80)), place(Goal::Desktop)]);
        app.closing.cancel();
    }
}
