//! Where an SSH client is told, in its own protocol, that nobody can sign in.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const IDENTIFICATION: &[u8] = b"SSH-2.0-SandboxerLocal\r\n";
const REASON: &[u8] = b"the local server keeps the key but runs no SSH server; run commands over the API";

/// The message that ends a connection, and its reason `by application` (RFC 4253, section 11.1).
const DISCONNECT: u8 = 1;
const BY_APPLICATION: u32 = 11;

/// The most that is read of what the client says meanwhile.
const LISTENED: u64 = 64 << 10;

/// Says so and hangs up.
pub(super) async fn turn_away(mut stream: TcpStream) {
    let said = async {
        stream.write_all(IDENTIFICATION).await?;
        stream.write_all(&farewell()).await?;
        stream.shutdown().await?;
        // Hanging up on what was not read yet would take the message back.
        let mut sink = tokio::io::sink();
        tokio::io::copy(&mut (&mut stream).take(LISTENED), &mut sink).await
    };
    if let Err(error) = said.await {
        tracing::debug!(%error, "an SSH client went away");
    }
}

/// The message as an unencrypted packet: its length, that of its padding, what it says, the padding.
fn farewell() -> Vec<u8> {
    let mut payload = vec![DISCONNECT];
    payload.extend_from_slice(&BY_APPLICATION.to_be_bytes());
    for text in [REASON, b"en"] {
        payload.extend_from_slice(&u32::try_from(text.len()).unwrap_or_default().to_be_bytes());
        payload.extend_from_slice(text);
    }
    // At least four bytes, and the whole a multiple of eight.
    let padding = 4 + (8 - (4 + 1 + payload.len() + 4) % 8) % 8;
    let mut packet = Vec::new();
    packet.extend_from_slice(&u32::try_from(1 + payload.len() + padding).unwrap_or_default().to_be_bytes());
    packet.push(u8::try_from(padding).unwrap_or_default());
    packet.extend_from_slice(&payload);
    packet.resize(packet.len() + padding, 0);
    packet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_packet_is_well_formed() {
        let packet = farewell();
        assert!(packet.len().is_multiple_of(8));
        assert_eq!(u32::from_be_bytes(packet[..4].try_into().unwrap()) as usize, packet.len() - 4);
        assert!(packet[4] >= 4);
        assert_eq!(packet[5], DISCONNECT);
        assert_eq!(&packet[14..14 + REASON.len()], REASON);
    }
}
