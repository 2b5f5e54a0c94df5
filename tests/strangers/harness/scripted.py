"""A server that answers with what it was told to, one after the other, and ends the connection after each."""

import contextlib
import http.server
import json

from around import serving


class Cut:
    """A body that breaks off: more of it was promised than comes."""

    def __init__(self, body):
        self.body = body


class _Scripted(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.asked.append(self)
        answer = self.server.answers.pop(0)
        if answer is None:
            return
        status, body, *headers = answer
        is_cut = isinstance(body, Cut)
        media, content = _written(body.body if is_cut else body)
        self.send_response(status)
        for name, value in {"Content-Type": media, "Content-Length": len(content) + is_cut, **dict(*headers)}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def log_message(self, *_):
        pass


def _written(body):
    if isinstance(body, list):
        return "application/x-ndjson", "".join(json.dumps(line) + "\n" for line in body).encode()
    if isinstance(body, str):
        return "text/event-stream", body.encode()
    return "application/json", json.dumps(body).encode()


@contextlib.contextmanager
def scripted(*answers):
    """Such a server. An answer is a status, a body (a list is a stream of lines, a text one of events, all else JSON) and more
    headers, if any; None ends the connection without one. `asked` has what came: `command`, `path` and `headers`."""
    with serving(_Scripted, answers=list(answers), asked=[]) as server:
        server.url += "/api/v1"
        yield server
