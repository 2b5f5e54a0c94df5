//! Where the server may send requests to.
//!
//! Accounts choose the addresses, so none may lead into the network that the server itself is in: only public addresses
//! will do, however they are written, and a name is judged by what it resolves to when something is sent. Addresses of
//! this machine are an exception that must be asked for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// What there is to choose from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowed {
    /// The ports of public addresses.
    pub(crate) ports: &'static [u16],
    /// Whether `http` and any port will do for addresses of this machine.
    pub(crate) loopback: bool,
}

/// Names that never stand for a public address, with everything below them.
const PRIVATE_NAMES: [&str; 6] = ["local", "internal", "localdomain", "lan", "home.arpa", "onion"];

/// Reads a URL that something is to be sent to, or says what it must be instead.
pub(crate) fn check(text: &str, allowed: Allowed) -> Result<Url, String> {
    if text.chars().any(|character| character.is_whitespace() || character.is_control()) {
        return Err("must not contain spaces or control characters".into());
    }
    let url = Url::parse(text).map_err(|error| format!("must be a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must be an https URL".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user name or password".into());
    }
    // Two ways to read one text are one too many.
    if text.contains('\\') {
        return Err("must not contain a backslash".into());
    }
    let host = url.host().ok_or("must name a host")?;
    if is_loopback(&host) {
        return match allowed.loopback && url.port_or_known_default() != Some(0) {
            true => Ok(url),
            false => Err("must have a public address".into()),
        };
    }
    let is_public = match &host {
        Host::Ipv4(address) => is_public_v4(*address),
        Host::Ipv6(address) => is_public_v6(*address),
        Host::Domain(name) => is_public_name(name),
    };
    if !is_public {
        return Err("must have a public address".into());
    }
    if url.scheme() != "https" {
        return Err("must be an https URL".into());
    }
    if !url.port_or_known_default().is_some_and(|port| allowed.ports.contains(&port)) {
        let ports: Vec<_> = allowed.ports.iter().map(u16::to_string).collect();
        return Err(format!("must use port {}", ports.join(" or ")));
    }
    Ok(url)
}

/// Whether a host is this machine by its name or its address.
fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => {
            address.is_loopback() || address.to_ipv4_mapped().is_some_and(|inner| inner.is_loopback())
        }
        Host::Domain(name) => is_loopback_name(name),
    }
}

/// Whether a name stands for this machine wherever it is asked for.
pub(crate) fn is_loopback_name(name: &str) -> bool {
    is_below(name.trim_end_matches('.'), "localhost")
}

fn is_public_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    name.contains('.') && !PRIVATE_NAMES.iter().any(|private| is_below(name, private))
}

fn is_below(name: &str, parent: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name == parent || name.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.'))
}

