//! Ports, SSH keys and desktops.

use sandboxer::{Desktop, Host};

use super::{long, millis, secs};
use crate::builder_goldens_support::{
    book::{Book, call, plain, refused},
    peer::Mood,
};

const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f me@example.org";

#[tokio::test]
async fn ways_into_sandboxes() {
    let mut book = Book::open("ways_in").await;
    let client = book.client();
    let sandbox = client.sandbox("bx_1");

    book.section("Host");
    plain!(book, sandbox.host(3000).await);
    call!(book, sandbox.host(65_535).await);
    plain!(book, sandbox.host_with(3000, Host::new()).await);
    call!(book, sandbox.host_with(3001, Host::new()).await);
    call!(book, sandbox.host_with(3000, Host::new().public(true)).await);
    call!(book, sandbox.host_with(3000, Host::new().public(false)).await);
    call!(book, sandbox.host_with(3000, Host::new().localhost(true)).await);
    call!(book, sandbox.host_with(3000, Host::new().title("preview")).await);
    plain!(book, sandbox.unhost(3000).await);
    call!(book, sandbox.unhost(3001).await);
    refused!(book, sandbox.host(0).await);
    refused!(book, sandbox.unhost(0).await);
    refused!(book, sandbox.host_with(3000, Host::new().title("")).await);
    refused!(book, sandbox.host_with(3000, Host::new().title(long(201))).await);

    book.section("SSH keys");
    plain!(book, sandbox.ssh_key(KEY).await);
    refused!(book, sandbox.ssh_key("").await);
    refused!(book, sandbox.ssh_key("-----BEGIN OPENSSH PRIVATE KEY-----\nhush").await);
    refused!(book, sandbox.ssh_key("ssh-ed25519").await);
    refused!(book, sandbox.ssh_key("ssh-ed25519 hush").await);
    refused!(book, sandbox.ssh_key(&format!("{KEY}\n{KEY}")).await);

    book.section("Desktop");
    plain!(book, sandbox.desktop(Desktop::new()).await);
    call!(book, sandbox.desktop(Desktop::new().theme("dark")).await);
    call!(book, sandbox.desktop(Desktop::new().public(true)).await);
    call!(book, sandbox.desktop(Desktop::new().vnc(false)).await);
    book.mood(Mood::Slow);
    plain!(book, sandbox.desktop(Desktop::new().wait_limit(millis(2500))).await);
    call!(book, sandbox.desktop(Desktop::new().wait_limit(millis(4700))).await);
    refused!(book, sandbox.desktop(Desktop::new().theme("")).await);
    refused!(book, sandbox.desktop(Desktop::new().wait_limit(secs(0))).await);
    book.close();
}
