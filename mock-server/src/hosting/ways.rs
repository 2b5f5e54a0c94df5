//! The ways into a sandbox as the sandbox itself is shown with them.

use std::{net::Ipv4Addr, ops::ControlFlow};

use super::url;
use crate::{
    store::{
        Order, Reader, StoreError,
        typed::{self, Record},
    },
    world::{desktops::Desktop, hosted_ports::HostedPort, ssh_keys::SshKey, time::Millis},
};

/// Where a sandbox that is up is reached.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WaysIn {
    /// The first port that it hosts, without what lets in: this is no secret.
    pub(crate) url: Option<String>,
    pub(crate) ssh: Option<String>,
    /// The desktop that is ready, with what lets in.
    pub(crate) desktop: Option<String>,
}

impl WaysIn {
    /// Those of a sandbox; the desktop only for whoever may open one.
    pub(crate) fn of(
        tx: &dyn Reader,
        sandbox: &str,
        opens_desktops: bool,
        now: Millis,
    ) -> Result<Self, StoreError> {
        let desktop: Option<Desktop> = if opens_desktops { typed::get(tx, sandbox)? } else { None };
        let desktop = desktop.filter(|desktop| desktop.ready_at <= now);
        Ok(Self {
            url: first::<HostedPort>(tx, sandbox)?.map(|port| url(port.outside, true, "")),
            ssh: first::<SshKey>(tx, sandbox)?.map(|key| format!("{}:{}", Ipv4Addr::LOCALHOST, key.outside)),
            desktop: desktop.map(|desktop| url(desktop.outside, desktop.public, &desktop.token)),
        })
    }
}

fn first<R: Record>(tx: &dyn Reader, sandbox: &str) -> Result<Option<R>, StoreError> {
    let prefix = format!("{sandbox}/");
    let mut found = None;
    typed::scan::<R>(tx, &prefix, typed::after_prefix(&prefix).as_deref(), Order::Ascending, |_, record| {
        found = Some(record);
        ControlFlow::Break(())
    })?;
    Ok(found)
}
