"""One face of the client: the methods that hand back what was answered, those that add the status and the headers, or
those that hand over the answer unread; each operation has one of each."""

import contextlib
import inspect
import json
import os
import typing

import boat_sdk
from absent import ABSENT
from boat_sdk import boat_helpers
from stranger import Recorder, refused, report

URL = os.environ["STRANGER_URL"]
KEY = "sbx_live_alice"

# The face, and how its methods' names end.
FACES = {"plain": "", "info": "_with_http_info", "unread": "_without_preload_content"}

ERRORS = {
    400: boat_sdk.exceptions.BadRequestException,
    401: boat_sdk.exceptions.UnauthorizedException,
    403: boat_sdk.exceptions.ForbiddenException,
    404: boat_sdk.exceptions.NotFoundException,
    409: boat_sdk.exceptions.ConflictException,
    422: boat_sdk.exceptions.UnprocessableEntityException,
    **dict.fromkeys(range(500, 600), boat_sdk.exceptions.ServiceException),
}


def operations():
    """The operations that the package has a method for."""
    names = [name for name, member in vars(boat_sdk.BoatApi).items() if inspect.isfunction(member)]
    endings = tuple(ending for ending in FACES.values() if ending)
    return [name for name in names if not name.startswith("_") and not name.endswith(endings)]


class Api:
    """All operations, by the methods of one face."""

    def __init__(self, whole, face):
        self.whole = whole
        self._ending = FACES[face]

    def __getattr__(self, operation):
        name = operation + self._ending
        method = getattr(self.whole, name)

        def call(*args, **kwargs):
            answer = method(*args, **kwargs)
            if self._ending == FACES["info"]:
                assert 200 <= answer.status_code <= 299 and answer.headers["x-request-id"], answer
                answer = answer.data
            elif self._ending == FACES["unread"]:
                answer = _read(operation, answer)
            report.called(f"BoatApi.{name}")
            return answer

        return call

    @contextlib.contextmanager
    def opened(self, operation, *args, **kwargs):
        """The answer of an operation, read by whoever asked for it."""
        name = operation + FACES["unread"]
        answer = getattr(self.whole, name)(*args, **kwargs)
        try:
            _check(answer)
            yield answer
            report.called(f"BoatApi.{name}")
        finally:
            answer.close()


def _check(answer):
    if not 200 <= answer.status <= 299:
        boat_sdk.ApiException.from_response(http_resp=answer, body=None, data=None)


def _read(operation, answer):
    """What the other faces would make of an answer that was not read."""
    _check(answer)
    kind = typing.get_type_hints(getattr(boat_sdk.BoatApi, operation))["return"]
    return answer.data if kind is bytes else kind.from_json(answer.data.decode())


def frames(answer):
    """The lines of a streamed answer."""
    return [json.loads(line) for line in answer.data.splitlines()]


async def fails(call, status, code):
    """What the error of this status and code says besides."""
    error = await refused(call, ERRORS.get(status, boat_sdk.ApiException), status=status)
    body = json.loads(error.body)
    assert body["code"] == code, f"{body['code']!r} instead of {code!r}: {body['message']}"
    # What is documented can be read.
    assert error.data is None or error.data.code == code, error.data
    assert error.__context__ is None, repr(error.__context__)
    assert body["requestId"].startswith("req_"), body
    return body


class Case:
    """What a scenario is given."""

    def __init__(self, face):
        self.face = face
        self.api = self.of(KEY)
        # Signed in, not with a key.
        self.person = self.of("alice-is-here")

    def of(self, key, url=URL):
        """The operations with another key."""
        configuration = boat_sdk.Configuration(host=url, access_token=key)
        return Api(boat_sdk.BoatApi(boat_sdk.ApiClient(configuration)), self.face)

    def create(self, **fields):
        """A sandbox that is ready."""
        fields.setdefault("type", "small")
        made = self.api.create(create_sandbox_request=boat_sdk.CreateSandboxRequest(**fields))
        return boat_helpers.wait_until_ready(self.api.whole, made.sandbox.id, 60, 0.02)

    def delete(self, sandbox_id):
        """Deletes a sandbox."""
        return self.api.delete_sandbox(sandbox_id=sandbox_id, x_ascii_confirm_delete=sandbox_id)

    @contextlib.contextmanager
    def sandbox(self, **fields):
        """The id of a sandbox that is ready, and deleted in the end."""
        sandbox_id = self.create(**fields).id
        try:
            yield sandbox_id
        finally:
            self.delete(sandbox_id)

    def command(self, sandbox_id, command, **fields):
        """What a command ended with, or how it was started."""
        return self.api.command(sandbox_id, boat_sdk.CommandRequest(command=command, **fields)).actual_instance

    def write(self, sandbox_id, path, content):
        """Writes a file."""
        return self.api.write_file(sandbox_id, boat_sdk.FileWriteRequest(path=path, content=content))

    def in_state(self, sandbox_id, state):
        """Something to look at until a sandbox is in this state."""
        return lambda: self.api.get(sandbox_id).sandbox.state == state


def take(face):
    """Notes what the package offers to programs of this face, but for what only the client's own service has."""
    found = operations()
    unknown = set(ABSENT) - set(found)
    assert not unknown, f"the client has no {unknown}"
    for name in found:
        if name not in ABSENT:
            report.write("method", name=f"BoatApi.{name}{FACES[face]}")
    if face == "plain":
        helpers = [
            name
            for name, member in vars(boat_helpers).items()
            if inspect.isfunction(member)
            and member.__module__ == boat_helpers.__name__
            and not name.startswith("_")
        ]
        Recorder("boat_sdk").take_functions(boat_helpers, helpers)
