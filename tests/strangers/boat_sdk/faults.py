"""Faults of the client, each shown, whatever the face: see faults.json."""

import contextlib
import json
import time
import unittest.mock

import pydantic
from agents import ended, prompt
from around import AT_WORK
from boat_sdk import (
    ApiException,
    CommandRequest,
    CreateSandboxEnvironmentRequest,
    CreateScopedApiKeyRequest,
    PromptRequest,
    boat_helpers,
)
from case import ERRORS
from scripted import scripted
from stranger import collect, equal, fault, refused, until


def _told(error):
    """What a model says of an answer that it does not take."""
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())


async def streams_are_read_by_none_of_the_methods_that_read(case):
    api = case.api.whole
    with case.sandbox() as sandbox_id:
        started = case.command(sandbox_id, "true", detached=True)
        for call in (
            lambda: api.attach_command(sandbox_id, started.process_id),
            lambda: api.attach_command_with_http_info(sandbox_id, started.process_id),
            lambda: api.command(sandbox_id, CommandRequest(command="true", stream=True)),
        ):
            wrong = await refused(call, ApiException, status=0)
            fault("streams", wrong.reason)


async def a_new_environment_is_not_recognised(case):
    api = case.api.whole
    for number, call in enumerate((api.create_environment, api.create_environment_with_http_info)):
        wanted = CreateSandboxEnvironmentRequest(name=f"unseen-{number}")
        wrong = await refused(lambda: call(wanted), pydantic.ValidationError)
        fault("environment-created", _told(wrong))
        made = next(known for known in api.environments().environments if known.name == wanted.name)
        api.delete_environment(made.id)


async def the_usage_of_a_persons_key_is_not_read(case):
    person = case.person.whole
    made = person.create_scoped_api_key(CreateScopedApiKeyRequest(name="mine", preset="read-only"))
    equal(case.of(made.secret).me().user.login, "alice")
    wrong = await refused(lambda: person.api_key_usage(made.api_key.id), pydantic.ValidationError)
    fault("usage-of-keys", _told(wrong))
    with case.person.opened("api_key_usage", made.api_key.id) as answer:
        usage = json.loads(answer.data)
    equal((usage["sandboxId"], usage["usage"]["requests"] >= 1, usage["createdResources"]), (None, True, []))
    person.revoke_api_key(made.api_key.id)


async def an_interrupted_run_is_waited_for_still(case):
    api = case.api.whole
    with case.sandbox() as sandbox_id:
        queued = prompt(case, sandbox_id, AT_WORK)
        running = lambda: api.prompt_run_status(sandbox_id, queued.prompt_id).prompt_run.status == "running"
        await until(running, "the turn")
        api.interrupt(sandbox_id)
        run = await until(ended(case, sandbox_id, queued.prompt_id), "the end")
        wait = lambda: boat_helpers.wait_for_prompt(api, sandbox_id, queued.prompt_id, timeout_seconds=0)
        wrong = await refused(wait, TimeoutError)
        fault("interrupted-runs", f"waiting for a run that is {run.status} ends with {type(wrong).__name__}")


@contextlib.contextmanager
def _scripted(case, *answers):
    """Another server, and a client of it."""
    with scripted(*answers) as server:
        yield server, case.of("x", server.url).whole


async def a_stream_that_breaks_off_looks_complete(case):
    lines = [{"type": "started", "commandId": "1"}, {"type": "stdout", "data": "half"}]
    with _scripted(case, (200, lines)) as (_, api):
        frames = await collect(boat_helpers.stream_command(api, "bx_22222222", "true"))
    fault("cut-streams", f"a stream without an exit ends as {[frame['type'] for frame in frames]}")


async def a_stream_without_anything_is_asked_for_at_once(case):
    exit_ = [{"type": "exit", "status": "exited", "exitCode": 0}]
    with _scripted(case, *[(200, [])] * 5, (200, exit_)) as (server, api), unittest.mock.patch.object(
        time, "sleep"
    ) as sleep:
        frames = await collect(boat_helpers.follow_command(api, "bx_22222222", 1))
        pauses = sleep.call_count
    equal([frame["type"] for frame in frames], ["exit"])
    fault("follow-without-pause", f"{len(server.asked)} connections for one frame, with {pauses} pauses")


async def the_last_events_of_a_run_are_missed(case):
    sandbox_id = "bx_22222222"
    none = {"ok": True, "type": "events.list", "id": sandbox_id, "events": []}
    run = {"id": "p", "promptId": "p", "sandboxId": sandbox_id, "status": "finished", "done": True}
    queued = {"ok": True, "type": "prompt.queued", "id": sandbox_id, "promptId": "p", "status": "queued"}
    queued |= {"provider": "codex", "promptRun": run}
    finished = {"ok": True, "type": "prompt.run", "id": sandbox_id, "promptRun": run}
    # It ends between the second look at the events and the one at the run.
    with _scripted(case, (200, none), (202, queued), (200, none), (200, finished)) as (server, api):
        hello = PromptRequest(provider="codex", prompt="hello")
        equal(await collect(boat_helpers.stream_prompt(api, sandbox_id, hello)), [])
    looks = [one.path.rsplit("/", 1)[1].split("?")[0] for one in server.asked]
    fault("last-events", f"stream_prompt() asks for {', '.join(looks)} and ends")


async def only_the_first_events_are_passed_over(case):
    sandbox_id = "bx_22222222"
    page = lambda name, more: {
        "ok": True,
        "type": "events.list",
        "id": sandbox_id,
        "events": [{"id": name, "type": "prompt", "timestamp": 1, "data": {"status": "finished"}}],
        "pageInfo": {"hasMore": more, "nextCursor": name if more else None, "limit": 1},
    }
    # All of it was there before.
    with _scripted(case, (200, page("first", True)), (200, page("second", False))) as (_, api):
        event = next(boat_helpers.stream_events(api, sandbox_id))
    fault("first-events", f"the {event.id} of 2 pages that were there comes as new")


async def an_id_leads_to_another_path(case):
    with _scripted(case, (404, [])) as (server, api):
        await refused(lambda: api.get(".."), ERRORS[404], status=404)
    fault("unchecked-ids", f"get('..') asks for {server.asked[0].path.rstrip('/')}")