/// Whether an address that a name resolved to may be sent to.
pub(crate) fn may_resolve_to(name: &str, address: IpAddr, loopback: bool) -> bool {
    if is_loopback_name(name) {
        return loopback && address.is_loopback();
    }
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    // In the order of the addresses, as they are registered for special use.
    !matches!(
        address.octets(),
        [0 | 10 | 127, ..]
            | [100, 64..=127, ..]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [192, 168, ..]
            | [198, 18 | 19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
            | [224..=255, ..]
    )
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_public_v4(inner);
    }
    let segments = address.segments();
    // Everything outside the global unicast range is of special use, translated IPv4 addresses among it; inside of it
    // are protocol assignments with Teredo, documentation and 6to4.
    matches!(segments[0], 0x2000..=0x3fff)
        && !matches!(segments, [0x2001, 0..=0x01ff | 0x0db8, ..] | [0x2002, ..] | [0x3fff, 0..=0x0fff, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: Allowed = Allowed { ports: &[443], loopback: false };
    const LOCAL: Allowed = Allowed { ports: &[443], loopback: true };

    #[test]
    fn public_https_addresses_will_do() {
        for text in [
            "https://hooks.example/in?token=1",
            "https://hooks.example:443",
            "https://93.184.215.14/",
            "https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/x",
            "https://[::ffff:93.184.215.14]/",
            "https://bücher.example/",
            "HTTPS://HOOKS.EXAMPLE/",
            "https://localhost.example/",
        ] {
            check(text, PUBLIC).unwrap_or_else(|problem| panic!("{text} {problem}"));
        }
    }

    #[test]
    fn everything_else_is_refused_however_it_is_written() {
        for text in [
            "http://hooks.example/",
            "ftp://hooks.example/",
            "file:///etc/passwd",
            "hooks.example/in",
            "",
            "https://",
            "https://hooks.example:8443/",
            "https://hooks.example:0/",
            "https://user@hooks.example/",
            "https://user:secret@hooks.example/",
            "https://:secret@hooks.example/",
            " https://hooks.example/",
            "https://hooks.example/a b",
            "https://hooks.example/\n",
            "https:\\\\hooks.example/",
            "https://hooks.example\\@127.0.0.1/",
            "https://localhost/",
            "https://localhost./",
            "https://LOCALHOST/",
            "https://api.localhost/",
            "https://intranet/",
            "https://printer.local/",
            "https://metadata.google.internal/",
            "https://127.0.0.1/",
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f000001/",
            "https://0177.0.0.1/",
            "https://0x7f.1/",
            "https://127.0.0.1./",
            "https://%31%32%37.0.0.1/",
            "https://１２７.0.0.1/",
            "https://0/",
            "https://0.0.0.0/",
            "https://10.0.0.1/",
            "https://100.64.0.1/",
            "https://169.254.169.254/",
            "https://172.16.0.1/",
            "https://172.31.255.255/",
            "https://192.0.0.8/",
            "https://192.0.2.1/",
            "https://192.168.1.1/",
            "https://198.18.0.1/",
            "https://198.51.100.7/",
            "https://203.0.113.9/",
            "https://224.0.0.1/",
            "https://255.255.255.255/",
            "https://[::]/",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://[::ffff:7f00:1]/",
            "https://[::127.0.0.1]/",
            "https://[64:ff9b::10.0.0.1]/",
            "https://[fe80::1]/",
            "https://[fc00::1]/",
            "https://[fd12:3456::1]/",
            "https://[ff02::1]/",
            "https://[2001:db8::1]/",
            "https://[2001::1]/",
            "https://[2002:7f00:1::]/",
        ] {
            assert!(check(text, PUBLIC).is_err(), "{text}");
        }
        for public in
            ["https://172.32.0.1/", "https://100.128.0.1/", "https://192.0.1.1/", "https://198.20.0.1/"]
        {
            check(public, PUBLIC).unwrap_or_else(|problem| panic!("{public} {problem}"));
        }
    }

    #[test]
    fn this_machine_is_an_exception_to_be_asked_for() {
        for text in [
            "http://127.0.0.1:8080/in",
            "http://localhost:1/",
            "https://localhost:8443/",
            "http://[::1]:4318/",
            "http://2130706433:99/",
            "http://hooks.localhost:80/",
        ] {
            check(text, LOCAL).unwrap_or_else(|problem| panic!("{text} {problem}"));
            assert!(check(text, PUBLIC).is_err(), "{text}");
        }
        for still_refused in [
            "http://hooks.example/",
            "http://10.0.0.1:8080/",
            "http://0.0.0.0:8080/",
            "https://hooks.example:8443/",
            "http://user@127.0.0.1/",
            "http://localhost:0/",
        ] {
            assert!(check(still_refused, LOCAL).is_err(), "{still_refused}");
        }
    }

    #[test]
    fn a_name_is_judged_by_what_it_resolves_to() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(may_resolve_to("hooks.example", address("93.184.215.14"), false));
        for private in ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fe80::1", "::ffff:192.168.0.1"] {
            assert!(!may_resolve_to("hooks.example", address(private), true), "{private}");
        }
        assert!(may_resolve_to("localhost", address("127.0.0.1"), true));
        assert!(may_resolve_to("localhost", address("::1"), true));
        assert!(!may_resolve_to("localhost", address("127.0.0.1"), false));
        assert!(!may_resolve_to("localhost", address("93.184.215.14"), true));
    }
}
