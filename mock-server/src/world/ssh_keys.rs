//! Public keys that may sign in to a sandbox.

use base64::{Engine as _, engine::general_purpose};
use serde::{Deserialize, Serialize};

use super::{ids, time::Millis};
use crate::store::{Table, typed::Record};

/// The kinds of keys that OpenSSH lets in.
const KINDS: [&str; 7] = [
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];

/// A key that may sign in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SshKey {
    pub(crate) sandbox: String,
    /// Kind and key, without the comment.
    pub(crate) key: String,
    #[serde(default)]
    pub(crate) comment: Option<String>,
    pub(crate) added_at: Millis,
    /// The port of this machine that was given out as the place to sign in.
    #[serde(default)]
    pub(crate) outside: u16,
}

impl Record for SshKey {
    const TABLE: Table = Table::SshKeys;

    fn key(&self) -> String {
        format!("{}/{}", self.sandbox, ids::digest(&self.key))
    }
}

/// A public key, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PublicKey {
    /// Kind and key.
    pub(crate) key: String,
    pub(crate) comment: Option<String>,
}

/// Reads a public key in OpenSSH form: one line of the kind, the key and perhaps a comment.
///
/// # Errors
///
/// What is wrong with it, to follow the name of the field; nothing of the text itself, which may be a private key.
pub(crate) fn parse(text: &str) -> Result<PublicKey, &'static str> {
    let line = text.trim();
    if line.contains("PRIVATE KEY") {
        return Err("is a private key: keep that to yourself and send the public one");
    }
    if line.contains(['\n', '\r', '\0']) {
        return Err("must be one line");
    }
    let mut parts = line.splitn(3, [' ', '\t']);
    let (kind, blob) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default().trim());
    if !KINDS.contains(&kind) {
        return Err("must begin with the kind of a public key, such as ssh-ed25519");
    }
    let malformed = "does not hold a key of the kind that it names";
    let bytes = general_purpose::STANDARD
        .decode(blob)
        .or_else(|_| general_purpose::STANDARD_NO_PAD.decode(blob))
        .map_err(|_| malformed)?;
    let fields = fields(&bytes).ok_or(malformed)?;
    if fields.first() != Some(&kind.as_bytes()) || !is_whole(kind, &fields[1..]) {
        return Err(malformed);
    }
    let comment = parts.next().map(str::trim).filter(|comment| !comment.is_empty()).map(str::to_owned);
    Ok(PublicKey { key: format!("{kind} {}", general_purpose::STANDARD.encode(&bytes)), comment })
}

/// The texts that a key is made of, each behind its length.
fn fields(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (field, rest) = rest.split_at_checked(length)?;
        fields.push(field);
        bytes = rest;
    }
    Some(fields)
}

/// Whether the parts after the kind are those of such a key.
fn is_whole(kind: &str, parts: &[&[u8]]) -> bool {
    let curve = |name: &str, point: &[u8]| match name {
        "nistp256" => point.len() == 65,
        "nistp384" => point.len() == 97,
        "nistp521" => point.len() == 133,
        _ => false,
    };
    match (kind, parts) {
        ("ssh-ed25519", [key]) => key.len() == 32,
        ("sk-ssh-ed25519@openssh.com", [key, application]) => key.len() == 32 && !application.is_empty(),
        // OpenSSH takes no RSA key of less than 1024 bits.
        ("ssh-rsa", [exponent, modulus]) => !exponent.is_empty() && modulus.len() >= 128,
        ("sk-ecdsa-sha2-nistp256@openssh.com", [name, point, application]) => {
            *name == b"nistp256" && curve("nistp256", point) && !application.is_empty()
        }
        (kind, [name, point]) => kind
            .strip_prefix("ecdsa-sha2-")
            .is_some_and(|named| name == &named.as_bytes() && curve(named, point)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(kind: &str, parts: &[&[u8]]) -> String {
        let mut bytes = Vec::new();
        for part in [kind.as_bytes()].iter().chain(parts) {
            bytes.extend_from_slice(&u32::try_from(part.len()).unwrap().to_be_bytes());
            bytes.extend_from_slice(part);
        }
        format!("{kind} {}", general_purpose::STANDARD.encode(bytes))
    }

    #[test]
    fn public_keys_of_every_kind_are_taken() {
        let point = [4; 65];
        for text in [
            line("ssh-ed25519", &[&[7; 32]]),
            line("ssh-rsa", &[&[1, 0, 1], &[9; 257]]),
            line("ecdsa-sha2-nistp256", &[b"nistp256", &point]),
            line("sk-ssh-ed25519@openssh.com", &[&[7; 32], b"ssh:"]),
        ] {
            let read = parse(&format!("  {text} me@home and more \n")).unwrap();
            assert_eq!((read.key, read.comment.as_deref()), (text, Some("me@home and more")));
        }
        // As `ssh-keygen` writes it.
        let real = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
        assert_eq!(parse(real).unwrap().comment, None);
    }

    #[test]
    fn anything_else_is_refused_without_being_repeated() {
        let short = line("ssh-ed25519", &[&[7; 31]]);
        let other = line("ssh-ed25519", &[&[7; 32]]).replacen("ssh-ed25519 ", "ssh-rsa ", 1);
        for text in [
            "",
            "hello",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----",
            "ssh-ed25519",
            "ssh-ed25519 ????",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5",
            "ssh-dss AAAA",
            &short,
            &other,
            "ssh-ed25519 AAAA\nssh-ed25519 BBBB",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
