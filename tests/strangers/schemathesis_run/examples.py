"""Requests that are sent in every run, as they are written."""

from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation import GenerationMode
from schemathesis.generation.meta import (
    CaseMetadata,
    ComponentInfo,
    ExamplesPhaseData,
    GenerationInfo,
    PhaseInfo,
    TestPhase,
)

PARTS = {
    "path": ParameterLocation.PATH,
    "query": ParameterLocation.QUERY,
    "headers": ParameterLocation.HEADER,
    "body": ParameterLocation.BODY,
}
# The streams, which chance would not ask for in each run.
STREAMS = {
    "attachCommand": {},
    "command": {"body": {"command": "echo out; echo err >&2; exit 3", "stream": True}},
    "events": {"headers": {"Accept": "text/event-stream"}},
}


def example(operation, cases, request, wrong=()):
    """A case of an operation, of which these parts are wrong; paths that the request leaves out lead to what is there."""
    name = operation.definition.raw["operationId"]
    request = filled(cases.world, request)
    path = {one.name: cases.lasting(name, one.name) for one in operation.path_parameters}
    path.update(request.get("path", {}))
    modes = {PARTS[part]: GenerationMode.NEGATIVE if part in wrong else GenerationMode.POSITIVE for part in request}
    mode = GenerationMode.NEGATIVE if wrong else GenerationMode.POSITIVE
    meta = CaseMetadata(
        generation=GenerationInfo(time=0.0, mode=mode),
        components={part: ComponentInfo(mode=mode) for part, mode in modes.items()},
        phase=PhaseInfo(
            name=TestPhase.EXAMPLES,
            data=ExamplesPhaseData(description=None, parameter=None, parameter_location=None, location=None),
        ),
    )
    body = {"body": request["body"], "media_type": "application/json"} if "body" in request else {}
    return operation.Case(
        path_parameters=path, query=request.get("query"), headers=request.get("headers"), _meta=meta, **body
    )


def filled(world, value):
    """Puts what `$name` stands for into a request."""
    if isinstance(value, dict):
        return {name: filled(world, inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [filled(world, inner) for inner in value]
    if isinstance(value, str) and value.startswith("$"):
        found = getattr(world, value[1:])
        return found() if callable(found) else found
    return value
