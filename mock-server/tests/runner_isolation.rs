//! What a command of the `isolated` runner cannot do, tried from inside; passes as root and as an ordinary user.

mod runner_support;

use std::{fs, io::Read as _, process::Stdio, time::Duration};

use runner_support::*;
use sandboxer::clock::{Clock as _, SystemClock};
use sandboxer_mock_server::runner::{Network, RunnerKind, RunnerOptions, SANDBOX_ID};

async fn isolated() -> Option<Bench> {
    Bench::new(RunnerKind::Isolated).await
}

#[tokio::test]
async fn commands_are_the_user_called_user() {
    let Some(bench) = isolated().await else { return };
    let space = bench.space("one").await;
    let done = bench.sh(&space, "id -un; id -gn; whoami; id -u; cd; pwd; hostname; id -G").await;
    let id = SANDBOX_ID.to_string();
    assert_eq!(
        done.stdout.lines().take(6).collect::<Vec<_>>(),
        ["user", "user", "user", &id, "/home/user", "sandbox"]
    );
    let done = bench
        .sh(
            &space,
            "touch home-file /tmp/tmp-file /dev/shm/shm-file && stat -c %U:%G home-file /tmp/tmp-file",
        )
        .await;
    assert_eq!(done.stdout, "user:user\nuser:user\n", "{done:?}");
    use std::os::unix::fs::MetadataExt as _;
    let made = fs::metadata(space.home().join("home-file")).unwrap();
    assert_ne!(made.uid(), 0, "files must not belong to the host's root");
    if let Some(owner) = bench.runner.owner() {
        assert_eq!((made.uid(), made.gid()), (owner.uid, owner.gid));
    }
    bench.runner.shutdown().await;
}

#[tokio::test]
async fn commands_have_no_privilege_and_cannot_get_one() {
    let Some(bench) = isolated().await else { return };
    let space = bench.space("one").await;
    let status = bench.sh(&space, "cat /proc/self/status").await.stdout;
    let field = |name: &str| {
        let line =
            status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}"));
        line.trim_start_matches(':').trim().to_owned()
    };
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(field(set), "0".repeat(16), "{set}");
    }
    assert_eq!(field("NoNewPrivs"), "1");
    if bench.runner.owner().is_some() {
        assert_eq!(field("Groups"), "");
    }

    // A user namespace of its own gives a command privileges over that namespace and over nothing else.
    for attempt in [
        "mount -o remount,rw /",
        "mount -o remount,bind,rw /usr && touch /usr/x",
        "umount /home",
        "umount -l /tmp",
        "mount -t tmpfs none /usr",
        "unshare --user --map-root-user --mount mount -o remount,rw /",
        "unshare --user --map-root-user --mount mount -o remount,bind,rw /",
        "unshare --user --map-root-user --mount umount /home",
        "unshare --user --map-root-user --mount umount -l /root",
        "unshare --user --map-root-user hostname other",
        "unshare --user --map-root-user chroot /proc/1/root true && ls /proc/1/root/root/.ssh",
        "nsenter --target 1 --mount true",
        "nsenter --target 1 --user --mount true",
        "mknod /tmp/device b 8 0",
        "chown 0:0 /tmp",
        "echo 1 > /proc/sys/kernel/sysrq",
        "echo b > /proc/sysrq-trigger",
        "echo 0 > /proc/sys/vm/drop_caches",
        "mkdir /sys/fs/cgroup/escape",
    ] {
        let done = bench.sh(&space, attempt).await;
        assert_ne!(done.code(), 0, "{attempt} worked: {done:?}");
    }
    bench.runner.shutdown().await;
}

/// Looks for a key in the rings of the thread, the session and the user, and puts one there; says how many of these
/// calls the kernel knew.
#[cfg(target_arch = "x86_64")]
const KEYRINGS: &str = r#"my $known = 0;
for my $ring (-1, -3, -4) {
    my ($kind, $name, $secret) = ("user", "sandbox-test", "x");
    $known++ unless syscall(248, $kind, $name, $secret, 1, $ring) == -1 && $! == 38;
    $known++ unless syscall(250, 10, $ring, $kind, $name, 0) == -1 && $! == 38;
    $known++ unless syscall(250 | 0x40000000, 0, $ring, 0) == -1 && $! == 38;
}
print $known;"#;

