"""The document's links: which answers lead to which requests, and whether they were followed."""

from collections import Counter

from schemathesis.core.result import Ok
from schemathesis.engine.recorder import ScenarioRecorder


class Links:
    """Counts for each link of the document how often it led to a success."""

    def __init__(self):
        self.followed = Counter()
        # By the id of a case that a link led to: the operation it came from, and what the link says.
        self.steps = {}

    def read(self, raw):
        """Takes them from the document."""
        for path in raw["paths"].values():
            for method, operation in path.items():
                for response in operation["responses"].values() if method != "parameters" else ():
                    for link in response.get("links", {}).values():
                        self.followed[f"{operation['operationId']} -> {link['operationId']}"] = 0

    def watch(self):
        """Looks on while schemathesis notes its steps, which it does before each is sent. No hook is told of them."""
        record = ScenarioRecorder.record_case

        def told(recorder, **step):
            if step.get("transition") is not None:
                before = recorder.cases[step["parent_id"]].value
                self.steps[step["case"].id] = operation_of(before), step["transition"].parameters
            record(recorder, **step)

        ScenarioRecorder.record_case = told

    def placed(self, case, part):
        """The names in a part of a case whose values a link has put in place; some are left out on purpose."""
        _, said = self.steps.get(case.id, (None, {}))
        sent = getattr(case, part) or {}
        return {
            name
            for name, taken in said.get(part, {}).items()
            if isinstance(taken.value, Ok) and str(sent.get(name)) == str(taken.value.ok())
        }

    def note(self, case, response):
        """Counts what was followed: all that the link says was sent."""
        before, said = self.steps.get(case.id, (None, {}))
        is_whole = all(self.placed(case, part) == names.keys() for part, names in said.items())
        if before is not None and is_whole and response.status_code < 300:
            self.followed[f"{before} -> {operation_of(case)}"] += 1
        self.steps.pop(case.id, None)


def operation_of(case):
    return case.operation.definition.raw["operationId"]
