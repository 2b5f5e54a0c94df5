//! Carries out a scripted reply.

use std::{future, io};

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Response, header};

use super::{
    Connection, End, Faults,
    body::EndingBody,
    reply::{Answer, Cut, envelope},
};
use crate::record::Recorded;

impl Faults {
    /// Answers a request: with the scripted reply if one is waiting for it, else with what `handler` says; and notes the
    /// status down in the record.
    ///
    /// `connection` is what the request came over; without one, an answer that is to end early ends in an error of its
    /// body.
    pub async fn answer<H, R>(
        &self,
        request: &Recorded,
        connection: Option<&Connection>,
        handler: H,
    ) -> Response<Body>
    where
        H: FnOnce() -> R,
        R: Future<Output = Response<Body>>,
    {
        let scripted = request.operation().and_then(|operation| self.next(operation, request));
        let Some(reply) = scripted else {
            let response = handler().await;
            request.answered(response.status());
            return response;
        };
        if !reply.after.is_zero() {
            self.clock.sleep(reply.after).await;
        }
        if reply.go_away
            && let Some(connection) = connection
        {
            connection.go_away();
        }
        let mut response = match reply.answer {
            Answer::Real => handler().await,
            Answer::Lost => {
                drop(handler().await);
                return withhold(connection, reply.ending).await;
            }
            Answer::HungUp => return withhold(connection, reply.ending).await,
            Answer::Raw(bytes) => return raw(connection, bytes),
            Answer::Made { status, media, body } => {
                let mut response = Response::new(Body::from(body));
                *response.status_mut() = status;
                if let Some(media) = media {
                    response.headers_mut().insert(header::CONTENT_TYPE, media);
                }
                response
            }
            Answer::Error { status, code, message, details } => {
                let id = format!("req_{}", uuid::Uuid::new_v4().simple());
                let body = envelope(status, &code, &message, &details, &id).to_string();
                let mut response = Response::new(Body::from(body));
                *response.status_mut() = status;
                let headers = response.headers_mut();
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
                if let Ok(id) = HeaderValue::from_str(&id) {
                    headers.insert("x-request-id", id);
                }
                response
            }
        };
        for (name, value) in &reply.headers {
            response.headers_mut().insert(name, value.clone());
        }
        request.answered(response.status());
        match (reply.cut, connection) {
            (None, _) => response,
            (Some(Cut::Wire { bytes, end }), Some(connection)) => {
                connection.end_after_sent(bytes, end);
                response
            }
            (Some(Cut::Wire { bytes, end } | Cut::Body { bytes, end }), connection) => {
                let connection = connection.cloned();
                response.map(|body| Body::new(EndingBody::new(body, bytes, end, connection)))
            }
        }
    }
}

/// No answer. What is returned is never seen: the connection is gone before it could be sent.
async fn withhold(connection: Option<&Connection>, end: End) -> Response<Body> {
    match (end, connection) {
        (End::Stall, _) => future::pending().await,
        (end, Some(connection)) => {
            connection.end_now(end);
            Response::new(Body::empty())
        }
        (_, None) => Response::new(broken()),
    }
}

fn raw(connection: Option<&Connection>, bytes: Bytes) -> Response<Body> {
    match connection {
        Some(connection) => {
            connection.replace_answer(bytes);
            Response::new(Body::empty())
        }
        None => Response::new(broken()),
    }
}

fn broken() -> Body {
    let error = io::Error::new(io::ErrorKind::ConnectionAborted, "the answer is withheld");
    Body::from_stream(futures_util::stream::once(future::ready(Err::<Bytes, _>(error))))
}
