"""Runs schemathesis against a server, with this repository's API document.

Reads a JSON object from standard input: `url`, `key` (the key under test), `session` (the token of a person who is signed
in), `document` (the path of the API document), `isolated` (whether commands run behind a wall), and the paths of the `program`
that is the server and of the `requirements`. Writes a JSON report to standard output and what schemathesis says to standard
error; ends with 1 if anything differed.
"""

import os
import sys

if os.environ.get("PYTHONHASHSEED") != "0":
    # The order of sets decides which cases are made.
    os.environ["PYTHONHASHSEED"] = "0"
    os.execv(sys.executable, [sys.executable, "-B", *sys.argv])

import contextlib
import hashlib
import json
import pathlib
from collections import Counter, defaultdict

import schemathesis
import yaml
from schemathesis.cli import schemathesis as command_line

from cases import Cases
from exceptions import Exceptions
from links import Links, operation_of
from world import World

HERE = pathlib.Path(__file__).parent
JSON_LINES = "application/x-ndjson"
EVENTS = "text/event-stream"
# The operations that are no HTTP calls.
WEBSOCKETS = ("execWebSocket", "sshWebSocket")


def say_statuses(raw):
    """Makes the responses of the document say what its extensions say: which statuses an operation may have."""

    def status_of(code, operation):
        described = raw["x-error-codes"][code]
        return str(described.get("statusAt", {}).get(operation["operationId"], described["status"]))

    for path in raw["paths"].values():
        for method, operation in path.items():
            if method == "parameters":
                continue
            codes = {*raw["x-common-errors"], *operation["x-errors"]}
            if operation.get("x-key-action") == "session":
                codes.add("session_required")
            for parameter in operation.get("parameters", []):
                shared = raw["components"]["parameters"].get(parameter.get("$ref", "").rpartition("/")[2], {})
                codes.update(shared.get("x-errors", []))
            responses = operation["responses"]
            default = responses.pop("default", None)
            if default is not None:
                for status in sorted({status_of(code, operation) for code in codes} - responses.keys()):
                    responses[status] = default
            for response in responses.values():
                say_streams(response.get("content", {}))


def say_streams(content):
    """The document describes a stream by one message of it; schemathesis is told in its own way."""
    for media, entry in content.items():
        if media == JSON_LINES:
            entry["schema"] = {"type": "array", "minItems": 1, "items": entry["schema"]}
        elif media == EVENTS:
            data = {"type": "string", "contentMediaType": "application/json", "contentSchema": entry["schema"]}
            entry["schema"] = {"type": "object", "required": ["data"], "properties": {"data": data}}


@schemathesis.deserializer(JSON_LINES)
def json_lines(_, response):
    """The messages of a stream, of which the last is whole, too."""
    text = response.content.decode("utf-8")
    if not text.endswith("\n"):
        raise ValueError("the last line is cut")
    return [json.loads(line) for line in text.split("\n")[:-1]]


class Seen:
    """What was answered."""

    def __init__(self):
        self.statuses = defaultdict(Counter)
        self.phases = Counter()
        self.streams = Counter()
        # One line a request; no ids, which are new in each run.
        self.lines = []

    def note(self, operation, case, response):
        self.statuses[operation][response.status_code] += 1
        phase = case.meta.phase.name.value
        self.phases[phase] += 1
        self.lines.append(f"{phase} {operation} {case.method} {response.status_code}")
        media = response.headers.get("content-type", [""])[0]
        if media in (JSON_LINES, EVENTS):
            self.streams[media] += 1

    def report(self):
        return {
            "cases": sum(sum(counts.values()) for counts in self.statuses.values()),
            "operations": {name: dict(sorted(counts.items())) for name, counts in sorted(self.statuses.items())},
            "phases": self.phases,
            "streams": self.streams,
            # The same for two runs that sent the same and got the same statuses.
            "digest": hashlib.sha256("\n".join(self.lines).encode()).hexdigest()[:16],
            "lines": self.lines,
        }


def register(cases, exceptions, seen, links):
    """Hooks ours into schemathesis."""
    links.watch()

    @schemathesis.hook
    def before_load_schema(context, raw_schema):
        say_statuses(raw_schema)
        links.read(raw_schema)

    @schemathesis.hook
    def before_add_examples(context, examples):
        exceptions.add_examples(context.operation, examples)

    @schemathesis.hook
    def before_call(context, case, kwargs):
        if case.id not in exceptions.shown:
            cases.prepare(case)

    @schemathesis.hook
    def after_call(context, case, response):
        seen.note(operation_of(case), case, response)
        links.note(case, response)
        cases.settle(operation_of(case), case, response)

    @schemathesis.hook
    def filter_failure(context, failure, case, response):
        return not exceptions.allows(operation_of(case), failure, case, response)


def run(given):
    """Runs schemathesis' own program; hands back how it ended."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        # What the user of this machine has set is none of a stranger's business.
        os.environ.pop(name, None)
        os.environ.pop(name.upper(), None)
    os.environ["KEY"], os.environ["SESSION"] = given["key"], given["session"]
    config = str(HERE / "config.toml")
    arguments = ["--config-file", config, "run", given["document"], "--url", given["url"], "--no-color", *sys.argv[1:]]
    for operation in WEBSOCKETS:
        arguments += ["--exclude-operation-id", operation]
    with contextlib.redirect_stdout(sys.stderr):
        try:
            return command_line(arguments, standalone_mode=False) or 0
        except SystemExit as end:
            return end.code or 0


def inputs(given):
    """A digest of all that a run depends on."""
    digest = hashlib.sha256(f"{sys.version} {given['isolated']}".encode())
    for path in (given["document"], given["program"], given["requirements"], *sorted(HERE.glob("*.*"))):
        digest.update(hashlib.sha256(pathlib.Path(path).read_bytes()).digest())
    return digest.hexdigest()


def main():
    given = json.load(sys.stdin)
    world = World(given["url"], given["session"])
    keys = world.call("GET", "/api-keys")["apiKeys"]
    own = next(row["id"] for row in keys if row["keyLastFour"] == given["key"][-4:])
    seen, links = Seen(), Links()
    cases = Cases(world, own, given["isolated"], links)
    exceptions = Exceptions(yaml.safe_load((HERE / "exceptions.yaml").read_text())["exceptions"], cases)
    register(cases, exceptions, seen, links)
    status = run(given)
    unused = exceptions.unused()
    for row in unused:
        print(f"an exception that nothing needs any more: {row}", file=sys.stderr)
    report = {**seen.report(), "inputs": inputs(given), "links": links.followed, "exceptions": exceptions.report()}
    json.dump(report, sys.stdout)
    return 1 if status or unused else 0


if __name__ == "__main__":
    sys.exit(main())
