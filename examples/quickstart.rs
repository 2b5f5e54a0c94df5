//! The main job, step by step: on the hosted service if `SANDBOXER_API_KEY` is set, else on a local one.

use std::{io::Write as _, time::Duration};

use sandboxer::{AsyncSandbox, AsyncSandboxer, Command, Create, Fork, Result, Resume};
use sandboxer_mock_server::MockServer;

const COUNT: &str = "import time
for number in range(1, 4):
    print('python counts', number, flush=True)
    time.sleep(0.2)
";

#[tokio::main]
async fn main() -> Result<()> {
    // The local server lives as long as this variable.
    let (_server, client) = match std::env::var("SANDBOXER_API_KEY") {
        Ok(key) if !key.is_empty() => (None, AsyncSandboxer::from_env()?),
        _ => {
            let server = MockServer::start();
            let client = server.client();
            (Some(server), client)
        }
    };
    println!("1. a sandbox on {}", client.api().base_url());
    let sandbox = client.create(Create::new().ttl(Duration::from_secs(600)).name("quickstart")).await?;
    println!("   {} is ready", sandbox.id());
    // Deleted whatever `tour` comes to; `client.scoped(...)` does the same in one step, panics and cancellation included.
    let done = tour(&sandbox).await;
    println!("9. delete it");
    let deleted = sandbox.delete().await;
    done.and(deleted.map(drop))
}

async fn tour(sandbox: &AsyncSandbox) -> Result<()> {
    println!("2. an argument list, passed on as it is, and a shell line");
    let output = sandbox.exec(["printf", "%s\n", "two  words", "$HOME"]).await?.check()?;
    print!("{}", output.stdout_text());
    let output = sandbox
        .exec(Command::shell("echo $GREETING from $(pwd)").cwd("/tmp").env("GREETING", "hello"))
        .await?;
    print!("{}", output.check()?.stdout_text());

    println!("3. output as it is written");
    stream(sandbox, "for i in 1 2 3; do echo sh counts $i; sleep 0.2; done").await?;
    if sandbox.exec("command -v python3").await?.success() {
        stream(sandbox, ["python3", "-c", COUNT]).await?;
    }

    println!("4. a file in and out");
    sandbox.files().write("notes/today.txt", "written by the client\n").await?;
    sandbox.exec("echo changed in the sandbox >> notes/today.txt").await?.check()?;
    print!("{}", sandbox.files().read("notes/today.txt").await?);

    println!("5. a background command, followed to its end");
    let command = sandbox.start("for i in 1 2 3; do echo working $i; sleep 0.2; done; exit 3").await?;
    let mut attach = command.attach().await?;
    while let Some(chunk) = attach.next().await {
        print!("{}", chunk?.text());
    }
    println!("   {}", attach.wait().await?.outcome());

    println!("6. stop it: the machine goes, the disk stays");
    sandbox.stop().await?;
    println!("7. resume it");
    sandbox.resume(Resume::new()).await?;
    print!("{}", sandbox.files().read("notes/today.txt").await?);

    println!("8. fork it: a copy with a disk of its own");
    let copy = sandbox.fork(Fork::new()).await?;
    copy.exec("echo only in the copy >> notes/today.txt").await?.check()?;
    println!("   {} lines in the copy", copy.files().read("notes/today.txt").await?.lines().count());
    println!("   {} lines in the original", sandbox.files().read("notes/today.txt").await?.lines().count());
    copy.delete().await?;
    Ok(())
}

async fn stream(sandbox: &AsyncSandbox, command: impl Into<Command>) -> Result<()> {
    let mut run = sandbox.exec_stream(command).await?;
    while let Some(chunk) = run.next().await {
        print!("{}", chunk?.text());
        std::io::stdout().flush().ok();
    }
    println!("   {}", run.wait().await?.check()?.outcome());
    Ok(())
}
