//! The client's settings and the options of calls.

use sandboxer::{
    AsyncSandboxer, Builder, CallOptions, Create, Dialect, Error, Limit, RequestOptions, Timeouts,
    models::User, stream::ByteBody,
};
use tokio::net::TcpListener;

use super::{long, secs};
use crate::builder_goldens_support::{
    book::{Book, call, plain, refused},
    peer::Mood,
};

/// Builds the client and makes one call.
async fn meet(builder: Builder) -> Result<User, Error> {
    builder.build()?.me().await
}

async fn drained(body: Result<ByteBody, Error>) -> Result<(), Error> {
    body?.collect(1 << 20).await.map(drop)
}

fn plain_http_client() -> reqwest::Client {
    let headers = [("x-own-client".parse().unwrap(), "1".parse().unwrap())].into_iter().collect();
    let builder = reqwest::Client::builder().no_proxy().default_headers(headers);
    builder.redirect(reqwest::redirect::Policy::none()).retry(reqwest::retry::never()).build().unwrap()
}

#[tokio::test]
async fn the_client_s_settings() {
    let mut book = Book::open("client").await;
    let (url, clock) = (book.peer.url.clone(), book.clock.shared());
    let other = url.replace("/api/v1", "/other");
    let builder = || {
        let builder = AsyncSandboxer::builder().ignore_env().no_proxy().api_key("sbx_live_1");
        builder.base_url(url.clone()).clock(clock.clone())
    };

    book.section("Builder: what goes with every request");
    plain!(book, meet(builder()).await);
    call!(book, meet(builder().api_key("sbx_live_2")).await);
    call!(book, meet(builder().base_url(other)).await);
    call!(book, meet(builder().org("team_1")).await);
    call!(book, meet(builder().default_header("X-Trace", "1")).await);
    call!(book, meet(builder().user_agent_suffix("my-agent/1.0")).await);
    call!(book, meet(builder().http_client(plain_http_client())).await);

    book.section("Builder: the other service");
    plain!(book, meet(builder().org("team_1")).await);
    call!(book, meet(builder().org("team_1").dialect(Dialect::Boat)).await);

    book.section("Builder: plain http beyond this machine");
    plain!(book, builder().base_url("http://192.0.2.1/api/v1").build());
    call!(book, builder().base_url("http://192.0.2.1/api/v1").allow_plain_http().build());

    book.section("Builder: how often a try is repeated");
    book.mood(Mood::Busy);
    plain!(book, meet(builder()).await);
    call!(book, meet(builder().retries(1)).await);
    call!(book, meet(builder().retries(0)).await);

    book.section("Builder: time limits of a silent service");
    book.mood(Mood::Hanging);
    plain!(book, meet(builder().retries(0)).await);
    call!(book, meet(builder().retries(0).attempt(secs(3))).await);
    call!(book, meet(builder().retries(0).total(secs(4))).await);
    call!(book, meet(builder().retries(0).timeouts(Timeouts::new().attempt(secs(5)))).await);
    call!(book, meet(builder().retries(0).timeouts(Timeouts::new().total(secs(6)))).await);

    book.section("Builder: time limits of a stream that falls silent");
    book.mood(Mood::Silent);
    let endless = || builder().attempt(Limit::Off).total(Limit::Off);
    let silent = Timeouts::new().attempt(Limit::Off).total(Limit::Off);
    plain!(book, drained(endless().build().unwrap().sandbox("bx_1").files().download("a").await).await);
    call!(
        book,
        drained(endless().idle(secs(7)).build().unwrap().sandbox("bx_1").files().download("a").await).await
    );
    call!(
        book,
        drained(
            builder()
                .timeouts(silent.idle(secs(8)))
                .build()
                .unwrap()
                .sandbox("bx_1")
                .files()
                .download("a")
                .await
        )
        .await
    );

    book.section("Builder: the time limit of a connection");
    book.mood(Mood::Hanging);
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mute_url = format!("https://{}", mute.local_addr().unwrap());
    let peer = book.peer.clone();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok(connection) = mute.accept().await {
            peer.connected();
            kept.push(connection);
        }
    });
    let secure = || builder().retries(0).base_url(mute_url.clone());
    plain!(book, meet(secure()).await);
    call!(book, meet(secure().connect(secs(2))).await);
    call!(book, meet(secure().timeouts(Timeouts::new().connect(secs(3)))).await);

    book.section("Builder: refusals");
    refused!(book, AsyncSandboxer::builder().ignore_env().build());
    refused!(book, builder().api_key("two words").build());
    refused!(book, builder().api_key("line\nbreak").build());
    refused!(book, builder().base_url("sandboxer.com").build());
    refused!(book, builder().base_url("ftp://sandboxer.com").build());
    refused!(book, builder().base_url("https://user:hush@sandboxer.com").build());
    refused!(book, builder().base_url("https://sandboxer.com?key=hush").build());
    refused!(book, builder().base_url("https://sandboxer.com#hush").build());
    refused!(book, builder().base_url("http://192.0.2.1").build());
    refused!(book, builder().org(" ").build());
    refused!(book, builder().org("a\nb").build());
    refused!(book, builder().default_header("Authorization", "Bearer hush").build());
    refused!(book, builder().default_header("X-Sandboxer-Org", "team_1").build());
    refused!(book, builder().default_header("content-type", "text/plain").build());
    refused!(book, builder().default_header("bad name", "1").build());
    refused!(book, builder().default_header("X-Trace", "a\r\nb: c").build());
    refused!(book, builder().user_agent_suffix("a\nb").build());
    refused!(book, builder().add_root_certificate("no certificate").build());
    refused!(book, builder().attempt(secs(0)).build());
    refused!(book, builder().total(secs(0)).build());
    refused!(book, builder().idle(secs(0)).build());
    refused!(book, builder().connect(secs(0)).build());
    refused!(book, builder().timeouts(Timeouts::new().attempt(secs(0))).build());
    book.close();
}

