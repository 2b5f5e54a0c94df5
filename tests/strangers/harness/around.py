"""What scenarios have around them: the server's clock, work for an agent, a listener of their own, free ports, pages, a key."""

import contextlib
import http.server
import os
import queue
import socket
import subprocess
import threading
import traceback
import urllib.request

# A prompt that keeps an agent at work until there is a file `go`.
AT_WORK = "```sh\nwhile [ ! -e go ]; do sleep 0.02; done\n```"


def move_clock(seconds):
    """Moves the server's clock."""
    address, port = os.environ["STRANGER_CLOCK"].rsplit(":", 1)
    with socket.create_connection((address, int(port))) as connection:
        connection.sendall(f"{int(seconds * 1000)}\n".encode())
        assert connection.recv(16) == b"moved\n"


@contextlib.contextmanager
def meanwhile(work):
    """Does something in a thread of its own while the client waits; `work` is given what says that the wait is over. What goes
    wrong there goes wrong here."""
    over, problems = threading.Event(), []

    def watched():
        try:
            work(over)
        except BaseException as problem:
            # Said at once, for the wait may not end without this.
            traceback.print_exc()
            problems.append(problem)

    thread = threading.Thread(target=watched)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    if problems:
        raise problems[0]


class _Listener(http.server.BaseHTTPRequestHandler):
    """Takes whatever is sent to it."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.put((self.path, dict(self.headers), body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(handler, **kept):
    """A server on a free port of this machine; `url` is its address, and its handlers find what is `kept` on it."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    for name, value in kept.items():
        setattr(server, name, value)
    server.url = f"http://127.0.0.1:{server.server_port}"
    # It looks often whether it is to end.
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def listener():
    """A server that takes every POST; `received` is the queue of paths, headers and bodies."""
    return serving(_Listener, received=queue.Queue())


def free_ports(count):
    """The first of so many ports in a row that nothing uses. Where sandboxes share the machine's network, others run at the same
    time and look for theirs elsewhere."""
    for first in range(10_000 + os.getpid() % 1000 * 20, 32_000, count):
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            for port in range(first, first + count):
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise AssertionError("no port is free")


def says(url, text):
    """Whether this is what is answered there by now."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read() == text
    except OSError:
        return False


def public_key(folder):
    """An OpenSSH public key, made for the occasion where that is possible."""
    known = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@example.com"
    try:
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/id"], check=True)
    except (OSError, subprocess.CalledProcessError):
        return known
    with open(f"{folder}/id.pub", encoding="utf-8") as file:
        return file.read()
