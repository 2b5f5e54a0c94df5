"""What the cases meet: things that exist, and more of them where a case would use one up."""

import http.server
import threading
import time
from urllib.parse import quote

import requests

# How long a command may run, in seconds.
CAPPED_SECONDS = 2
# Given to a shell in place of some of the random lines: output, an exit code, bytes that are no text, a time limit.
LINES = [
    "echo out; echo err >&2",
    "exit 3",
    "printf 'a\\0b\\377'",
    "ls -la",
    "for i in 1 2 3; do echo $i; done",
    "sleep 30",
]
PROMPT = "Do this:\n```sh\necho done > done.txt\n```\n"
LONG_PROMPT = "Wait:\n```sh\nsleep 300\n```\n"
# Nobody has the private half.
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGhlbGxvIHdvcmxkLCBub3QgYSByZWFsIGtleSEhISEh nobody"


class Sink(http.server.BaseHTTPRequestHandler):
    """Takes what webhooks and telemetry send."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class World:
    """Built and looked after as a person who is signed in, apart from the key under test."""

    def __init__(self, url, session):
        self.url = url
        self.http = requests.Session()
        self.http.trust_env = False
        self.http.headers["Authorization"] = f"Bearer {session}"
        sink = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
        sink.daemon_threads = True
        threading.Thread(target=sink.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{sink.server_port}/"
        self.made = 0
        # The ids that the server has given out: where a link leads, a case is left as it is.
        self.known = set()
        self.seed()

    def call(self, method, path, body=None, expect=(200, 201, 202), headers=None):
        answer = self.http.request(method, self.url + path, json=body, headers=headers, timeout=60)
        if answer.status_code not in expect:
            raise SystemExit(f"the world cannot be made: {method} {path}: {answer.status_code} {answer.text}")
        value = answer.json()
        self.learn(value)
        return value

    def learn(self, value, names=("id",)):
        """Notes the ids in an answer, and what else stands for something in a path."""
        if isinstance(value, dict):
            for name, inner in value.items():
                if isinstance(inner, str) and (name in names or name.endswith("Id")):
                    self.known.add(inner)
                else:
                    self.learn(inner, names)
        elif isinstance(value, list):
            for inner in value:
                self.learn(inner, names)

    def fresh(self):
        """A name that nothing has."""
        self.made += 1
        return f"case-{self.made}z"

    def target(self):
        """A URL of this process, a new one each time."""
        return self.address + self.fresh()

    def seed(self):
        self.org = next(row["id"] for row in self.call("GET", "/orgs")["orgs"] if row["name"] == "Acme")
        self.actions = set(self.call("GET", "/api-keys")["catalog"]["actions"])
        environments = {row["name"]: row["id"] for row in self.call("GET", "/environments")["environments"]}
        self.base, self.environment = environments["base"], environments["ci"]
        self.variable("SEEDED")
        # One that was stopped and brought back has a stop and a snapshot to its name.
        self.main = self.sandbox()
        self.subdomain = self.call("GET", f"/sandboxes/{self.main}")["sandbox"]["subdomain"]
        self.write("notes.txt", "one\ntwo\n")
        self.stop = self.stopped(self.main)
        self.call("POST", f"/sandboxes/{self.main}/resume", {})
        self.wait_for(self.main, "ready")
        self.snapshot = self.latest(self.main)
        self.command = self.run("echo seeded")["commandId"]
        self.process = self.job("echo up; sleep 1; echo down")
        self.prompt = self.call("POST", f"/sandboxes/{self.main}/prompt", {"prompt": PROMPT})["promptId"]
        self.prompted(self.main, self.prompt)
        self.host(8000)
        self.snapshot_name = self.named_snapshot()
        self.share()
        self.archived = self.archive()
        self.shared = self.sandbox(org=self.org)
        self.deletion = self.delete(self.sandbox())
        self.webhook = self.new_webhook()
        self.call("PUT", "/telemetry", {"endpoint": self.target()})

    def lasting(self):
        """What no case may take away."""
        return {
            self.base,
            self.environment,
            self.main,
            self.shared,
            self.snapshot,
            self.snapshot_name,
            self.webhook,
        }

    # Waiting.

    def until(self, path, done):
        """Asks again until the answer says that it is done; what is gone is done, too."""
        for _ in range(20_000):
            answer = self.call("GET", path, expect=(200, 404))
            if not answer["ok"] or done(answer):
                return
            time.sleep(0.005)
        raise SystemExit(f"the world does not come to rest: {path}: {answer}")

    def wait_for(self, sandbox, *states):
        self.until(f"/sandboxes/{sandbox}", lambda answer: answer["sandbox"]["state"] in states)

    def saved(self, name):
        self.until(f"/named-snapshots/{quote(name)}", lambda answer: answer["snapshot"]["status"] != "saving")

    def prompted(self, sandbox, prompt):
        ended = ("finished", "failed", "interrupted")
        self.until(
            f"/sandboxes/{sandbox}/prompts/{prompt}", lambda answer: answer["promptRun"]["status"] in ended
        )

    def deleted(self, operation):
        ended = ("completed", "failed")
        self.until(f"/deletion-operations/{operation}", lambda answer: answer["operation"]["status"] in ended)

    # Something new, of each kind that a case uses up.

    def sandbox(self, **body):
        made = self.call("POST", "/sandboxes", {"ttlSeconds": None, **body})["sandbox"]["id"]
        self.wait_for(made, "ready")
        return made

    def stopped(self, sandbox):
        stop = self.call("POST", f"/sandboxes/{sandbox}/stop", {})["sandbox"]["stop"]["id"]
        self.wait_for(sandbox, "archived")
        return stop

    def archive(self):
        sandbox = self.sandbox()
        self.stopped(sandbox)
        return sandbox

    def latest(self, sandbox):
        return self.call("GET", f"/sandboxes/{sandbox}/snapshots/latest")["snapshot"]["id"]

    def delete(self, sandbox):
        headers = {"X-Sandboxer-Confirm-Delete": sandbox}
        return self.call("DELETE", f"/sandboxes/{sandbox}", headers=headers)["operation"]["id"]

    def write(self, path, content):
        self.call("PUT", f"/sandboxes/{self.main}/files", {"path": path, "content": content})

    def run(self, line, **options):
        body = {"command": line, "timeoutSeconds": CAPPED_SECONDS, **options}
        return self.call("POST", f"/sandboxes/{self.main}/commands", body)

    def job(self, line):
        return self.run(line, detached=True)["processId"]

    def turn(self):
        """A conversation whose turn goes on until it is interrupted."""
        asked = self.call("POST", f"/sandboxes/{self.main}/prompt", {"prompt": LONG_PROMPT, "new": True})
        path = f"/sandboxes/{self.main}/prompts/{asked['promptId']}"
        self.until(path, lambda answer: answer["promptRun"]["status"] == "running")
        return asked["conversationId"]

    def interrupt(self):
        self.call("POST", f"/sandboxes/{self.main}/interrupt")

    def host(self, port):
        self.call("POST", f"/sandboxes/{self.main}/host", {"port": port})

    def named_snapshot(self):
        name = self.fresh()
        self.call("POST", "/named-snapshots", {"sandboxId": self.main, "name": name})
        self.saved(name)
        return name

    def share(self):
        return self.call("POST", f"/named-snapshots/{self.snapshot_name}/shares")["share"]["id"]

    def api_key(self):
        return self.call("POST", "/api-keys/scoped", {"name": "spare"})["apiKey"]["id"]

    def new_webhook(self):
        self.prune_webhooks()
        return self.call("POST", "/webhooks", {"url": self.target(), "events": ["sandbox.ready"]})["webhook"]["id"]

    def prune_webhooks(self):
        """Makes room: an account has ten at most."""
        rows = self.call("GET", "/webhooks")["webhooks"]
        for row in rows if len(rows) > 6 else []:
            if row["id"] != self.webhook:
                self.call("DELETE", f"/webhooks/{row['id']}")

    def new_environment(self):
        name = self.fresh()
        rows = self.call("POST", "/environments", {"name": name})["environments"]
        return next(row["id"] for row in rows if row["name"] == name)

    def variable(self, name):
        self.call("PUT", f"/environments/{self.environment}/vars/{name}", {"value": "1"})

    def repository(self, number):
        self.call("POST", f"/environments/{self.environment}/repos", {"repositoryId": number})

    def secret_file(self, path):
        body = {"path": path, "contents": "hush"}
        self.call("PUT", f"/environments/{self.environment}/secret-files", body)

    # Undoing.

    def reset_retention(self):
        body = {"enabled": False, "snapshotsOff": False, "monitoringOff": False}
        self.call("PATCH", "/account/data-retention", body)
        found = self.call("GET", f"/sandboxes/{self.archived}", expect=(200, 404))
        if not found["ok"] or found["sandbox"]["state"] != "archived":
            self.archived = self.archive()
