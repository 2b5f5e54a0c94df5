//! Faults of whole connections, over HTTP/1 and HTTP/2.

mod faults_support;

use std::io::ErrorKind;

use bytes::Bytes;
use faults_support::{Service, body_of, get, keep, post, within};
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sandboxer::Operation;
use sandboxer_mock_server::faults::{End, Reply, WireFault};
use tokio::{io::AsyncWriteExt, net::TcpStream};

const REAL: &str = "the real answer";

#[tokio::test]
async fn connections_are_refused_by_reset() {
    let service = Service::start().await;
    service.faults.wire().next_connections(2, WireFault::Refuse);
    for _ in 0..2 {
        // The system accepts, the server resets: the client learns of it at the latest when it reads.
        let mut client = service.connect().await;
        let _ = client.socket.write_all(get("/get").as_bytes()).await;
        let (answer, ended) = client.rest().await;
        assert_eq!(answer, "");
        assert!(matches!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe));
    }
    assert_eq!(body_of(&service.ask(&get("/get")).await.0), REAL);
    assert_eq!((service.runs(), service.recorder.requests().len()), (1, 1));
}

#[tokio::test]
async fn a_closed_port_refuses_and_opens_again() {
    let service = Service::start().await;
    let mut open = service.connect().await;
    open.send(&keep("/get")).await;
    open.read_to(REAL).await;
    for _ in 0..3 {
        service.faults.wire().close_port();
        let refused = TcpStream::connect(service.address).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        service.faults.wire().open_port().unwrap();
        service.faults.wire().open_port().unwrap();
        assert_eq!(body_of(&service.ask(&get("/get")).await.0), REAL);
    }
    open.send(&keep("/get")).await;
    open.read_to(REAL).await;
}

#[tokio::test]
async fn a_connection_ends_after_any_number_of_bytes_sent() {
    let service = Service::start().await;
    let (whole, _) = service.ask(&get("/attach")).await;
    for bytes in (0..whole.len()).step_by(7) {
        for (end, clean) in [(End::Cut, true), (End::Reset, false)] {
            service.faults.wire().next_connection(WireFault::AfterSent { bytes: bytes as u64, end });
            let (answer, ended) = service.ask(&get("/attach")).await;
            assert_eq!(answer, whole[..bytes], "{end:?} after {bytes}");
            assert_eq!(ended.is_ok(), clean, "{end:?} after {bytes}: {ended:?}");
        }
    }
    service.faults.wire().next_connection(WireFault::AfterSent { bytes: 20, end: End::Stall });
    let mut client = service.connect().await;
    client.send(&get("/attach")).await;
    client.read_to(&whole[..20]).await;
    assert!(client.is_silent().await);
    // A stalled connection can still be ended.
    service.faults.wire().end_all(End::Reset);
    assert_eq!(client.rest().await.1.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_connection_ends_after_any_number_of_bytes_received() {
    let service = Service::start().await;
    let request = post("/create", "0123456789");
    for end in [End::Cut, End::Reset] {
        for bytes in (0..request.len()).step_by(11) {
            let runs = service.runs();
            service.faults.wire().next_connection(WireFault::AfterReceived { bytes: bytes as u64, end });
            let mut client = service.connect().await;
            let _ = client.socket.write_all(request.as_bytes()).await;
            let (answer, ended) = client.rest().await;
            assert_eq!(answer, "", "{end:?} after {bytes}");
            assert_eq!(ended.is_ok(), end == End::Cut, "{end:?} after {bytes}: {ended:?}");
            if bytes < request.len() - 10 {
                assert_eq!(service.runs(), runs, "the head was not whole after {bytes}");
            }
        }
    }
    service.faults.wire().next_connection(WireFault::AfterReceived { bytes: 5, end: End::Stall });
    let mut client = service.connect().await;
    client.send(&request).await;
    assert!(client.is_silent().await);
}

#[tokio::test]
async fn open_connections_are_ended_or_sent_away_together() {
    let service = Service::start().await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = service.connect().await;
        client.send(&keep("/get")).await;
        client.read_to(REAL).await;
        clients.push(client);
    }
    let numbers: Vec<_> = service.faults.wire().connections().iter().map(|open| open.number()).collect();
    assert_eq!(numbers, [1, 2, 3]);
    service.faults.wire().connections()[0].end_now(End::Reset);
    assert_eq!(clients.remove(0).rest().await.1.unwrap_err().kind(), ErrorKind::ConnectionReset);
    service.faults.wire().go_away();
    for client in &mut clients {
        assert!(client.rest().await.1.is_ok());
    }
    service.faults.wire().every_connection(WireFault::AfterSent { bytes: 0, end: End::Cut });
    for _ in 0..3 {
        assert_eq!(service.ask(&get("/get")).await.0, "");
    }
    service.faults.clear();
    assert_eq!(body_of(&service.ask(&get("/get")).await.0), REAL);
}

async fn http2_client(service: &Service) -> http2::SendRequest<Empty<Bytes>> {
    let socket = TcpStream::connect(service.address).await.unwrap();
    let (sender, driver) = http2::handshake(TokioExecutor::new(), TokioIo::new(socket)).await.unwrap();
    tokio::spawn(driver);
    sender
}

fn http2_get(service: &Service, path: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("http://{}{path}", service.address)).body(Empty::new()).unwrap()
}

#[tokio::test]
async fn http2_is_told_to_go_away() {
    let service = Service::start().await;
    service.faults.on(Operation::Get).reply(Reply::pass().go_away());
    let mut sender = http2_client(&service).await;
    let answer = within(sender.send_request(http2_get(&service, "/get"))).await.unwrap();
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), REAL);
    // The connection closes once the stream is done.
    within(async {
        while !sender.is_closed() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(within(sender.send_request(http2_get(&service, "/get"))).await.is_err());
    assert_eq!(service.runs(), 1);
}

#[tokio::test]
async fn http2_bodies_are_cut_and_answers_dropped() {
    let service = Service::start().await;
    for end in [End::Cut, End::Reset] {
        service.faults.on(Operation::AttachCommand).reply(Reply::pass().end_body_after(25, end));
        let mut sender = http2_client(&service).await;
        let answer = within(sender.send_request(http2_get(&service, "/attach"))).await.unwrap();
        let mut body = answer.into_body();
        let mut seen = Vec::new();
        let error = within(async {
            loop {
                match body.frame().await.expect("the body must not end as if it were whole") {
                    Ok(frame) => seen.extend_from_slice(&frame.into_data().unwrap()),
                    Err(error) => return error,
                }
            }
        })
        .await;
        assert_eq!(seen, b"piece 0..\npiece 1..\npiece", "{end:?}: {error}");
    }
    service.faults.on(Operation::Create).reply(Reply::drop_answer());
    let mut sender = http2_client(&service).await;
    let runs = service.runs();
    assert!(within(sender.send_request(http2_get(&service, "/create"))).await.is_err());
    assert_eq!(service.runs(), runs + 1);
}
