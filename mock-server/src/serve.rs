//! The listening socket and the connections: HTTP/1.1 and HTTP/2 on one port.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::body::Body;
use http::{Request, Response};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use sandboxer::clock::{Clock as _, SystemClock};
use tokio_util::task::TaskTracker;

use crate::{
    app::App,
    faults::{Connection, Faults, FaultyListener, FaultyStream},
    handlers,
    page::Page,
    record::Recorder,
    router::{self, ReadBody},
    world::ids,
};

/// How long open connections have to end once the server closes.
const CLOSING: Duration = Duration::from_secs(2);

/// How long the server waits after the system refused a connection, for lack of file descriptors for instance.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What every connection needs.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) app: Arc<App>,
    pub(crate) faults: Faults,
    pub(crate) recorder: Recorder,
    pub(crate) page: Arc<Page>,
    #[cfg(feature = "check-answers")]
    pub(crate) differences: crate::checks::Differences,
}

impl Service {
    pub(crate) fn new(app: Arc<App>, faults: Faults, recorder: Recorder, page: Arc<Page>) -> Self {
        Self {
            app,
            faults,
            recorder,
            page,
            #[cfg(feature = "check-answers")]
            differences: crate::checks::Differences::new(),
        }
    }
}

/// Serves until the server closes.
pub(crate) async fn serve(service: Service, listener: FaultyListener) {
    // Closing must not wait for a clock that a test holds still.
    let clock = SystemClock::new();
    let closing = service.app.closing.clone();
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = closing.cancelled() => break,
        };
        match accepted {
            Ok(stream) => drop(connections.spawn(drive(service.clone(), stream))),
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                clock.sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    connections.close();
    tokio::select! {
        () = connections.wait() => {}
        () = clock.sleep(CLOSING) => tracing::debug!("open connections are cut"),
    }
}

/// One connection, from its first byte to its last.
async fn drive(service: Service, stream: FaultyStream) {
    let handle = stream.connection().clone();
    let closing = service.app.closing.clone();
    let exchanges = service_fn({
        let handle = handle.clone();
        move |request| exchange(service.clone(), handle.clone(), request)
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), exchanges);
    tokio::pin!(connection);
    let leave = async {
        tokio::select! {
            () = closing.cancelled() => {}
            () = handle.going_away() => {}
        }
    };
    tokio::pin!(leave);
    let mut is_leaving = false;
    loop {
        tokio::select! {
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection broke");
                }
                return;
            }
            () = &mut leave, if !is_leaving => {
                is_leaving = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// One request and its answer.
async fn exchange(
    service: Service,
    connection: Connection,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let Service { app, faults, recorder, page, .. } = service;
    let (head, body) = request.into_parts();
    if Page::is_at(head.uri.path()) {
        // Neither recorded nor broken on request: whoever looks must not change what is seen.
        let _ = router::read_body(body, 0, || false).await;
        return Ok(page.answer(&app, &recorder, &head).await);
    }
    let operation = router::operation(&head.method, head.uri.path());
    let body = match handlers::file_urls::is_at(head.uri.path()) {
        true => ReadBody::Unread(Body::new(body)),
        false => {
            router::read_body(body, router::body_limit(operation), || router::is_known(&app, &head)).await
        }
    };
    let recorded = recorder.record(operation, &head, body.bytes(), Some(connection.number()));
    let request_id = ids::request();
    let real = async || {
        let response = router::answer(&app, &head, body, &request_id).await;
        #[cfg(feature = "check-answers")]
        let response = service.differences.watch(recorded.operation(), &head, response).await;
        response
    };
    Ok(faults.answer(&recorded, Some(&connection), real).await)
}
