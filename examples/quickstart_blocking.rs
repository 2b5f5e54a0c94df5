//! The main job, step by step and without async: on the hosted service if `SANDBOXER_API_KEY` is set, else on a local one.

use std::{io::Write as _, time::Duration};

use sandboxer_blocking::{Command, Create, Fork, Result, Resume, Sandbox, Sandboxer};
use sandboxer_mock_server::MockServer;

const COUNT: &str = "import time
for number in range(1, 4):
    print('python counts', number, flush=True)
    time.sleep(0.2)
";

fn main() -> Result<()> {
    // The local server lives as long as this variable.
    let (_server, client) = match std::env::var("SANDBOXER_API_KEY") {
        Ok(key) if !key.is_empty() => (None, Sandboxer::from_env()?),
        _ => {
            let server = MockServer::start();
            let client = Sandboxer::from_async(server.client());
            (Some(server), client)
        }
    };
    println!("1. a sandbox on {}", client.api().base_url());
    let sandbox = client.create(Create::new().ttl(Duration::from_secs(600)).name("quickstart"))?;
    println!("   {} is ready", sandbox.id());
    // Deleted whatever `tour` comes to; `client.scoped(...)` does the same in one step, panics included.
    let done = tour(&sandbox);
    println!("9. delete it");
    let deleted = sandbox.delete();
    done.and(deleted.map(drop))
}

fn tour(sandbox: &Sandbox) -> Result<()> {
    println!("2. an argument list, passed on as it is, and a shell line");
    let output = sandbox.exec(["printf", "%s\n", "two  words", "$HOME"])?.check()?;
    print!("{}", output.stdout_text());
    let output =
        sandbox.exec(Command::shell("echo $GREETING from $(pwd)").cwd("/tmp").env("GREETING", "hello"))?;
    print!("{}", output.check()?.stdout_text());

    println!("3. output as it is written");
    stream(sandbox, "for i in 1 2 3; do echo sh counts $i; sleep 0.2; done")?;
    if sandbox.exec("command -v python3")?.success() {
        stream(sandbox, ["python3", "-c", COUNT])?;
    }

    println!("4. a file in and out");
    sandbox.files().write("notes/today.txt", "written by the client\n")?;
    sandbox.exec("echo changed in the sandbox >> notes/today.txt")?.check()?;
    print!("{}", sandbox.files().read("notes/today.txt")?);

    println!("5. a background command, followed to its end");
    let command = sandbox.start("for i in 1 2 3; do echo working $i; sleep 0.2; done; exit 3")?;
    let mut attach = command.attach()?;
    for chunk in &mut attach {
        print!("{}", chunk?.text());
    }
    println!("   {}", attach.wait()?.outcome());

    println!("6. stop it: the machine goes, the disk stays");
    sandbox.stop()?;
    println!("7. resume it");
    sandbox.resume(Resume::new())?;
    print!("{}", sandbox.files().read("notes/today.txt")?);

    println!("8. fork it: a copy with a disk of its own");
    let copy = sandbox.fork(Fork::new())?;
    copy.exec("echo only in the copy >> notes/today.txt")?.check()?;
    println!("   {} lines in the copy", copy.files().read("notes/today.txt")?.lines().count());
    println!("   {} lines in the original", sandbox.files().read("notes/today.txt")?.lines().count());
    copy.delete()?;
    Ok(())
}

fn stream(sandbox: &Sandbox, command: impl Into<Command>) -> Result<()> {
    let mut run = sandbox.exec_stream(command)?;
    for chunk in &mut run {
        print!("{}", chunk?.text());
        std::io::stdout().flush().ok();
    }
    println!("   {}", run.wait()?.check()?.outcome());
    Ok(())
}
