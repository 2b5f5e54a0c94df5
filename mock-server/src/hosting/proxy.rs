//! One request on its way to a program in a sandbox, and the answer on its way back.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::body::Body;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Uri, Version, header,
    uri::PathAndQuery,
};
use hyper::{body::Incoming, client::conn::http1, upgrade};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, sync::OwnedSemaphorePermit};
use tokio_util::sync::CancellationToken;

use crate::app::App;

/// Headers that are about one connection and not about the message, besides those that `Connection` names.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What a request has of the door that it came through.
pub(super) struct Door<'a> {
    pub(super) app: &'a Arc<App>,
    pub(super) sandbox: &'a str,
    /// Cuts what is open.
    pub(super) closing: &'a CancellationToken,
    /// Its place, which it keeps when it is upgraded.
    pub(super) permit: Arc<OwnedSemaphorePermit>,
}

impl Door<'_> {
    /// Resolves when what is open is to be cut: the door says so, or the machine does not answer any more.
    fn cut(&self) -> impl Future<Output = ()> + Send + use<> {
        let (closing, app, sandbox) = (self.closing.clone(), self.app.clone(), self.sandbox.to_owned());
        async move {
            tokio::select! {
                () = closing.cancelled() => {}
                () = app.silence(&sandbox) => {}
            }
        }
    }
}

/// Sends a request over a fresh connection and hands the head of the answer back; the bodies flow as fast as they are read.
pub(super) async fn forward(
    stream: TcpStream,
    mut request: Request<Incoming>,
    path: PathAndQuery,
    from: IpAddr,
    door: Door<'_>,
) -> Result<Response<Body>, hyper::Error> {
    // What is typed in a terminal, frame by frame, must not wait for more.
    let _ = stream.set_nodelay(true);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let cut = door.cut();
    door.app.tasks.spawn(async move {
        tokio::select! {
            ended = connection.with_upgrades() => if let Err(error) = ended {
                tracing::debug!(%error, "a connection into a sandbox broke");
            },
            () = cut => {}
        }
    });
    let protocol = wanted_upgrade(request.headers());
    let outside = protocol.is_some().then(|| upgrade::on(&mut request));
    prepare(&mut request, path, from, protocol.as_ref());
    let mut response = sender.send_request(request).await?;
    let switched = response.headers().get(header::UPGRADE).cloned();
    let is_switching = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let inside = is_switching.then(|| upgrade::on(&mut response));
    strip_hop_by_hop(response.headers_mut());
    let Some(inside) = inside else { return Ok(response.map(Body::new)) };
    let (Some(outside), Some(switched)) = (outside, switched) else {
        // Nobody has asked for another protocol.
        let mut bad = Response::new(Body::empty());
        *bad.status_mut() = StatusCode::BAD_GATEWAY;
        return Ok(bad);
    };
    response.headers_mut().insert(header::UPGRADE, switched);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    let (cut, app) = (door.cut(), door.app);
    let permit = door.permit;
    app.tasks.spawn(async move {
        let _permit = permit;
        let pipe = async {
            let (outside, inside) = tokio::try_join!(outside, inside)?;
            let (mut outside, mut inside) = (TokioIo::new(outside), TokioIo::new(inside));
            tokio::io::copy_bidirectional(&mut outside, &mut inside).await?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
        };
        tokio::select! {
            ended = pipe => if let Err(error) = ended {
                tracing::debug!(%error, "an upgraded connection into a sandbox broke");
            },
            () = cut => {}
        }
    });
    Ok(response.map(|_| Body::empty()))
}

/// The protocol that a request asks to switch to.
fn wanted_upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let asks = connection_words(headers).any(|word| word == "upgrade");
    headers.get(header::UPGRADE).filter(|_| asks).cloned()
}

fn connection_words(headers: &HeaderMap) -> impl Iterator<Item = String> {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(|word| word.trim().to_ascii_lowercase())
}

fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<String> = connection_words(headers).collect();
    for name in named.iter().map(String::as_str).chain(HOP_BY_HOP) {
        if let Ok(name) = HeaderName::from_bytes(name.as_bytes())
            && name != header::CONTENT_LENGTH
            && name != header::HOST
        {
            headers.remove(name);
        }
    }
}

/// Makes of a request to the door one to the program.
fn prepare(
    request: &mut Request<Incoming>,
    path: PathAndQuery,
    from: IpAddr,
    protocol: Option<&HeaderValue>,
) {
    let host = request
        .headers()
        .get(header::HOST)
        .cloned()
        .or_else(|| HeaderValue::try_from(request.uri().authority()?.as_str()).ok());
    *request.uri_mut() = Uri::from(path);
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    strip_hop_by_hop(headers);
    // Asked for by the client and answered by the server already.
    headers.remove(header::EXPECT);
    headers.remove("forwarded");
    if let Some(protocol) = protocol {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, protocol.clone());
    }
    let mut set = |name: &'static str, value: Option<HeaderValue>| match value {
        // What a client claims about itself does not get in.
        Some(value) => drop(headers.insert(name, value)),
        None => drop(headers.remove(name)),
    };
    set("x-forwarded-for", HeaderValue::try_from(from.to_string()).ok());
    set("x-forwarded-proto", Some(HeaderValue::from_static("http")));
    set("x-forwarded-host", host.clone());
    set("x-forwarded-port", None);
    set("x-real-ip", None);
    let host = host.unwrap_or_else(|| HeaderValue::from_static("localhost"));
    set("host", Some(host));
}

/// The address that a connection came from.
pub(super) fn origin(peer: SocketAddr) -> IpAddr {
    peer.ip().to_canonical()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_one_connection_stay_there() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Own, content-length"),
            ("x-own", "1"),
            ("te", "gzip"),
            ("keep-alive", "5"),
            ("content-length", "3"),
            ("accept", "*/*"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        strip_hop_by_hop(&mut headers);
        let left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["content-length", "accept"]);
    }

    #[test]
    fn an_upgrade_is_one_that_the_connection_names() {
        let mut headers = HeaderMap::new();
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        assert_eq!(wanted_upgrade(&headers), None);
        headers.insert(header::CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
        assert_eq!(wanted_upgrade(&headers).unwrap(), "websocket");
    }
}