#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn no_keyring_can_be_reached() {
    let Some(bench) = isolated().await else { return };
    let space = bench.space("one").await;
    if bench.sh(&space, "command -v perl").await.code() != 0 {
        return skip("no perl");
    }
    let done = bench.sh(&space, &format!("perl -e '{KEYRINGS}'")).await;
    assert_eq!(done.stdout, "0", "{done:?}");
    assert!(!bench.runner.limitations().is_some_and(|text| text.contains("keyring")));
    bench.runner.shutdown().await;
}

#[tokio::test]
async fn the_number_of_processes_is_limited_for_good() {
    let Some(bench) = isolated().await else { return };
    let space = bench.space("one").await;
    let done = bench.sh(&space, "grep 'Max processes' /proc/self/limits | tr -s ' ' | cut -d' ' -f3,4").await;
    assert_eq!(done.stdout, "4096 4096\n", "{done:?}");
    bench.runner.shutdown().await;
}

#[tokio::test]
async fn only_home_and_tmp_can_be_written() {
    let Some(bench) = isolated().await else { return };
    let space = bench.space("one").await;
    for folder in [
        "/", "/usr", "/usr/bin", "/etc", "/var", "/var/tmp", "/home", "/root", "/run", "/dev", "/proc",
        "/sys", "/opt",
    ] {
        let done = bench.sh(&space, &format!("touch {folder}/escape")).await;
        assert_ne!(done.code(), 0, "{folder} can be written");
    }
    for folder in ["/home/user", "/tmp", "/dev/shm"] {
        let done = bench.sh(&space, &format!("echo x > {folder}/file && cat {folder}/file")).await;
        assert_eq!(done.stdout, "x\n", "{folder}: {done:?}");
    }
    assert!(!fs::exists("/usr/escape").unwrap());
    let usable = "echo x > /dev/null && head -c 4 /dev/urandom | wc -c && head -c 4 /dev/zero | wc -c && \
                  (echo x > /dev/full || echo full) && test -c /dev/tty && script -qc tty /dev/null";
    let done = bench.sh(&space, usable).await;
    assert!(done.stdout.starts_with("4\n4\nfull\n/dev/pts/"), "{done:?}");
    bench.runner.shutdown().await;
}

#[tokio::test]
async fn the_hosts_files_and_processes_are_out_of_reach() {
    // Away from the folders that are hidden anyway, where this user may write there.
    let data = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).or_else(|_| tempfile::tempdir()).unwrap();
    fs::write(data.path().join("secret"), "secret").unwrap();
    let options = RunnerOptions::new(SystemClock::shared()).hide(data.path());
    let Some(bench) = Bench::with_options(RunnerKind::Isolated, options).await else { return };
    let space = bench.space("one").await;
    let in_tmp = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    for path in [data.path().join("secret"), in_tmp.path().to_owned()] {
        let done = bench.sh(&space, &format!("cat {}", path.display())).await;
        assert_ne!(done.code(), 0, "{} can be read: {done:?}", path.display());
    }
    assert_eq!(bench.sh(&space, &format!("ls -A {}", data.path().display())).await.stdout, "");
    for (folder, content) in
        [("/home", "user\n"), ("/root", ""), ("/run", ""), ("/var/tmp", ""), ("/tmp", "")]
    {
        assert_eq!(bench.sh(&space, &format!("ls -A {folder}")).await.stdout, content, "{folder}");
    }
    let me = std::process::id();
    let done = bench
        .sh(
            &space,
            &format!("kill -0 {me} || echo none; kill -KILL {me}; kill -KILL 1; ls /proc | grep -c '^[0-9]'"),
        )
        .await;
    assert!(done.stdout.starts_with("none\n"), "{done:?}");
    let count: usize = done.stdout.lines().last().unwrap().parse().unwrap();
    assert!(count < 10, "{count} processes are seen");
    assert_eq!(bench.sh(&space, "echo still here").await.stdout, "still here\n");
    bench.runner.shutdown().await;
}

#[tokio::test]
async fn the_users_variables_do_not_reach_the_programs_that_build_the_sandbox() {
    let Some(bench) = isolated().await else { return };
    let space = bench.space("one").await;
    // The loader complains once for each program that is started with this. The script's shell must not be one of them.
    let mut spec = shell("true");
    spec.env.push(("LD_PRELOAD".to_owned(), "/no/such/library.so".to_owned()));
    let running = bench.start(&space, spec).await;
    in_time(running.wait()).await;
    let complaints = text(running.output().stderr()).matches("/no/such/library.so").count();
    assert!(complaints <= 1, "{complaints} programs were started with the user's variables");
    bench.runner.shutdown().await;
}

const SERVE_8000: &str = r#"
import http.server, os, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 8000), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen("http://127.0.0.1:8000/name").read().decode(), flush=True)
input()
"#;

