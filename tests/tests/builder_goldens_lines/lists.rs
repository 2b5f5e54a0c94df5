//! Finding sandboxes.

use sandboxer::{AsyncSandbox, Create, ListOptions};

use crate::builder_goldens_support::book::{Book, call, plain, refused};

#[tokio::test]
async fn lists() {
    let mut book = Book::open("list").await;
    let client = book.client();

    book.section("ListOptions");
    plain!(book, client.list(ListOptions::new()).collect().await);
    call!(book, client.list(ListOptions::new().state("ready")).collect().await);
    call!(book, client.list(ListOptions::new().state("ready").state("idle")).collect().await);
    call!(book, client.list(ListOptions::new().limit(7)).collect().await);
    call!(book, client.list(ListOptions::new().limit(0)).collect().await);
    call!(book, client.list(ListOptions::new().sort("asc")).collect().await);
    call!(book, client.list(ListOptions::new().org("team_1")).collect().await);
    call!(book, client.list(ListOptions::new().cursor("c/1=")).collect().await);
    refused!(book, client.list(ListOptions::new().state("")).collect().await);
    refused!(book, client.list(ListOptions::new().state("ready,idle")).collect().await);
    refused!(book, client.list(ListOptions::new().sort("")).collect().await);
    refused!(book, client.list(ListOptions::new().org("")).collect().await);
    refused!(book, client.list(ListOptions::new().cursor("")).collect().await);

    book.section("Through the default client");
    sandboxer::AsyncSandboxer::set_shared(client.clone());
    plain!(book, AsyncSandbox::create(Create::new()).await);
    call!(book, AsyncSandbox::create(Create::new().kind("small")).await);
    plain!(book, AsyncSandbox::get("bx_1").await);
    call!(book, AsyncSandbox::get("bx_2").await);
    plain!(book, AsyncSandbox::connect("bx_1").unwrap().refresh().await);
    call!(book, AsyncSandbox::connect("bx_2").unwrap().refresh().await);
    plain!(book, AsyncSandbox::list(ListOptions::new()).collect().await);
    call!(book, AsyncSandbox::list(ListOptions::new().state("ready")).collect().await);
    refused!(book, AsyncSandbox::get("..").await);
    refused!(book, AsyncSandbox::list(ListOptions::new().cursor("")).collect().await);
    book.close();
}
