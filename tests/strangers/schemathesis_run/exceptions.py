"""What may differ, from exceptions.yaml, and the requests that show it."""

import re
from collections import Counter

from schemathesis.generation import GenerationMode

from examples import PARTS, STREAMS, example

# The checks by the failures that they report.
CHECKS = {
    "RejectedPositiveData": "positive_data_acceptance",
    "AcceptedNegativeData": "negative_data_rejection",
    "MissingHeaderNotRejected": "missing_required_header",
    "UnsupportedMethodResponse": "unsupported_method",
    "AllowHeaderMismatch": "allow_header_conformance",
}


class Exceptions:
    def __init__(self, rows, cases):
        self.rows = rows
        self.cases = cases
        self.used = Counter()
        # The ids of the cases that are sent as they are.
        self.shown = set()

    def allows(self, operation, failure, case, response):
        """Whether a row names this difference."""
        check = CHECKS.get(type(failure).__name__)
        answer = parts(response)
        for number, row in enumerate(self.rows):
            if row["check"] != check or operation not in row["operations"]:
                continue
            if "part" in row and wrong_parts(case) != {PARTS[row["part"]]}:
                continue
            if all(answer[name] == value for name, value in row["answer"].items()):
                self.used[number, operation] += 1
                return True
        return False

    def add_examples(self, operation, examples):
        """Adds the requests of an operation's rows, and its stream, to the cases that are sent first."""
        name = operation.definition.raw["operationId"]
        wanted = [(STREAMS[name], ())] if name in STREAMS else []
        for row in self.rows:
            if row["operations"].get(name) is not None:
                wanted.append((row["operations"][name], [row["part"]] if "part" in row else []))
        for request, wrong in wanted:
            case = example(operation, self.cases, request, wrong)
            self.shown.add(case.id)
            examples.append(case)

    def each(self):
        for number, row in enumerate(self.rows):
            for operation in row["operations"]:
                yield row, operation, self.used[number, operation]

    def unused(self):
        return [f"{row['check']} of {operation}: {row['why']}" for row, operation, used in self.each() if not used]

    def report(self):
        return [
            {"check": row["check"], "operation": operation, "answer": row["answer"], "why": row["why"], "used": used}
            for row, operation, used in self.each()
        ]


def wrong_parts(case):
    """The parts of a request that are not as the document allows."""
    return {part for part, component in case.meta.components.items() if component.mode is GenerationMode.NEGATIVE}


def parts(response):
    """What a row can name of an answer."""
    found = {"status": response.status_code, "code": None, "field": None}
    try:
        answer = response.json()
        found["code"] = answer.get("code")
        field = answer["error"].get("details", {}).get("field")
        found["field"] = field and re.split(r"[.\[]", field)[0]
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    return found
