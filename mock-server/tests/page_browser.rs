//! The page for people in a real browser, if there is one here.

#![allow(clippy::print_stderr, reason = "a test that does nothing here says why")]

use std::{
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::Duration,
};

use sandboxer::{
    Create,
    clock::{Clock as _, SystemClock},
};
use sandboxer_mock_server::MockServer;
use tokio::process::Command;

/// No look takes longer unless something hangs.
const GUARD: Duration = Duration::from_secs(120);

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

/// Opens an address without a screen.
async fn open(browser: &Path, home: &Path, arguments: &[&str], address: &str) -> Output {
    let mut command = Command::new(browser);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        // Says what the page's own script and its policy complain about.
        .args(["--enable-logging=stderr", "--window-size=1280,1600", "--virtual-time-budget=5000"])
        .arg(format!("--user-data-dir={}", home.join("profile").display()))
        .args(arguments)
        .arg(address)
        .env("HOME", home)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    tokio::select! {
        output = command.output() => output.unwrap(),
        () = SystemClock::new().sleep(GUARD) => panic!("the browser hangs"),
    }
}

/// What the page holds once its script has run for a while.
async fn document(browser: &Path, home: &Path, address: &str) -> String {
    let Output { status, stdout, stderr } = open(browser, home, &["--dump-dom"], address).await;
    let said = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{said}");
    let complaints: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    String::from_utf8(stdout).unwrap()
}

/// The value of the first attribute of this name after a mark.
#[track_caller]
fn attribute<'a>(page: &'a str, mark: &str, name: &str) -> &'a str {
    let after = page.split_once(mark).unwrap_or_else(|| panic!("{mark} is not in {page}")).1;
    let value = after.split_once(&format!("{name}=\"")).unwrap_or_else(|| panic!("no {name} in {after}")).1;
    value.split('"').next().unwrap()
}

#[tokio::test]
async fn a_browser_shows_it_and_keeps_it_up_to_date() {
    let Some(browser) = browser() else {
        eprintln!("skipped: no chromium is installed, so the page is not looked at in a browser");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let server = MockServer::start();
    let client = server.client();
    let sandbox = client.create(Create::new()).await.unwrap();
    let id = sandbox.id().to_string();
    sandbox.exec("echo '<script>document.title = \"taken over\"</script><b id=planted>'").await.unwrap();
    let ticking = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); echo tick $i; sleep 0.02; done";
    let _command = sandbox.start(ticking).await.unwrap();
    let address = format!("{}&sandbox={id}", server.page_url());

    let page = document(&browser, home.path(), &address).await;
    let (loaded, latest) =
        (attribute(&page, "<body", "data-loaded"), attribute(&page, "id=\"as-of\"", "datetime"));
    assert!(latest > loaded, "loaded at {loaded}, shown of {latest}");
    assert!(page.contains("tick 1\n") && page.contains("id=\"live\""), "{page}");
    assert!(!page.contains("id=\"updating\" hidden"), "the script says that it is at work");
    assert!(!page.contains("<title>taken over") && !page.contains("<b id"), "{page}");

    // Everything that can be used is a link, a field or a box that takes the focus.
    for mouse_only in ["onclick", "<div role=\"button\"", "tabindex=\"-1\" href"] {
        assert!(!page.contains(mouse_only), "{mouse_only}");
    }

    let picture = home.path().join("page.png");
    let argument = format!("--screenshot={}", picture.display());
    let seen = open(&browser, home.path(), &[&argument], &address).await;
    assert!(seen.status.success(), "{}", String::from_utf8_lossy(&seen.stderr));
    let bytes = std::fs::read(&picture).unwrap();
    assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 20_000, "{} bytes", bytes.len());
}
