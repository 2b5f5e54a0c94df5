//! Prompts, conversations and events.

use futures_util::future::{Either, select};
use sandboxer::{Error, EventMode, EventOptions, EventStream, Prompt};

use super::{millis, secs};
use crate::builder_goldens_support::{
    book::{Book, call, plain, refused},
    peer::{Mood, Peer},
};

/// Takes events until the peer was asked so often.
async fn asked(peer: &Peer, times: usize, stream: Result<EventStream, Error>) -> Result<(), Error> {
    let mut stream = stream?;
    let enough = async {
        while peer.seen().len() < times {
            tokio::task::yield_now().await;
        }
    };
    let taking = async {
        while let Some(event) = stream.next().await {
            event?;
        }
        Ok(())
    };
    match select(Box::pin(taking), Box::pin(enough)).await {
        Either::Left((ended, _)) => ended,
        Either::Right(_) => Ok(()),
    }
}

#[tokio::test]
async fn agents() {
    let mut book = Book::open("agents").await;
    let (client, peer) = (book.client(), book.peer.clone());
    let sandbox = client.sandbox("bx_1");

    book.section("Prompt");
    plain!(book, sandbox.prompt(Prompt::new("fix it")).await);
    call!(book, sandbox.prompt(Prompt::new("fix it").provider("codex")).await);
    call!(book, sandbox.prompt(Prompt::new("fix it").model("some-model")).await);
    call!(book, sandbox.prompt(Prompt::new("fix it").reasoning_effort("high")).await);
    call!(book, sandbox.prompt(Prompt::new("fix it").fast(true)).await);
    call!(book, sandbox.prompt(Prompt::new("fix it").fast(false)).await);
    call!(book, sandbox.prompt(Prompt::new("fix it").new_conversation()).await);
    call!(book, sandbox.prompt(Prompt::new("fix it").conversation("c1")).await);
    refused!(book, sandbox.prompt("").await);
    refused!(book, sandbox.prompt(Prompt::new("fix it").provider("")).await);
    refused!(book, sandbox.prompt(Prompt::new("fix it").model(" ")).await);
    refused!(book, sandbox.prompt(Prompt::new("fix it").reasoning_effort("")).await);
    refused!(book, sandbox.prompt(Prompt::new("fix it").conversation("")).await);
    refused!(book, sandbox.prompt(Prompt::new("fix it").new_conversation().conversation("c1")).await);

    book.section("Runs and conversations");
    let run = sandbox.prompt_run("p1");
    plain!(book, sandbox.prompt_run("p1").status().await);
    call!(book, sandbox.prompt_run("p2").status().await);
    plain!(book, run.steer("go on").await);
    call!(book, run.steer("stop that").await);
    plain!(book, run.interrupt().await);
    plain!(book, sandbox.steer("go on", None).await);
    call!(book, sandbox.steer("stop that", None).await);
    call!(book, sandbox.steer("go on", Some("c1")).await);
    plain!(book, sandbox.interrupt_all().await);
    call!(book, sandbox.interrupt("c1").await);
    book.mood(Mood::Slow);
    plain!(book, run.wait_for(millis(50)).await);
    call!(book, run.wait_for(millis(5)).await);
    refused!(book, sandbox.prompt_run("").status().await);
    refused!(book, sandbox.prompt_run("..").status().await);
    refused!(book, run.steer("").await);
    refused!(book, sandbox.steer("", None).await);
    refused!(book, sandbox.steer("go on", Some("")).await);
    refused!(book, sandbox.interrupt("").await);
    refused!(book, sandbox.interrupt(" ").await);

    book.section("EventOptions");
    plain!(book, asked(&peer, 1, sandbox.events(EventOptions::new())).await);
    call!(book, asked(&peer, 1, sandbox.events(EventOptions::new().mode(EventMode::Poll))).await);
    call!(book, asked(&peer, 2, sandbox.events(EventOptions::new().from_start(false))).await);
    call!(book, asked(&peer, 1, sandbox.events(EventOptions::new().cursor("MTpl"))).await);
    call!(book, asked(&peer, 1, sandbox.events(EventOptions::new().kind("prompt"))).await);
    call!(book, asked(&peer, 1, sandbox.events(EventOptions::new().kind("prompt").kind("response"))).await);
    call!(book, asked(&peer, 1, sandbox.events(EventOptions::new().conversation("c1"))).await);
    plain!(book, asked(&peer, 3, sandbox.events(EventOptions::new().mode(EventMode::Poll))).await);
    call!(
        book,
        asked(
            &peer,
            3,
            sandbox.events(EventOptions::new().mode(EventMode::Poll).poll_interval(millis(1500)))
        )
        .await
    );
    call!(
        book,
        asked(&peer, 3, sandbox.events(EventOptions::new().mode(EventMode::Poll).follow(false))).await
    );
    call!(
        book,
        asked(&peer, 1, sandbox.events(EventOptions::new().mode(EventMode::Poll).kind("prompt"))).await
    );
    call!(
        book,
        asked(&peer, 1, sandbox.events(EventOptions::new().mode(EventMode::Poll).conversation("c1"))).await
    );
    call!(
        book,
        asked(&peer, 1, sandbox.events(EventOptions::new().mode(EventMode::Poll).cursor("MTpl"))).await
    );
    refused!(book, asked(&peer, 1, sandbox.events(EventOptions::new().cursor(""))).await);
    refused!(book, asked(&peer, 1, sandbox.events(EventOptions::new().cursor("x".repeat(4097)))).await);
    refused!(book, asked(&peer, 1, sandbox.events(EventOptions::new().kind(""))).await);
    refused!(book, asked(&peer, 1, sandbox.events(EventOptions::new().kind("prompt,response"))).await);
    refused!(book, asked(&peer, 1, sandbox.events(EventOptions::new().conversation(" "))).await);
    refused!(book, asked(&peer, 1, sandbox.events(EventOptions::new().poll_interval(secs(0)))).await);
    refused!(book, asked(&peer, 1, sandbox.events(EventOptions::new().poll_interval(millis(99)))).await);

    book.section("Events of a run");
    let fresh = || sandbox.prompt_run("p1");
    plain!(book, asked(&peer, 2, fresh().events_with(EventOptions::new())).await);
    refused!(book, asked(&peer, 1, run.events_with(EventOptions::new().cursor(""))).await);
    book.close();
}