#[tokio::test]
async fn the_options_of_calls() {
    let mut book = Book::open("call_options").await;
    let client = book.client();

    book.section("CallOptions");
    plain!(book, client.with(CallOptions::new()).me().await);
    call!(book, client.with(CallOptions::new().org("team_1")).me().await);
    call!(book, client.with(CallOptions::new().header("X-Trace", "1")).me().await);
    call!(book, client.with(CallOptions::new().header("X-Trace", "1").header("x-trace", "2")).me().await);
    book.mood(Mood::Busy);
    plain!(book, client.with(CallOptions::new()).me().await);
    call!(book, client.with(CallOptions::new().retries(2)).me().await);
    book.mood(Mood::Hanging);
    plain!(book, client.with(CallOptions::new().retries(0)).me().await);
    call!(book, client.with(CallOptions::new().retries(0).attempt(secs(2))).me().await);
    call!(book, client.with(CallOptions::new().retries(0).total(secs(3))).me().await);
    book.mood(Mood::Silent);
    let endless = CallOptions::new().attempt(Limit::Off).total(Limit::Off);
    plain!(book, drained(client.with(endless.clone()).sandbox("bx_1").files().download("a").await).await);
    call!(
        book,
        drained(
            client
                .with(endless.clone())
                .with(CallOptions::new().idle(secs(4)))
                .sandbox("bx_1")
                .files()
                .download("a")
                .await
        )
        .await
    );
    book.mood(Mood::Normal);
    plain!(book, client.create(Create::new().wait(false)).await);
    call!(
        book,
        client.with(CallOptions::new().idempotency_key("key-1")).create(Create::new().wait(false)).await
    );

    book.section("Views of what a client gives out");
    let sandbox = client.sandbox("bx_1");
    plain!(book, sandbox.refresh().await);
    call!(book, sandbox.with(CallOptions::new().org("team_1")).refresh().await);
    plain!(book, client.api().me().await);
    call!(book, client.api().with(CallOptions::new().org("team_1")).me().await);
    let run = sandbox.prompt_run("p1");
    plain!(book, run.status().await);
    call!(book, run.with(CallOptions::new().org("team_1")).status().await);

    book.section("CallOptions: refusals");
    refused!(book, client.with(CallOptions::new().org("")).me().await);
    refused!(book, client.with(CallOptions::new().org("a\nb")).me().await);
    refused!(book, client.with(CallOptions::new().header("Authorization", "Bearer hush")).me().await);
    refused!(book, client.with(CallOptions::new().header("Idempotency-Key", "1")).me().await);
    refused!(book, client.with(CallOptions::new().header("Last-Event-ID", "1")).me().await);
    refused!(book, client.with(CallOptions::new().header("X-Sandboxer-Confirm-Delete", "bx_1")).me().await);
    refused!(book, client.with(CallOptions::new().header("Host", "example")).me().await);
    refused!(book, client.with(CallOptions::new().header("", "1")).me().await);
    refused!(book, client.with(CallOptions::new().header("bad name", "1")).me().await);
    refused!(book, client.with(CallOptions::new().header("X-Trace", "a\r\nb: c")).me().await);
    refused!(book, client.with(CallOptions::new().idempotency_key("")).create(Create::new()).await);
    refused!(book, client.with(CallOptions::new().idempotency_key("two words")).create(Create::new()).await);
    refused!(book, client.with(CallOptions::new().idempotency_key("\u{e4}")).create(Create::new()).await);
    refused!(book, client.with(CallOptions::new().idempotency_key(long(256))).create(Create::new()).await);
    refused!(book, client.with(CallOptions::new().attempt(secs(0))).me().await);
    refused!(book, client.with(CallOptions::new().idle(secs(0))).me().await);

    book.section("RequestOptions");
    let get = || http::Method::GET;
    plain!(book, client.api().request(get(), "/me", RequestOptions::new()).await);
    call!(book, client.api().request(get(), "/me", RequestOptions::new().query("q", "a b&c=d/\u{e4}")).await);
    call!(book, client.api().request(get(), "/me", RequestOptions::new().json(["a"])).await);
    call!(book, client.api().request(get(), "/me", RequestOptions::new().header("X-Trace", "1")).await);
    call!(book, client.api().request(get(), "/me", RequestOptions::new().header("Last-Event-ID", "1")).await);
    call!(
        book,
        client.api().request(get(), "/me", RequestOptions::new().header("Idempotency-Key", "k")).await
    );
    refused!(book, client.api().request(get(), "/../me", RequestOptions::new()).await);
    refused!(book, client.api().request(get(), "/a/%2e%2e/me", RequestOptions::new()).await);
    refused!(book, client.api().request(get(), "//example.com/me", RequestOptions::new()).await);
    refused!(book, client.api().request(get(), "https://example.com/me", RequestOptions::new()).await);
    refused!(book, client.api().request(get(), "/me\n", RequestOptions::new()).await);
    refused!(
        book,
        client.api().request(get(), "/me", RequestOptions::new().header("Authorization", "hush")).await
    );
    refused!(
        book,
        client.api().request(get(), "/me", RequestOptions::new().header("Idempotency-Key", "")).await
    );
    refused!(
        book,
        client
            .api()
            .request(
                get(),
                "/me",
                RequestOptions::new().json(std::collections::BTreeMap::from([((1, 2), 3)]))
            )
            .await
    );
    book.close();
}
