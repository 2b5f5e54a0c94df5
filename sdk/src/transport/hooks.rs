//! Where the generated engine meets the rest: every request of every operation passes here, and only here.

use super::{Context, dialect, headers, send};
use crate::generated::engine;
use progenitor_client::{ClientHooks, ClientInfo as _, Error, OperationInfo};
use reqwest::{Request, Response};

impl ClientHooks<Context> for engine::Client {
    async fn pre<E>(&self, request: &mut Request, _: &OperationInfo) -> Result<(), Error<E>> {
        let context = self.inner();
        let filled =
            headers::fill(context, request.headers_mut()).and_then(|()| dialect::adapt(context, request));
        filled.map_err(|error| {
            context.fail(context.plan.label(error));
            Error::Custom(String::new())
        })
    }

    async fn exec(&self, request: Request, _: &OperationInfo) -> reqwest::Result<Response> {
        let context = self.inner();
        Ok(match send::run(context, request).await {
            Ok(response) => response,
            Err(error) => {
                // The engine can return an HTTP error only; the call finds its own in the context.
                context.fail(error);
                placeholder()
            }
        })
    }
}

/// A response of a status that no operation takes for a success.
fn placeholder() -> Response {
    let mut response = http::Response::new("");
    *response.status_mut() = http::StatusCode::INTERNAL_SERVER_ERROR;
    response.into()
}
