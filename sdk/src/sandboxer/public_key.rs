//! The check of a key that is to be let in.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::error::{Error, Result};

/// Takes a public key in OpenSSH form as one line, without the line's end. What is refused is never told again.
pub(super) fn checked(key: &str) -> Result<&str> {
    let refused = |problem: &str| Err(Error::invalid_input("key", problem));
    let line = key.trim();
    if line.contains("PRIVATE KEY") || line.starts_with("PuTTY-User-Key-File") {
        return refused(
            "this is a private key, which must not leave its machine; send the one in its `.pub` file",
        );
    }
    if line.chars().any(char::is_control) {
        return refused("must be one line without control characters");
    }
    let mut fields = line.split(' ').filter(|field| !field.is_empty());
    let (Some(kind), Some(blob)) = (fields.next(), fields.next()) else {
        return refused("must be a public key in OpenSSH form: its kind, its content, and maybe a comment");
    };
    let content = STANDARD.decode(blob).unwrap_or_default();
    let parts = parts(&content).unwrap_or_default();
    // The first part of the content is its kind once more.
    if parts.len() < 2 || parts[0] != kind.as_bytes() {
        return refused(
            "must be a whole public key in OpenSSH form, such as `ssh-ed25519 AAAA… me@example.org`",
        );
    }
    Ok(line)
}

/// The parts of a key's content, each behind four bytes of length; `None` when it is cut or goes on.
fn parts(mut content: &[u8]) -> Option<Vec<&[u8]>> {
    let mut parts = Vec::new();
    while !content.is_empty() {
        let (length, rest) = content.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        parts.push(part);
        content = rest;
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: &str) -> String {
        let mut content = u32::try_from(kind.len()).unwrap().to_be_bytes().to_vec();
        content.extend_from_slice(kind.as_bytes());
        content.extend_from_slice(&[0, 0, 0, 1, 7]);
        format!("{kind} {}", STANDARD.encode(content))
    }

    #[test]
    fn public_keys_pass_with_or_without_a_comment_and_a_line_end() {
        for kind in ["ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "sk-ssh-ed25519@openssh.com"] {
            let key = key(kind);
            assert_eq!(checked(&key).unwrap(), key);
            let commented = format!("{key} me@example.org");
            assert_eq!(checked(&format!("{commented}\n")).unwrap(), commented);
        }
    }

    #[test]
    fn everything_else_is_refused_and_not_repeated() {
        let good = key("ssh-ed25519");
        let cases = [
            String::new(),
            "-----BEGIN OPENSSH PRIVATE KEY-----\nhush\n-----END OPENSSH PRIVATE KEY-----".to_owned(),
            "PuTTY-User-Key-File-3: ssh-ed25519\nhush".to_owned(),
            format!("{good}\n{good}"),
            good.replace("ssh-ed25519 ", "ssh-rsa "),
            good[..good.len() / 2].to_owned(),
            key("ssh-ed25519").replacen(
                &good[12..],
                &STANDARD.encode(b"\0\0\0\x0bssh-ed25519\0\0\0\x20cut"),
                1,
            ),
            "ssh-ed25519 hush".to_owned(),
            "ssh-ed25519".to_owned(),
        ];
        for case in cases {
            let error = checked(&case).unwrap_err();
            assert_eq!(error.code(), "invalid_input", "{case}");
            assert!(!format!("{error}{error:?}").contains("hush"));
        }
    }
}
