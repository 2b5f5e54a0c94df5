"""Prints python_names.txt: the public names of the two Python packages, read from the packages themselves.

    pip install sandboxer-sdk==0.1.1 boat_sdk==1.12.1
    python tests/porting/list_names.py > tests/porting/python_names.txt

A line is a package and a class, `Class.member`, `Class.member(option)` or a function. Only names are read.
Left out: the async classes that mirror a synchronous one, the models, and of boat_sdk the two variants
`_with_http_info` and `_without_preload_content` that every method has.
"""

import dataclasses
import inspect

import boat_sdk
import sandboxer
from boat_sdk import boat_helpers, exceptions
from sandboxer.aio import AsyncSandboxer

# Attributes that exist only on instances.
ATTRIBUTES = {
    "Sandboxer": ["api"],
    "Sandbox": ["client", "info", "on_exit", "files"],
    "Command": ["sandbox", "process_id", "started", "pid", "command_id", "command"],
    "CommandStream": ["command_id", "exit_frame", "error_frame"],
    "PromptRun": ["sandbox", "queued", "prompt_id", "conversation_id", "run"],
    "SandboxerError": ["message", "status", "code", "details", "request_id", "retryable", "body", "headers"],
    "WaitTimeoutError": ["last"],
    "SandboxStateError": ["state", "sandbox"],
    "CommandError": ["result"],
}


def options(function):
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]


def sandboxer_names():
    for name in sandboxer.__all__:
        value = getattr(sandboxer, name)
        if name.startswith(("Async", "__")) or name == "models":
            continue
        if not inspect.isclass(value):
            yield name
            yield from (f"{name}({option})" for option in options(value))
            continue
        yield name
        inherited = {member for base in (Exception, dict) if issubclass(value, base) for member in dir(base)}
        if name == "Sandboxer":
            yield from (f"Sandboxer({option})" for option in options(value.__init__))
        for member in dir(value):
            if member.startswith("_") or member in inherited:
                continue
            yield f"{name}.{member}"
            if name not in ("SandboxerApi",) and callable(getattr(value, member)):
                yield from (f"{name}.{member}({option})" for option in options(getattr(value, member)))
        known = set(dir(value))
        yield from (f"{name}.{member}" for member in ATTRIBUTES.get(name, []) if member not in known)
        if dataclasses.is_dataclass(value) or issubclass(value, dict):
            yield from (f"{name}.{member}" for member in value.__annotations__)
    yield from (f"AsyncSandboxer.{member}" for member in dir(AsyncSandboxer) if member == "aclose")


def boat_names():
    for member in dir(boat_sdk.BoatApi):
        if not member.startswith("_") and not member.endswith(("_with_http_info", "_without_preload_content")):
            yield f"BoatApi.{member}"
    for cls in (boat_sdk.ApiClient, boat_sdk.Configuration, boat_sdk.ApiResponse):
        yield cls.__name__
    for name, value in vars(boat_helpers).items():
        if inspect.isfunction(value) and value.__module__ == boat_helpers.__name__ and not name.startswith("_"):
            yield name
            parameters = inspect.signature(value).parameters.values()
            yield from (f"{name}({p.name})" for p in parameters if p.default is not p.empty)
    for name, value in vars(exceptions).items():
        if inspect.isclass(value) and value.__module__ == exceptions.__name__:
            yield name


for package, names in (("sandboxer-sdk", sandboxer_names()), ("boat_sdk", boat_names())):
    for line in sorted(set(names)):
        print(package, line)
