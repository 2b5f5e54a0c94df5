//! The blocking twin wherever a program may call it: it neither panics nor hangs, streams are pulled, and what it owes is
//! cleaned up.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
    thread,
    time::Duration,
};

use sandboxer_blocking::{
    Command, Create, Delivery, ErrorKind, ListOptions, Outcome, Result, Sandbox, Sandboxer,
    models::SandboxState,
    stream::{Chunk, OutputStream},
};
use sandboxer_mock_server::MockServer;
use tokio::runtime::Builder;

/// Long enough never to be reached by what works.
const GUARD: Duration = Duration::from_secs(60);

fn client(server: &MockServer) -> Sandboxer {
    client_at(&server.url(), server.api_key())
}

fn client_at(url: &str, key: &str) -> Sandboxer {
    Sandboxer::builder().ignore_env().no_proxy().api_key(key).base_url(url).build().unwrap()
}

fn started() -> (MockServer, Sandboxer, Sandbox) {
    let server = MockServer::start();
    let client = client(&server);
    let sandbox = client.create(Create::new()).unwrap();
    (server, client, sandbox)
}

fn says_hi(sandbox: &Sandbox) {
    assert_eq!(sandbox.exec("echo hi").unwrap().check().unwrap().stdout_text(), "hi\n");
}

/// A whole life, streams included, with everything made and dropped by the caller's thread.
fn whole_life(server: &MockServer) {
    let client = client(server);
    let sandbox = client.create(Create::new()).unwrap();
    says_hi(&sandbox);
    let mut run = sandbox.exec_stream("echo one; echo two").unwrap();
    let text: String = (&mut run).map(|chunk| chunk.unwrap().text().into_owned()).collect();
    assert_eq!(text, "one\ntwo\n");
    assert_eq!(run.wait().unwrap().outcome(), Outcome::Exited(0));
    sandbox.files().write("note", "hello").unwrap();
    let mut content = String::new();
    sandbox.files().download("note").unwrap().read_to_string(&mut content).unwrap();
    assert_eq!(content, "hello");
    let command = sandbox.start("echo begun; sleep 600").unwrap();
    let mut attach = command.attach().unwrap();
    assert_eq!(attach.next().unwrap().unwrap(), Chunk::Stdout("begun\n".into()));
    drop(attach); // half-way
    command.kill().unwrap();
    assert_eq!(command.wait().unwrap().outcome(), Outcome::Stopped);
    sandbox.delete().unwrap();
}

#[test]
fn it_works_inside_a_multi_thread_runtime() {
    let server = MockServer::start();
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async { whole_life(&server) });
    runtime.block_on(async move {
        let spawned = tokio::spawn(async move {
            whole_life(&server);
            server
        });
        let server = spawned.await.unwrap();
        tokio::task::spawn_blocking(move || whole_life(&server)).await.unwrap();
    });
}

#[test]
fn it_works_inside_a_current_thread_runtime_and_a_local_set() {
    let server = MockServer::start();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { whole_life(&server) });
    tokio::task::LocalSet::new().block_on(&runtime, async move {
        tokio::task::spawn_local(async move { whole_life(&server) }).await.unwrap();
    });
}

#[test]
fn it_works_in_drop_and_while_unwinding() {
    struct Deletes(Sandbox);
    impl Drop for Deletes {
        fn drop(&mut self) {
            says_hi(&self.0);
            self.0.delete().unwrap();
        }
    }
    let (_server, client, sandbox) = started();
    drop(Deletes(sandbox));
    let held = Deletes(client.create(Create::new()).unwrap());
    let unwound = catch_unwind(AssertUnwindSafe(move || {
        let _held = held;
        panic!("on purpose");
    }));
    assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&"on purpose"));
    assert!(client.list(ListOptions::new()).next().is_none(), "both were deleted");
}

#[test]
fn one_client_serves_many_threads_at_once() {
    let (_server, client, sandbox) = started();
    thread::scope(|scope| {
        for number in 0..20 {
            let sandbox = client.sandbox(sandbox.id());
            scope.spawn(move || {
                let output = sandbox.exec(["echo", &number.to_string()]).unwrap();
                assert_eq!(output.stdout_text(), format!("{number}\n"));
            });
        }
    });
}

