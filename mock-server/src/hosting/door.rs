//! One door: its connections, who is let in, and what they get.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use axum::body::Body;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use sandboxer::clock::{Clock as _, SystemClock};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
};
use tokio_util::sync::CancellationToken;

use super::{
    Goal, Guests, Place,
    access::{Shown, cookie_name, is_meant, shown, strip_headers, stripped},
    pages::{self, problem, wants_page},
    proxy, ssh,
};
use crate::{
    app::App,
    store::{StoreError, typed},
    world::{
        desktops::Desktop,
        hosted_ports::{HostedPort, hosted_key},
        sandboxes::{Sandbox, State},
    },
};

/// How many connections a door has open at once, upgraded ones included; more wait.
pub(super) const CONNECTIONS: usize = 256;

/// How long a client may take over the head of a request.
const HEAD: Duration = Duration::from_secs(30);

/// How long the door waits after the system refused a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// What every request through a door needs.
pub(super) struct Door {
    pub(super) app: Arc<App>,
    pub(super) place: Place,
    pub(super) outside: u16,
    pub(super) closing: CancellationToken,
    pub(super) guests: Arc<Guests>,
}

/// A connection's place among those that a door has open.
type Permit = Arc<OwnedSemaphorePermit>;

/// Takes connections, so many at once, until the door is closed.
pub(super) async fn keep(door: Door, listener: TcpListener, most: usize) {
    let closing = door.closing.clone();
    let door = Arc::new(door);
    let room = Arc::new(Semaphore::new(most));
    loop {
        let next = async {
            let permit = room.clone().acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            next = next => next,
            () = closing.cancelled() => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                // Nobody closes the semaphore.
                let Ok(permit) = permit.map(Arc::new) else { return };
                let door = door.clone();
                door.app.tasks.clone().spawn(async move {
                    let closing = door.closing.clone();
                    tokio::select! {
                        () = drive(door, stream, peer, permit) => {}
                        () = closing.cancelled() => {}
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection to a hosted port was not accepted");
                SystemClock::new().sleep(PAUSE).await;
            }
        }
    }
}

async fn drive(door: Arc<Door>, stream: TcpStream, peer: SocketAddr, permit: Permit) {
    if door.place.goal == Goal::Ssh {
        return ssh::turn_away(stream).await;
    }
    let service = service_fn(move |request| {
        let (door, permit) = (door.clone(), permit.clone());
        async move { Ok::<_, Infallible>(answer(&door, peer, request, permit).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).with_upgrades().await {
        tracing::debug!(%error, "a connection to a hosted port broke");
    }
}

/// What is recorded of a door.
struct Rules {
    token: String,
    public: bool,
    localhost: bool,
    theme: Option<String>,
}

fn look_up(door: &Door) -> Result<Option<(Sandbox, Rules)>, StoreError> {
    let Place { sandbox: id, goal } = &door.place;
    door.app.read(|tx| {
        let rules = match goal {
            Goal::Port(port) => typed::get::<HostedPort>(tx, &hosted_key(id, *port))?.map(|hosted| {
                let HostedPort { token, public, localhost, .. } = hosted;
                Rules { token, public, localhost, theme: None }
            }),
            Goal::Desktop => typed::get::<Desktop>(tx, id)?.map(|desktop| {
                let Desktop { token, public, theme, .. } = desktop;
                Rules { token, public, localhost: false, theme }
            }),
            Goal::Ssh => None,
        };
        Ok(typed::get::<Sandbox>(tx, id)?.zip(rules))
    })
}

async fn answer(
    door: &Door,
    peer: SocketAddr,
    mut request: Request<Incoming>,
    permit: Permit,
) -> Response<Body> {
    let asked = request.headers().clone();
    let say = |status: StatusCode, code, text: &str| problem(&asked, status, code, text);
    if request.method() == Method::CONNECT {
        return say(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this is not a proxy");
    }
    // Taken first: whoever is let in by rules that change meanwhile is shown out with the others.
    let stay = door.guests.stay();
    let (sandbox, rules) = match look_up(door) {
        Ok(Some(found)) => found,
        Ok(None) => return say(StatusCode::NOT_FOUND, "not_hosted", "nothing is hosted here any more"),
        Err(error) => {
            tracing::error!(%error, "a hosted port could not be looked up");
            let text = "the local server failed; its log says why";
            return say(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", text);
        }
    };
    let own = match door.place.goal {
        Goal::Port(port) => format!("{}-{port}", sandbox.subdomain),
        Goal::Desktop | Goal::Ssh => format!("{}-desktop", sandbox.subdomain),
    };
    // A target with a host in it counts for more than the header.
    let host = match request.uri().authority() {
        Some(authority) => Some(authority.as_str()),
        None => asked.get(header::HOST).map(|value| value.to_str().unwrap_or("?")),
    };
    if !is_meant(host, &own) {
        let text = "this address does not lead to the host that was asked for";
        return say(StatusCode::MISDIRECTED_REQUEST, "wrong_host", text);
    }
    let path = stripped(request.uri(), &rules.token);
    let token = shown(request.uri(), &asked, &rules.token, door.outside);
    if !rules.public {
        match token {
            None => return say(StatusCode::UNAUTHORIZED, "token_required", "this address takes its token"),
            // A browser keeps the token in a cookie from here on, and out of what is shown and passed on.
            Some(Shown::Query) if request.method() == Method::GET && wants_page(&asked) => {
                let host = host.map_or_else(|| format!("127.0.0.1:{}", door.outside), str::to_owned);
                return redirect(&format!("http://{host}{path}"), door.outside, &rules.token);
            }
            Some(_) => {}
        }
    }
    if !sandbox.state.is_up() {
        return not_up(&asked, sandbox.state);
    }
    if door.app.scenarios().cut_off(&sandbox) {
        return say(StatusCode::BAD_GATEWAY, "sandbox_unreachable", "the sandbox cannot be reached");
    }
    let Goal::Port(port) = door.place.goal else {
        return pages::desktop(&sandbox.id, rules.theme.as_deref());
    };
    let space = door.app.space(&sandbox.id);
    let stream = match door.app.runner.connect(&space, port, rules.localhost).await {
        Ok(stream) => stream,
        Err(error) => {
            let code = match error.kind() {
                std::io::ErrorKind::ConnectionRefused => "nobody_listens",
                std::io::ErrorKind::Unsupported => "runner_has_no_network",
                _ => "sandbox_unreachable",
            };
            return say(StatusCode::BAD_GATEWAY, code, &error.to_string());
        }
    };
    strip_headers(request.headers_mut());
    let closing = if token.is_some() { &door.closing } else { &stay };
    let through = proxy::Door { app: &door.app, sandbox: &sandbox.id, closing, permit };
    match proxy::forward(stream, request, path, proxy::origin(peer), through).await {
        Ok(response) => response,
        Err(error) => {
            tracing::debug!(%error, "a program in a sandbox did not answer");
            say(
                StatusCode::BAD_GATEWAY,
                "bad_answer",
                "the program took the connection and did not answer in HTTP",
            )
        }
    }
}

fn not_up(asked: &http::HeaderMap, state: State) -> Response<Body> {
    let text = format!("the sandbox is {}", state.as_str());
    let mut response = problem(asked, StatusCode::SERVICE_UNAVAILABLE, "sandbox_not_running", &text);
    if state.is_starting() {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
    }
    response
}

fn redirect(target: &str, outside: u16, token: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::FOUND;
    let cookie = format!("{}={token}; Path=/; HttpOnly; SameSite=Lax", cookie_name(outside));
    let headers = response.headers_mut();
    for (name, value) in [(header::LOCATION, target), (header::SET_COOKIE, &cookie)] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
