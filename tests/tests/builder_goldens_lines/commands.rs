//! Running commands, and what is known of them.

use sandboxer::{
    AsyncSandboxer, CallOptions, Command, Dialect, Error, ExecStream, HistoryOptions, MetricsWindow, Offsets,
    models::CommandStatusParams, stream::OutputStream,
};

use super::{long, millis, secs};
use crate::builder_goldens_support::book::{Book, call, plain, refused};

async fn ended(stream: Result<ExecStream, Error>) -> Result<(), Error> {
    stream?.wait().await.map(drop)
}

#[tokio::test]
async fn commands() {
    let mut book = Book::open("commands").await;
    let client = book.client();
    let sandbox = client.sandbox("bx_1");

    book.section("Command");
    plain!(book, sandbox.exec(Command::shell("make test")).await);
    call!(book, sandbox.exec(Command::argv(["make", "my target", "it's"])).await);
    call!(book, sandbox.exec(Command::shell("make test").cwd("app")).await);
    call!(book, sandbox.exec(Command::shell("make test").env("CI", "1")).await);
    call!(book, sandbox.exec(Command::shell("make test").envs([("CI", "1"), ("DEBUG", "0")])).await);
    call!(book, sandbox.exec(Command::shell("make test").timeout(secs(120))).await);
    call!(book, sandbox.exec(Command::shell("make test").timeout(millis(1500))).await);
    call!(book, sandbox.exec(Command::shell("make test").timeout(secs(600))).await);
    call!(book, sandbox.with(CallOptions::new().total(secs(10))).exec(Command::shell("make test")).await);
    call!(book, sandbox.start(Command::shell("make test")).await);
    call!(book, ended(sandbox.exec_stream(Command::shell("make test")).await).await);
    plain!(book, sandbox.run(Command::shell("make")).await);
    call!(book, sandbox.run(Command::shell("make").cwd("app")).await);
    call!(book, sandbox.run(Command::shell("make").env("CI", "1")).await);
    plain!(book, sandbox.start(Command::shell("serve")).await);
    call!(book, sandbox.start(Command::shell("serve").cwd("app")).await);
    call!(book, sandbox.start(Command::shell("serve").env("CI", "1")).await);
    call!(book, sandbox.start(Command::shell("serve").timeout(secs(5))).await);
    plain!(book, ended(sandbox.exec_stream(Command::shell("make")).await).await);
    call!(book, ended(sandbox.exec_stream(Command::shell("make").cwd("app")).await).await);
    call!(book, ended(sandbox.exec_stream(Command::shell("make").env("CI", "1")).await).await);
    call!(book, ended(sandbox.exec_stream(Command::shell("make").timeout(secs(5))).await).await);

    book.section("Command: refusals");
    refused!(book, sandbox.exec("").await);
    refused!(book, sandbox.exec(" \n").await);
    refused!(book, sandbox.exec("a\0b").await);
    refused!(book, sandbox.exec(long((1 << 20) + 1)).await);
    refused!(book, sandbox.exec(Command::argv(Vec::<String>::new())).await);
    refused!(book, sandbox.exec(Command::argv([""])).await);
    refused!(book, sandbox.exec(Command::argv(["a", "b\0"])).await);
    refused!(book, sandbox.exec(Command::shell("make").cwd("")).await);
    refused!(book, sandbox.exec(Command::shell("make").cwd("a\0b")).await);
    refused!(book, sandbox.exec(Command::shell("make").cwd(long(4097))).await);
    refused!(book, sandbox.exec(Command::shell("make").env("9A", "1")).await);
    refused!(book, sandbox.exec(Command::shell("make").env("A", "hush\0")).await);
    refused!(book, sandbox.exec(Command::shell("make").env("SANDBOXER_TOKEN", "hush")).await);
    refused!(book, sandbox.exec(Command::shell("make").env("A", long(65_536))).await);
    refused!(book, sandbox.exec(Command::shell("make").timeout(secs(0))).await);
    refused!(book, sandbox.exec(Command::shell("make").timeout(millis(999))).await);
    refused!(book, sandbox.exec(Command::shell("make").timeout(millis(600_001))).await);
    refused!(book, sandbox.with(CallOptions::new().total(millis(999))).exec("make").await);
    refused!(book, ended(sandbox.exec_stream("").await).await);
    refused!(book, sandbox.start("").await);
    refused!(book, sandbox.run("").await);

    book.section("Command, of the other service");
    let boat: AsyncSandboxer = book.builder().dialect(Dialect::Boat).build().unwrap();
    plain!(book, boat.sandbox("bx_1").exec(Command::shell("make test")).await);
    call!(book, boat.sandbox("bx_1").exec(Command::shell("make test").env("CI", "it's")).await);
    refused!(book, boat.sandbox("bx_1").exec(Command::shell("make").env("BOAT_ID", "1")).await);

    book.section("A command in the background");
    plain!(book, sandbox.command(7).status(CommandStatusParams::new()).await);
    call!(book, sandbox.command(8).status(CommandStatusParams::new()).await);
    call!(book, sandbox.command(7).status(CommandStatusParams::new().tail_bytes(100)).await);
    call!(book, sandbox.command(7).status(CommandStatusParams::new().stdout_offset(5)).await);
    plain!(book, sandbox.command(7).attach().await);
    call!(book, sandbox.command(7).attach_from(Offsets::new(5, 6)).await);
    plain!(book, sandbox.command(7).kill().await);
    plain!(book, sandbox.command(7).logs(OutputStream::Stdout).collect(100).await);
    call!(book, sandbox.command(7).logs(OutputStream::Stderr).collect(100).await);
    call!(book, sandbox.command(7).logs_from(OutputStream::Stdout, 9).collect(100).await);
    refused!(book, sandbox.command(0).status(CommandStatusParams::new()).await);
    refused!(book, sandbox.command(-1).kill().await);
    refused!(book, sandbox.command(0).attach().await);
    refused!(book, sandbox.command(7).status(CommandStatusParams::new().tail_bytes(0)).await);
    refused!(book, sandbox.command(7).status(CommandStatusParams::new().stdout_offset(-1)).await);

    book.section("HistoryOptions");
    plain!(book, sandbox.history(HistoryOptions::new()).collect().await);
    call!(book, sandbox.history(HistoryOptions::new().mode("stream")).collect().await);
    call!(book, sandbox.history(HistoryOptions::new().mode("stream").mode("detached")).collect().await);
    call!(book, sandbox.history(HistoryOptions::new().commands()).collect().await);
    call!(book, sandbox.history(HistoryOptions::new().query("pytest -x")).collect().await);
    call!(book, sandbox.history(HistoryOptions::new().limit(7)).collect().await);
    call!(book, sandbox.history(HistoryOptions::new().cursor("c1")).collect().await);
    call!(book, sandbox.history(HistoryOptions::new().limit(0)).collect().await);
    refused!(book, sandbox.history(HistoryOptions::new().mode("")).collect().await);
    refused!(book, sandbox.history(HistoryOptions::new().mode("sync,stream")).collect().await);
    refused!(book, sandbox.history(HistoryOptions::new().query(long(201))).collect().await);
    refused!(book, sandbox.history(HistoryOptions::new().cursor("")).collect().await);

    book.section("Metrics");
    plain!(book, sandbox.metrics(MetricsWindow::Hour).await);
    call!(book, sandbox.metrics(MetricsWindow::Day).await);
    call!(book, sandbox.metrics(MetricsWindow::Week).await);
    plain!(book, client.metrics_summary(MetricsWindow::Hour, &[]).await);
    call!(book, client.metrics_summary(MetricsWindow::Day, &[]).await);
    call!(book, client.metrics_summary(MetricsWindow::Hour, &["bx_1", "bx_2"]).await);
    refused!(book, client.metrics_summary(MetricsWindow::Hour, &[""]).await);
    refused!(book, client.metrics_summary(MetricsWindow::Hour, &["bx_1,bx_2"]).await);
    book.close();
}
