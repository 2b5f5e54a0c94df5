"""Puts what exists into the cases, so that a good share of them reaches more than a refusal, and keeps them harmless.

Only values that the document allows are replaced: a case that is wrong on purpose stays wrong. One value in five is left
as it was drawn, which is how the refusals of what does not exist are met.

In chains of requests all are replaced, but for what a link has put in place. Nothing there may depend on what was sent before
the chain: schemathesis draws the same beginning again, and goes no further once that leads elsewhere.
"""

import copy
import zlib
from collections import Counter
from collections.abc import Mapping

from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation.meta import CoveragePhaseData, CoverageScenario, TestPhase, coverage_scenario

from world import CAPPED_SECONDS, LINES, PROMPT, PUBLIC_KEY

LEFT_AS_DRAWN = 5
# How long a sandbox lives at least: none stops by itself while other cases are at it.
LIFE = 3600
ORG, CONFIRM, KEY = "X-Sandboxer-Org", "X-Sandboxer-Confirm-Delete", "Idempotency-Key"
# These take something away. What all other cases need is not theirs, even if a link leads there.
USING_UP = (
    "deleteEnvironment",
    "deleteNamedSnapshot",
    "deleteSandbox",
    "deleteSandboxSnapshots",
    "deleteSnapshot",
    "deleteWebhook",
    "revokeApiKey",
    "rotateApiKey",
    "stop",
)


