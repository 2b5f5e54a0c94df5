"""What may differ, from exceptions.yaml, and the requests that show it."""

import json
import re
from collections import Counter
from collections.abc import Mapping

from schemathesis.generation import GenerationMode

import facts
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
            is_named = row["check"] == check and operation in row["operations"]
            if is_named and answered(row["answer"], answer) and self.is_about(row, failure, case):
                self.used[number, operation] += 1
                return True
        return False

    def is_about(self, row, failure, case):
        """Whether a row is about what was sent."""
        if "part" in row and wrong_parts(case) != {PARTS[row["part"]]}:
            return False
        if "undocumented" in row and (failure.missing_methods, failure.undocumented_methods) != ([], row["undocumented"]):
            return False
        return all(self.is_so(said, sent(case, name)) for name, said in row.get("sent", {}).items())

    def is_so(self, said, value):
        """Whether a value is as a row says: `$name` is a fact, all else a pattern of its text."""
        if said.startswith("$"):
            return value is not None and getattr(facts, said[1:])(self.cases.world, value)
        text = value if isinstance(value, str) else json.dumps(value)
        return re.fullmatch(said, text, re.DOTALL) is not None

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


def answered(named, answer):
    return all(answer[name] == value for name, value in named.items())


def sent(case, name):
    """What a request has by this name, in whichever part; what it does not have is null."""
    for part in (case.body, case.query, case.path_parameters, case.headers):
        if isinstance(part, Mapping) and name in part:
            return part[name]
    return None


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