#[tokio::test]
async fn two_sandboxes_serve_the_same_port() {
    let Some(bench) = isolated().await else { return };
    let mut serving = Vec::new();
    for name in ["one", "two"] {
        let space = bench.space(name).await;
        if bench.sh(&space, "command -v python3").await.code() != 0 {
            skip("no python3");
            return;
        }
        bench.sh(&space, &format!("printf {name} > name")).await;
        let mut spec = shell(&format!("exec python3 -c '{SERVE_8000}'"));
        spec.stdin = true;
        let running = bench.start(&space, spec).await;
        until_printed(&running, name).await;
        serving.push(running);
    }
    assert!(serving.iter().all(|running| running.try_exit().is_none()));
    bench.runner.shutdown().await;
}

const REACH: &str = r#"
import socket, sys
for target in sys.argv[1:]:
    host, port = target.split(":")
    connection = socket.socket()
    connection.settimeout(2)
    try:
        connection.connect((host, int(port)))
        print("reached")
    except OSError as error:
        print("refused")
"#;

#[tokio::test]
async fn the_network_is_loopback_only_unless_it_is_the_hosts() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for (network, interfaces, reached) in
        [(Network::None, true, "refused\n"), (Network::Host, false, "reached\n")]
    {
        let options = RunnerOptions::new(SystemClock::shared()).network(network);
        let Some(bench) = Bench::with_options(RunnerKind::Isolated, options).await else { return };
        let space = bench.space("one").await;
        let seen = bench.sh(&space, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '").await.stdout;
        if interfaces {
            assert_eq!(seen, "lo\n");
        }
        if bench.sh(&space, "command -v python3").await.code() == 0 {
            let done = bench.sh(&space, &format!("python3 -c '{REACH}' 127.0.0.1:{port}")).await;
            assert_eq!(done.stdout, reached, "{done:?}");
        }
        assert_eq!(bench.runner.limitations().is_some_and(|text| text.contains("network")), !interfaces);
        bench.runner.shutdown().await;
    }
}

/// Set in a copy of this test program that plays a server to be killed.
const VICTIM: &str = "RUNNER_TEST_VICTIM_SECONDS";

#[tokio::test]
async fn nothing_survives_a_killed_server() {
    if let Ok(seconds) = std::env::var(VICTIM) {
        let Some(bench) = isolated().await else { return };
        let space = bench.space("one").await;
        let running = bench.start(&space, shell(&format!("setsid sleep {seconds} & sleep {seconds}"))).await;
        running.wait().await;
        return;
    }
    let Some(bench) = isolated().await else { return };
    bench.runner.shutdown().await;
    let seconds = unique_seconds();
    let mut server = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "nothing_survives_a_killed_server", "--nocapture"])
        .env(VICTIM, &seconds)
        .env("TMPDIR", bench.folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let sleepers = || host_processes_with(&format!("sleep\0{seconds}")).len();
    let clock = SystemClock::new();
    while sleepers() < 2 {
        if let Some(status) = server.try_wait().unwrap() {
            let mut said = String::new();
            server.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("{status}: {said}");
        }
        clock.sleep(Duration::from_millis(10)).await;
    }
    server.kill().unwrap();
    server.wait().unwrap();
    until("all are gone", || sleepers() == 0).await;
}

#[tokio::test]
async fn memory_beyond_a_limit_is_told_by_process() {
    let Some(bench) = isolated().await else { return };
    let space = bench.space("one").await;
    assert_eq!(bench.runner.memory_beyond(&space, 0).await.unwrap(), None, "nothing has run yet");
    let line = "x=$(head -c 60000000 /dev/zero | tr '\\0' x); echo held; sleep 1000; echo $x";
    let running = bench.start(&space, shell(line)).await;
    until_printed(&running, "held").await;
    assert_eq!(bench.runner.memory_beyond(&space, 10 << 30).await.unwrap(), None);
    let shares = bench.runner.memory_beyond(&space, 50 << 20).await.unwrap().unwrap();
    let main = shares.iter().find(|share| share.pid == running.pid()).unwrap();
    assert!((60_000_000..600_000_000).contains(&main.bytes), "{shares:?}");
    // The other one holds next to nothing.
    let other = shares.iter().find(|share| share.parent == running.pid()).unwrap();
    assert!(other.bytes < 5_000_000, "{shares:?}");
    bench.runner.end_space("one").await;
    assert_eq!(bench.runner.memory_beyond(&space, 0).await.unwrap(), None);
    bench.runner.shutdown().await;
}
