//! What the server itself says on an address that leads into a sandbox.

use axum::body::Body;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

/// Names why the server answered instead of a program in the sandbox.
pub(super) const ERROR_HEADER: &str = "x-sandboxer-error";

/// An answer of the server's own: a page for those who read pages, else a line of text.
pub(super) fn problem(
    asked: &HeaderMap,
    status: StatusCode,
    code: &'static str,
    text: &str,
) -> Response<Body> {
    let mut response = match wants_page(asked) {
        true => page(&format!("<h1>{}</h1><p>{}</p>", status.as_u16(), escape(text)), None),
        false => {
            let mut response = Response::new(Body::from(format!("{text}\n")));
            let kind = HeaderValue::from_static("text/plain; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response
        }
    };
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(ERROR_HEADER, HeaderValue::from_static(code));
    response
}

/// What is shown in the place of a desktop.
pub(super) fn desktop(sandbox: &str, theme: Option<&str>) -> Response<Body> {
    let text = format!(
        "<h1>No desktop here</h1><p>Sandbox <code>{}</code> runs on a local server, which has no screen and no browser. \
         It has what commands and files need: run commands, host a port and open its address.</p>",
        escape(sandbox)
    );
    page(&text, theme)
}

/// Whether a page is asked for.
pub(super) fn wants_page(asked: &HeaderMap) -> bool {
    asked
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|kinds| kinds.contains("text/html"))
}

fn page(text: &str, theme: Option<&str>) -> Response<Body> {
    let scheme = match theme {
        Some("light") => "light",
        Some("dark") => "dark",
        _ => "light dark",
    };
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"{scheme}\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>Local sandbox</title>\
         <style>body{{font:1rem/1.5 system-ui,sans-serif;max-width:40rem;margin:4rem auto;padding:0 1rem}}</style>\
         <main>{text}</main></html>\n"
    );
    let mut response = Response::new(Body::from(page));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