#[test]
fn handles_and_streams_outlive_the_client_they_came_from() {
    let (_server, client, sandbox) = started();
    sandbox.exec("mkfifo go").unwrap().check().unwrap();
    let mut run = sandbox.exec_stream("echo waiting; read line < go; echo $line").unwrap();
    drop(client);
    sandbox.exec("echo gone > go").unwrap().check().unwrap();
    drop(sandbox);
    let text: String = (&mut run).map(|chunk| chunk.unwrap().text().into_owned()).collect();
    assert_eq!(text, "waiting\ngone\n");
    assert_eq!(run.wait().unwrap().outcome(), Outcome::Exited(0));
}

#[test]
fn a_body_that_succeeds_fails_or_panics_leaves_nothing_behind() {
    let server = MockServer::start();
    let client = client(&server);
    let is_empty = || client.list(ListOptions::new()).next().is_none();

    let text = client
        .scoped(Create::new(), |sandbox| Ok(sandbox.exec("echo hi")?.check()?.stdout_text().into_owned()));
    assert_eq!(text.unwrap(), "hi\n");
    assert!(is_empty());

    let failed = client.scoped(Create::new(), |sandbox| sandbox.exec("exit 3")?.check());
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::CommandFailed);
    assert!(is_empty());

    let panicked = catch_unwind(AssertUnwindSafe(|| {
        client.scoped(Create::new(), |sandbox| -> Result<()> {
            says_hi(sandbox);
            panic!("on purpose")
        })
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"on purpose"));
    assert!(is_empty());

    // Deleted by the body itself: fine. Never made: the reason, and the body does not run.
    client.scoped(Create::new(), |sandbox| sandbox.delete()).unwrap();
    let refused = client.scoped(Create::new().name(""), |_| -> Result<()> { panic!("there is no sandbox") });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(is_empty());
}

#[test]
fn a_scope_works_on_the_thread_of_an_async_program() {
    let server = MockServer::start();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let mut seen = None; // neither `Send` nor `'static` is asked of the body
    let output = runtime.block_on(async {
        client(&server).scoped(Create::new(), |sandbox| {
            seen = Some((sandbox.id().to_owned(), thread::current().id()));
            sandbox.exec("echo hi")
        })
    });
    assert_eq!(output.unwrap().stdout_text(), "hi\n");
    let (id, body_thread) = seen.unwrap();
    assert_eq!(body_thread, thread::current().id());
    assert_eq!(client(&server).get(&id).unwrap_err().kind(), ErrorKind::NotFound);
}

/// A service that answers the one request with the beginning of an endless stream, and tells when that is closed.
fn endless_stream() -> (String, mpsc::Receiver<()>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (closed, is_closed) = mpsc::channel();
    thread::spawn(move || {
        let (connection, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(connection.try_clone().unwrap());
        read_request(&mut reader);
        begin_stream(connection);
        // Nothing more is asked for on it, so the next thing to read is its end.
        let mut rest = Vec::new();
        let _ = reader.read_to_end(&mut rest);
        closed.send(()).unwrap();
    });
    (url, is_closed)
}

fn read_request(reader: &mut BufReader<TcpStream>) {
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).unwrap();
}

fn begin_stream(mut connection: TcpStream) {
    let frames = [
        r#"{"type":"started","commandId":"cmd_1"}"#,
        r#"{"type":"stdout","data":"one\n"}"#,
        r#"{"type":"stdout","data":"two\n"}"#,
    ];
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n";
    let body: String = frames.iter().map(|frame| format!("{:x}\r\n{frame}\n\r\n", frame.len() + 1)).collect();
    connection.write_all(format!("{head}{body}").as_bytes()).unwrap();
}

#[test]
fn an_iterator_dropped_half_way_closes_its_connection() {
    let (url, is_closed) = endless_stream();
    let client = client_at(&url, "key");
    let mut run = client.sandbox("bx_1").exec_stream("yes").unwrap();
    assert_eq!(run.command_id(), Some("cmd_1"));
    assert_eq!(run.next().unwrap().unwrap(), Chunk::Stdout("one\n".into()));
    assert!(is_closed.try_recv().is_err());
    drop(run);
    is_closed.recv_timeout(GUARD).expect("the connection is closed");
    drop(client); // until here: it is the stream's drop that closed it
}

