//! Waits, whose limits are what they are told.

use sandboxer::models::SandboxState;

use super::millis;
use crate::builder_goldens_support::{
    book::{Book, call, plain, refused},
    peer::Mood,
};

#[tokio::test]
async fn waits() {
    let mut book = Book::open("waits").await;
    let client = book.client();
    let sandbox = client.sandbox("bx_1");

    book.section("Waits for what comes");
    plain!(book, sandbox.wait_for_state(&[SandboxState::Ready], None).await);
    book.section("Waits for what does not come");
    book.mood(Mood::Slow);
    plain!(book, sandbox.wait_for_state(&[SandboxState::Ready], Some(millis(50))).await);
    call!(book, sandbox.wait_for_state(&[SandboxState::Idle, SandboxState::Running], Some(millis(50))).await);
    call!(book, sandbox.wait_for_state(&[SandboxState::Ready], Some(millis(5))).await);
    plain!(book, sandbox.wait_until_idle(Some(millis(50))).await);
    call!(book, sandbox.wait_until_idle(Some(millis(5))).await);
    plain!(book, sandbox.wait_for_setup(Some(millis(2500))).await);
    call!(book, sandbox.wait_for_setup(Some(millis(4700))).await);
    plain!(book, sandbox.wait_for_stop("stop_1", Some(millis(2500))).await);
    call!(book, sandbox.wait_for_stop("stop_2", Some(millis(2500))).await);
    call!(book, sandbox.wait_for_stop("stop_1", Some(millis(4700))).await);
    plain!(book, client.wait_for_deletion("bdop_1", Some(millis(2500))).await);
    call!(book, client.wait_for_deletion("bdop_2", Some(millis(2500))).await);
    call!(book, client.wait_for_deletion("bdop_1", Some(millis(4700))).await);

    book.section("Waits: refusals");
    refused!(book, sandbox.wait_for_state(&[], None).await);
    refused!(book, sandbox.wait_for_stop("", None).await);
    refused!(book, sandbox.wait_for_stop("..", None).await);
    refused!(book, client.wait_for_deletion("", None).await);
    book.close();
}
