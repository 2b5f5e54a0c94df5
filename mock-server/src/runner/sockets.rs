//! Who listens on a port, as `/proc/PID/net` shows it.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use super::procfs::ProcessDir;

/// The state of a socket that accepts connections.
const LISTEN: &str = "0A";

/// A socket that accepts connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listening {
    address: IpAddr,
    pub(crate) inode: u64,
}

impl Listening {
    /// Whether it is what answers at an address of its port.
    fn answers_at(&self, address: IpAddr) -> bool {
        let is_any = self.address.is_unspecified() && self.address.is_ipv4() == address.is_ipv4();
        is_any || self.address == address
    }
}

/// The sockets that accept connections on a port, in the network that a process sees.
pub(crate) fn listening(process: &ProcessDir, port: u16) -> io::Result<Vec<Listening>> {
    let mut found = Vec::new();
    let mut problem = None;
    for table in ["net/tcp", "net/tcp6"] {
        match process.read(table) {
            Ok(text) => {
                found.extend(String::from_utf8_lossy(&text).lines().filter_map(|row| read(row, port)))
            }
            // A kernel without IPv6 has no second table.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => problem = Some(error),
        }
    }
    match problem {
        Some(error) if found.is_empty() => Err(error),
        _ => Ok(found),
    }
}

fn read(row: &str, wanted: u16) -> Option<Listening> {
    let fields: Vec<&str> = row.split_ascii_whitespace().collect();
    let (address, port) = fields.get(1)?.split_once(':')?;
    if *fields.get(3)? != LISTEN || u16::from_str_radix(port, 16).ok()? != wanted {
        return None;
    }
    Some(Listening { address: address_of(address)?, inode: fields.get(9)?.parse().ok()? })
}

/// Addresses are written as words of 32 bits in the machine's own order.
fn address_of(text: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(text.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?].concat();
            let octets: [u8; 16] = words.try_into().ok()?;
            Some(Ipv6Addr::from(octets).to_canonical())
        }
        _ => None,
    }
}

/// Where to connect to, best first: IPv4 before IPv6. Without `loopback`, what listens on a loopback address alone is out of
/// reach.
pub(crate) fn places(found: &[Listening], port: u16, loopback: bool) -> Vec<SocketAddr> {
    let (v4, v6) = (IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST));
    let mut places = Vec::new();
    for Listening { address, .. } in found {
        match address {
            IpAddr::V4(any) if any.is_unspecified() => places.push(v4),
            // It takes IPv4 as well, as a rule, and there may be no IPv6 to reach it by.
            IpAddr::V6(any) if any.is_unspecified() => places.extend([v6, v4]),
            own if own.is_loopback() && !loopback => {}
            own => places.push(*own),
        }
    }
    places.sort_unstable();
    places.dedup();
    places.into_iter().map(|address| SocketAddr::new(address, port)).collect()
}

/// [`places`] of the sockets that are a sandbox's own, in a network that others may use as well: not those where one of theirs
/// answers, such as IPv4 beside a socket of the sandbox that takes IPv6 alone.
pub(crate) fn own_places(
    all: Vec<Listening>,
    is_own: impl Fn(u64) -> bool,
    port: u16,
    loopback: bool,
) -> io::Result<Vec<SocketAddr>> {
    let (found, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| is_own(one.inode));
    let mut open = places(&found, port, loopback);
    open.retain(|place| !others.iter().any(|other| other.answers_at(place.ip())));
    if open.is_empty() { Err(nobody(&found)) } else { Ok(open) }
}

/// Nobody listens there.
pub(crate) fn nobody(found: &[Listening]) -> io::Error {
    let why = match found.is_empty() {
        true => "no program of the sandbox listens on this port",
        false => {
            "the program listens on a loopback address only: host the port with localhost, or listen on 0.0.0.0"
        }
    };
    io::Error::new(io::ErrorKind::ConnectionRefused, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_and_others_are_left() {
        let row = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4242 1 0 100 0 0 10 0";
        let found = read(row, 8080);
        if cfg!(target_endian = "little") {
            assert_eq!(found, Some(Listening { address: Ipv4Addr::LOCALHOST.into(), inode: 4242 }));
        }
        assert_eq!(read(row, 8081), None);
        assert_eq!(read(&row.replace(" 0A ", " 01 "), 8080), None);
        assert_eq!(read("  sl  local_address rem_address   st", 8080), None);
        assert_eq!(address_of(&"0".repeat(32)), Some(Ipv6Addr::UNSPECIFIED.into()));
        assert_eq!(address_of("0"), None);
    }

    #[test]
    fn what_listens_on_loopback_alone_must_be_allowed() {
        let at = |address: IpAddr| Listening { address, inode: 1 };
        let (own, any) = (at(Ipv4Addr::LOCALHOST.into()), at(Ipv4Addr::UNSPECIFIED.into()));
        let six = at(Ipv6Addr::LOCALHOST.into());
        let first = |found: &[Listening], loopback| places(found, 80, loopback).first().map(SocketAddr::ip);
        assert_eq!(first(&[own, six], false), None);
        assert_eq!(first(&[six, own], true), Some(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(first(&[six], true), Some(Ipv6Addr::LOCALHOST.into()));
        assert_eq!(first(&[any], false), Some(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(places(&[at(Ipv6Addr::UNSPECIFIED.into())], 80, false).len(), 2);
    }

    #[test]
    fn a_place_where_somebody_else_answers_is_not_the_sandboxs() {
        let at = |address: IpAddr, inode| Listening { address, inode };
        let own = at(Ipv6Addr::UNSPECIFIED.into(), 1);
        let v6 = [SocketAddr::from((Ipv6Addr::LOCALHOST, 80))];
        for theirs in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
            let all = vec![own, at(theirs.into(), 2)];
            assert_eq!(own_places(all.clone(), |inode| inode == 1, 80, false).unwrap(), v6);
            assert_eq!(own_places(all, |_| true, 80, true).unwrap().len(), 2);
        }
        assert!(own_places(vec![own], |_| false, 80, true).is_err());
    }
}