class Cases:
    def __init__(self, world, own_key, isolated, links):
        self.world = world
        self.links = links
        self.own_key = own_key
        self.isolated = isolated
        self.turn = Counter()
        self.conversation = None
        self.in_chain = False

    def due(self, *what):
        """Whether this value is replaced; counts, so that every run decides alike."""
        if self.in_chain:
            return True
        self.turn[what] += 1
        return self.turn[what] % LEFT_AS_DRAWN != 0

    def prepare(self, case):
        """Called with each case right before it is sent."""
        operation = case.operation.definition.raw["operationId"]
        self.in_chain = case.meta.phase.name is TestPhase.STATEFUL
        if coverage_scenario(case) is CoverageScenario.UNSPECIFIED_HTTP_METHOD:
            return
        own_parts(case)
        if is_valid(case, ParameterLocation.PATH):
            self.path(operation, case)
        if is_valid(case, ParameterLocation.QUERY):
            self.query(operation, case)
        # A key that is missing on purpose would be put back.
        if not is_under_test(case, ParameterLocation.HEADER, "Authorization"):
            self.headers(operation, case)
        if isinstance(case.body, dict):
            if is_valid(case, ParameterLocation.BODY):
                self.body(operation, case.body)
            self.harmless(operation, case.body)
        if operation in USING_UP and case.path_parameters.get("apiKeyId") == self.own_key:
            # The key under test would end itself, and every case from then on would be a 401.
            case.path_parameters["apiKeyId"] = self.world.api_key()

    def path(self, operation, case):
        drawn = case.path_parameters
        # What a link has put in place stays, with the exception of what must not be taken away.
        if self.in_chain:
            # Among what was drawn are ids of earlier answers.
            free = [name for name in drawn if name not in self.links.placed(case, "path_parameters")]
        else:
            free = [name for name in drawn if drawn[name] not in self.world.known]
        if operation in USING_UP:
            free += [name for name in drawn if drawn[name] in self.world.lasting()]
        if not free:
            return
        # Only a case that leads somewhere shows what the lack of a header does.
        always = drawn[free[0]] in self.world.known or coverage_scenario(case) is CoverageScenario.MISSING_PARAMETER
        if not self.due(operation, "path") and not always:
            return
        spent = self.spent(operation)
        for name in drawn if spent else free:
            value = spent.get(name, self.lasting(operation, name))
            if value is not None:
                drawn[name] = value

    def lasting(self, operation, name):
        """Something of this kind that stays."""
        world = self.world
        if name == "sandboxId":
            if operation == "share":
                return world.shared
            return world.archived if self.turn[operation, "path"] % 7 == 3 and not self.in_chain else world.main
        return {
            "apiKeyId": self.own_key,
            "commandId": world.command,
            "environmentId": world.environment,
            "key": "SEEDED",
            "name": world.snapshot_name,
            "operationId": world.deletion,
            "orgId": world.org,
            "processId": world.process,
            "promptId": world.prompt,
            "repositoryId": "101",
            "snapshotId": world.snapshot,
            "stopId": world.stop,
            "webhookId": world.webhook,
        }.get(name)

    def spent(self, operation):
        """Something new for a case that uses it up, by the names of the path's parameters."""
        world = self.world
        match operation:
            case "deleteSandbox" | "stop":
                return {"sandboxId": world.sandbox()}
            case "deleteSandboxSnapshots" | "resume":
                return {"sandboxId": world.archive()}
            case "deleteSnapshot":
                return {"snapshotId": world.latest(world.archive())}
            case "revokeApiKey" | "rotateApiKey":
                return {"apiKeyId": world.api_key()}
            case "deleteWebhook":
                return {"webhookId": world.new_webhook()}
            case "deleteEnvironment":
                return {"environmentId": world.new_environment()}
            case "deleteNamedSnapshot":
                return {"name": world.named_snapshot()}
            case "revokeSnapshotShare":
                return {"name": world.snapshot_name, "shareId": world.share()}
            case "deleteEnvironmentVar":
                world.variable("SPENT")
                return {"environmentId": world.environment, "key": "SPENT"}
            case "deleteEnvironmentRepo":
                world.repository("102")
                return {"environmentId": world.environment, "repositoryId": "102"}
            case "stopCommand":
                return {"sandboxId": world.main, "processId": world.job("sleep 30")}
            case "steer":
                self.conversation = world.turn()
                return {"sandboxId": world.main}
        return {}

    def query(self, operation, case):
        for name in list(case.query or {}):
            if is_under_test(case, ParameterLocation.QUERY, name) or not isinstance(case.query[name], (str, int)):
                continue
            if name in self.links.placed(case, "query"):
                continue
            value = self.asked(operation, name)
            if value is not None and self.due(operation, "query", name):
                case.query[name] = value

    def asked(self, operation, name):
        """Something that a query can ask for."""
        match operation, name:
            case "deleteEnvironmentSecretFile", "path":
                self.world.secret_file("spent.txt")
                return "spent.txt"
            case "getSnapshotFile", "path":
                return "home/user/notes.txt"
            case "unhostPort", "port":
                self.world.host(9000)
                return 9000
        return {
            "ids": self.world.main,
            "mode": "commands",
            "org": self.world.org,
            "path": "notes.txt",
            "since": "2026-01-01T00:00:00Z",
            "state": "ready,archived",
            "teamId": self.world.org,
            "type": "prompt,response",
            "until": "2100-01-01T00:00:00Z",
        }.get(name)

    def headers(self, operation, case):
        headers = case.headers
        if headers.get(ORG) and not is_under_test(case, ParameterLocation.HEADER, ORG):
            if self.due(operation, ORG) or case.meta.generation.mode.is_negative:
                headers[ORG] = "personal"
        if not is_valid(case, ParameterLocation.HEADER):
            return
        if KEY in headers and self.due(operation, KEY):
            headers[KEY] = self.world.fresh()
        if CONFIRM in headers and self.due(operation, CONFIRM):
            headers[CONFIRM] = str(next(iter(case.path_parameters.values()), ""))

    def body(self, operation, body):
        if operation in ("createWebhook", "updateWebhook"):
            self.world.prune_webhooks()
        if operation == "command" and self.in_chain and "stream" not in body:
            # Most of what a command leads to needs one that runs in the background.
            body.setdefault("detached", True)
        for name in list(body):
            value = self.field(operation, name, body[name])
            if value is not None and body[name] is not None and self.due(operation, "body", name):
                body[name] = value

    def field(self, operation, name, drawn):
        """Something that a field can say."""
        world = self.world
        match operation, name:
            case "command", "command" if self.in_chain:
                return LINES[zlib.crc32(drawn.encode()) % len(LINES)]
            case "command", "command":
                self.turn[operation, "line"] += 1
                count = self.turn[operation, "line"]
                return LINES[count % len(LINES)] if count % 3 == 0 else None
            case "saveNamedSnapshot" | "createEnvironment", "name":
                return world.fresh()
            case "updateEnvironment", "name":
                return "ci"
            case "writeFile" | "setEnvironmentSecretFile", "path":
                return "cases/written.txt"
            case _, "secretFiles" if isinstance(drawn, list):
                return [{"path": f"cases/{number}.txt", "contents": "hush"} for number, _ in enumerate(drawn[:3])]
            case _, "repositories" if isinstance(drawn, list):
                return [{**row, "repositoryId": "101"} for row in drawn[:1] if isinstance(row, dict)]
            case "setActiveOrganization", "org":
                return world.org
        return {
            "actions": ["sandbox.read"],
            "agentIds": [world.main],
            "conversation": self.conversation,
            "cwd": "/home/user",
            "endpoint": world.target(),
            "env": {"CASE": "1"},
            "envContents": "CASE=1\n",
            "environment": "ci",
            "environmentIds": [world.environment],
            "from": world.snapshot_name,
            "headers": {"X-Case": "1"},
            "key": PUBLIC_KEY,
            "message": "go on",
            "org": "personal",
            "prompt": PROMPT,
            "repositoryId": "101",
            "sandboxId": world.main,
            "sandboxIds": [world.main],
            "teamId": "personal",
            "url": world.target(),
        }.get(name)

    def harmless(self, operation, body):
        """Whatever a case is about: nothing runs for long, and nothing is sent beyond this machine."""
        limit = body.get("timeoutSeconds")
        if operation == "command" and (limit is None or (isinstance(limit, int) and CAPPED_SECONDS < limit <= 600)):
            body["timeoutSeconds"] = CAPPED_SECONDS
        life = body.get("ttlSeconds")
        if isinstance(life, int) and 0 < life < LIFE:
            body["ttlSeconds"] = LIFE
        for name in ("url", "endpoint"):
            text = body.get(name)
            if isinstance(text, str) and ":" in text and not text.startswith(self.world.address):
                body[name] = self.world.target()
        for name in ("command", "setupScript"):
            # Without a wall around them, random lines are not run.
            text = body.get(name)
            if not self.isolated and isinstance(text, str) and text and text not in LINES:
                body[name] = LINES[0]
        if not self.isolated and isinstance(body.get("repositories"), list):
            body["repositories"] = [row | {"setupScript": LINES[0]} if isinstance(row, dict) else row for row in body["repositories"]]
        if operation == "createOrganization" and isinstance(body.get("name"), str) and 0 < len(body["name"]) < 90:
            # Two of one name could not be told apart in any later case.
            body["name"] += self.world.fresh()

    def settle(self, operation, case, response):
        """Called with each answer: notes what exists now, waits until what was begun is done, so that no later answer
        depends on how quickly that goes, and undoes what would change all cases after it."""
        world = self.world
        if operation == "steer":
            world.interrupt()
        if response.status_code >= 300:
            return
        try:
            answer = response.json()
        except ValueError:
            return
        # The names of these are in paths, too.
        names = ("id", "name") if operation in ("listNamedSnapshots", "saveNamedSnapshot") else ("id",)
        world.learn(answer, names)
        sandbox = case.path_parameters.get("sandboxId")
        match operation:
            case "create" | "fork" | "resume":
                world.wait_for(answer["sandbox"]["id"], "ready", "archived", "error")
            case "stop":
                world.wait_for(sandbox, "archived", "error")
            case "saveNamedSnapshot":
                world.saved(answer["snapshot"]["name"])
            case "prompt":
                world.prompted(sandbox, answer["promptId"])
            case "deleteSandbox" | "deleteSnapshot":
                world.deleted(answer["operation"]["id"])
            case "deleteSandboxSnapshots":
                for row in answer["operations"]:
                    world.deleted(row["id"])
            case "updateDataRetention":
                world.reset_retention()
            case "setActiveOrganization":
                world.call("PATCH", "/orgs/active", {"org": None})


def own_parts(case):
    """Gives a case parts of its own. Those that come from the document's examples are lent, and would be changed for all."""
    for name in ("path_parameters", "query", "headers", "body"):
        part = getattr(case, name)
        if isinstance(part, (Mapping, list)):
            # As it is: the case is to notice only what is changed from here on.
            object.__setattr__(case, name, copy.deepcopy(part))


def is_valid(case, location):
    """Whether this part of a case is one that the document allows."""
    part = case.meta.components.get(location) if case.meta is not None else None
    # What a link has put in place was not generated.
    return part is None or part.mode.is_positive


def is_under_test(case, location, name):
    """Whether the case is about this parameter."""
    data = case.meta.phase.data
    is_here = isinstance(data, CoveragePhaseData) and data.parameter_location == location
    return is_here and data.parameter == name