#[test]
fn the_last_drop_inside_an_async_program_closes_what_is_open() {
    let (url, is_closed) = endless_stream();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = client_at(&url, "key");
        let mut run = client.sandbox("bx_1").exec_stream("yes").unwrap();
        assert!(run.next().unwrap().is_ok());
        drop(client);
        assert!(run.next().unwrap().is_ok());
    });
    is_closed.recv_timeout(GUARD).expect("the connection is closed");
}

#[test]
fn a_call_that_its_own_runtime_would_have_to_answer_ends_with_its_time_limit() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let error = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        // Never gets to run, because the call below blocks the one thread it could run on.
        let answers = tokio::spawn(async move { listener.accept().await.map(|_| ()) });
        let client = Sandboxer::builder().ignore_env().no_proxy().api_key("key").base_url(url);
        let client = client.attempt(Duration::from_millis(200)).retries(0).build().unwrap();
        let error = client.me().unwrap_err();
        answers.abort();
        error
    });
    assert_eq!((error.kind(), error.delivery()), (ErrorKind::Timeout, Delivery::Unknown));
}

#[test]
fn readers_hand_on_typed_errors_and_pieces_in_any_size() {
    let (_server, _client, sandbox) = started();
    sandbox.exec("seq 1 100000 > numbers").unwrap().check().unwrap();
    let expected: String = (1..=100_000).map(|number| format!("{number}\n")).collect();

    let mut body = sandbox.files().download("numbers").unwrap();
    assert_eq!(body.content_length(), Some(expected.len() as u64));
    let mut first = [0; 3];
    body.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"1\n2");
    let mut line = String::new();
    body.read_line(&mut line).unwrap();
    assert_eq!(line, "\n");
    let rest = body.collect::<Result<Vec<_>>>().unwrap().concat();
    assert_eq!([&first[..], line.as_bytes(), &rest].concat(), expected.as_bytes());

    let whole = sandbox.files().download("numbers").unwrap().read_all(1 << 20).unwrap();
    assert_eq!(whole, expected);
    let error = sandbox.files().download("numbers").unwrap().read_all(1000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

#[test]
fn lists_pages_logs_and_waits_are_the_async_ones() {
    let (_server, client, first) = started();
    let second = client.create(Create::new().wait(false)).unwrap();
    second.wait_until_ready().unwrap();
    let ids = client
        .list(ListOptions::new())
        .map(|sandbox| Ok(sandbox?.id().to_owned()))
        .collect::<Result<Vec<_>>>();
    assert_eq!(ids.unwrap(), [second.id(), first.id()], "newest first");
    assert_eq!(client.list(ListOptions::new().limit(1)).count(), 1);
    let page = client.list(ListOptions::new()).next_page().unwrap().unwrap();
    assert_eq!(page.len(), 2);

    let command = first.start(Command::shell(r"printf '\377\000'; echo no >&2")).unwrap();
    assert_eq!(command.wait().unwrap().outcome(), Outcome::Exited(0));
    let again = first.command(command.process_id());
    assert_eq!(again.logs(OutputStream::Stdout).read_all(10).unwrap(), &[0xFF, 0x00][..]);
    assert_eq!(
        again.logs_from(OutputStream::Stderr, 1).next().unwrap().unwrap(),
        Chunk::Stderr("o\n".into())
    );
    assert_eq!(again.sandbox().id(), first.id());

    first.stop().unwrap();
    assert_eq!(first.refresh().unwrap().state, SandboxState::Archived);
    assert_eq!(first.exec("true").unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(client.api().get(first.id()).unwrap().sandbox.state, SandboxState::Archived);
}

#[test]
fn a_closed_client_refuses_further_calls() {
    let (_server, client, sandbox) = started();
    client.close();
    assert_eq!(sandbox.exec("true").unwrap_err().kind(), ErrorKind::Closed);
}
