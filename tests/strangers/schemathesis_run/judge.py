"""Shows that an exception allows what it names and nothing besides: `judge.py` judges made-up failures, no server is asked."""

import json
import pathlib
import types

import yaml
from schemathesis.generation import GenerationMode

from examples import PARTS
from exceptions import CHECKS, Exceptions

HERE = pathlib.Path(__file__).parent
POSITIVE, NEGATIVE, ALLOW = "positive_data_acceptance", "negative_data_rejection", "allow_header_conformance"
INVALID = (400, "invalid_request")
# Of an operation: the check, what it answers, what is excused, and what would be were only the answer looked at.
CASES = [
    ("update", POSITIVE, (*INVALID, "subdomain"), {"subdomain": "web-80"}, {"subdomain": "web"}),
    ("createScopedApiKey", POSITIVE, (*INVALID, "ttl"), {"ttl": "8761h"}, {"ttl": "90d"}),
    ("createScopedApiKey", POSITIVE, (*INVALID, "actions"), {"actions": ["dance"]}, {"actions": ["exec"]}),
    ("createOrganization", POSITIVE, (400, "invalid_name", "name"), {"name": "personal"}, {"name": "Acme"}),
    ("createWebhook", POSITIVE, (400, "invalid_webhook_url", "url"), {"url": "0"}, {"url": "https://a.example/"}),
    ("prompt", POSITIVE, (400, "fast_mode_not_supported", None), {"fast": True}, {"fast": None}),
    ("getSnapshotFile", NEGATIVE, (200, None, None), {"Range": "lines=1"}, {"Range": "lines=1", "X-Sandboxer-Org": "0"}),
    ("writeFile", ALLOW, (405, None, None), ([], ["DELETE"]), (["GET"], ["DELETE"])),
]


def allows(exceptions, operation, check, answer, what):
    """Whether this failure would be passed over."""
    status, code, field = answer
    body = {"code": code, "error": {"details": {"field": field} if field else {}}}
    response = types.SimpleNamespace(status_code=status, json=lambda: body)
    failure = type(next(name for name, known in CHECKS.items() if known == check), (), {})()
    sent = {}
    if isinstance(what, tuple):
        failure.missing_methods, failure.undocumented_methods = what
    else:
        sent = what
    wrong = types.SimpleNamespace(mode=GenerationMode.NEGATIVE)
    meta = types.SimpleNamespace(components={PARTS["headers"]: wrong} if check == NEGATIVE else {})
    case = types.SimpleNamespace(body=sent, query={}, path_parameters={}, headers={}, meta=meta)
    return exceptions.allows(operation, failure, case, response)


def main():
    world = types.SimpleNamespace(actions={"exec"})
    rows = yaml.safe_load((HERE / "exceptions.yaml").read_text())["exceptions"]
    exceptions = Exceptions(rows, types.SimpleNamespace(world=world))
    for operation, check, answer, named, other in CASES:
        assert allows(exceptions, operation, check, answer, named), (operation, named)
        assert not allows(exceptions, operation, check, answer, other), (operation, other)
    # No row about a value goes by the answer alone.
    bare = [row for row in rows if "sent" not in row and row["check"].endswith(("acceptance", "rejection"))]
    assert not bare, bare
    print(json.dumps({"judged": len(CASES)}))


if __name__ == "__main__":
    main()
