"""Faults of the client that show against answers which a server in order does not give: see faults.json."""

import contextlib
import json
import logging
import unittest.mock

import httpx
import sandboxer
from sandboxer import APIConnectionError, InternalServerError, NotFoundError, RateLimitError
from scripted import Cut, scripted
from stranger import collect, done, equal, fault, refused, within

SANDBOX = {"id": "bx_22222222", "state": "ready"}
CREATED = {"ok": True, "type": "sandbox.created", "status": "provisioning", "ttlSeconds": None, "sandbox": SANDBOX}
RUN = {"id": "p", "promptId": "p", "sandboxId": SANDBOX["id"], "status": "finished", "done": True}
QUEUED = {"ok": True, "type": "prompt.queued", "id": SANDBOX["id"], "promptId": "p", "promptRun": RUN}
QUEUED |= {"status": "queued", "provider": "codex"}
TWO_EVENTS = 'id: 1\ndata: {"id":"first","type":"response"}\n\nid: 2\ndata: {"id":"second","type":"response"}\n'


def _refusal(status, code, headers=(), **details):
    told = {"status": status, "code": code, "message": "no"}
    return status, {"ok": False, "type": "sandbox.error", **told, "error": {**told, "details": details}}, headers


def _events(*events):
    return 200, {"ok": True, "type": "events.list", "id": SANDBOX["id"], "events": list(events)}


@contextlib.asynccontextmanager
async def _against(case, *answers, **options):
    """A server that answers so, a client of it, and a sandbox of that."""
    with scripted(*answers) as server:
        async with within(case.Client(base_url=server.url, api_key="x", **options)) as client:
            yield server, client, case.Sandbox(client, sandboxer.models.Sandbox(**SANDBOX))


@contextlib.contextmanager
def _pauses():
    """The pauses that the client would make."""
    pauses = []

    async def asleep(seconds):
        pauses.append(seconds)

    utils = sandboxer._utils
    with unittest.mock.patch.object(utils, "sleep", pauses.append), unittest.mock.patch.object(utils, "asleep", asleep):
        yield pauses


# Streams.


async def a_stream_that_breaks_off_is_a_result(case):
    frames = [{"type": "started", "commandId": "1"}, {"type": "stdout", "data": "half"}]
    async with _against(case, (200, frames)) as (_, _, sandbox):
        result = await done((await done(sandbox.exec_stream("true"))).wait())
    fault("cut-streams", f"a stream without an exit is a result with exit_code {result.exit_code}")


async def a_cut_of_attach_is_not_mended(case):
    frames = [{"type": "attached", "stdoutOffset": 0, "stderrOffset": 0}, {"type": "stdout", "data": "half", "nextOffset": 4}]
    async with _against(case, (200, Cut(frames))) as (server, _, sandbox):
        wrong = await refused(lambda: collect(sandbox.attach(1)), APIConnectionError)
        fault("attach-gives-up", f"a cut of attach() is {type(wrong).__name__} after {len(server.asked)} connection")


async def half_an_event_is_given_out(case):
    async with _against(case, (200, TWO_EVENTS)) as (_, _, sandbox):
        events = await collect(sandbox.events(mode="sse", follow=False))
    fault("half-events", f"of an event and the beginning of another come {', '.join(event.id for event in events)}")


async def a_cut_of_events_is_an_error_of_the_transport(case):
    async with _against(case, (200, Cut(TWO_EVENTS))) as (_, _, sandbox):
        wrong = await refused(lambda: collect(sandbox.events(mode="sse")), httpx.RemoteProtocolError)
    fault("raw-errors", f"a cut of events() is {type(wrong).__name__}")


async def an_event_that_changes_back_is_not_told(case):
    event = lambda text: {"id": "e", "type": "response", "data": {"content": text}}
    async with _against(case, _events(event("a"), event("b"), event("a"))) as (_, _, sandbox):
        events = await collect(sandbox.events(mode="poll", follow=False))
    fault("changes-back", f"a, b, a comes as {', '.join(event.data['content'] for event in events)}")


async def flags_of_a_command_are_lost(case):
    frames = [{"type": "attached"}, {"type": "exit", "exitCode": None, "timedOut": True, "oomKilled": True}]
    async with _against(case, (200, frames)) as (_, _, sandbox):
        result = await done(sandbox.command(1).wait())
    fault("lost-flags", f"out of time and memory is timed_out {result.timed_out}, oom_killed {result.oom_killed}")


# Agents.


async def a_text_has_what_was_said_on_the_way(case):
    said = lambda text: {"id": text, "type": "response", "taskId": "p", "data": {"content": text}}
    finished = {"ok": True, "type": "prompt.run", "id": SANDBOX["id"], "promptRun": RUN}
    answers = [(202, QUEUED), (200, finished), _events(said("wait"), said("done"))]
    async with _against(case, *answers) as (_, _, sandbox):
        text = await done((await done(sandbox.prompt("hello"))).text())
    fault("whole-text", f"the final text is {' and '.join(text.split())}")


async def interrupting_a_run_interrupts_all(case):
    interrupted = {"ok": True, "type": "sandbox.interrupted", "id": SANDBOX["id"], "status": "interrupted"}
    async with _against(case, (202, QUEUED), (200, interrupted)) as (server, _, sandbox):
        await done((await done(sandbox.prompt("hello"))).interrupt())
        asked = server.asked[-1].path.removeprefix(f"/api/v1/sandboxes/{SANDBOX['id']}/")
    fault("interrupts-all", f"interrupt() of a run without a conversation asks for {asked}")


# Repeating.


async def what_is_to_fail_fast_is_asked_for_again(case):
    async with _against(case, *[_refusal(503, "no_ready_machine")] * 4) as (server, client, _):
        with _pauses():
            await refused(lambda: client.create(fail_fast=True), InternalServerError, code="no_ready_machine")
        fault("slow-fail-fast", f"create(fail_fast=True) asks {len(server.asked)} times")


async def the_quota_of_a_day_is_asked_for_again(case):
    async with _against(case, *[_refusal(429, "rate_limited", window="day")] * 4) as (server, client, _):
        with _pauses():
            await refused(lambda: client.create(), RateLimitError, code="rate_limited")
        fault("days-quota", f"create() asks {len(server.asked)} times where the quota of a day is used up")


async def a_long_wait_is_cut_short(case):
    asked = _refusal(429, "rate_limited", {"Retry-After": "600"})
    async with _against(case, asked, asked, max_retries=1) as (_, client, _):
        with _pauses() as pauses:
            await refused(lambda: client.create(), RateLimitError, retry_after=600)
    fault("short-waits", f"told to wait for 600 seconds it waits for {', '.join(f'{pause:.0f}' for pause in pauses)}")


async def a_create_in_progress_is_given_up(case):
    async with _against(case, *[_refusal(409, "idempotency_in_progress")] * 4) as (server, client, _):
        with _pauses() as pauses:
            await refused(lambda: client.create(), sandboxer.ConflictError, code="idempotency_in_progress")
        waited = "less" if sum(pauses) < 10 else "more"
        asked = len(server.asked)
    fault("gives-up-creates", f"a create in progress is asked for {asked} times in {waited} than 10 seconds")


async def what_could_be_repeated_is_not(case):
    async with _against(case, None) as (server, _, sandbox):
        await refused(lambda: sandbox.files.write("a", "b"), APIConnectionError)
        fault("lost-writes", f"a file whose answer was lost is written {len(server.asked)} time")


async def a_write_in_doubt_is_said_to_be_retryable(case):
    async with _against(case, _refusal(500, "internal_error")) as (server, client, _):
        wrong = await refused(lambda: client.api.stop(SANDBOX["id"]), InternalServerError)
        tries = len(server.asked)
    told = f"retryable={wrong.retryable}, {tries} try"
    fault("misleading-retryable", f"a stop that was not repeated but may be done says {told}")


async def an_answer_that_is_given_once_is_lost(case):
    async with _against(case, None, _refusal(404, "not_found")) as (_, client, _):
        with _pauses():
            wrong = await refused(lambda: client.get(SANDBOX["id"]), NotFoundError)
    fault("answered-once", f"what is answered once and lost on the way is {type(wrong).__name__}")


async def a_page_that_leads_to_itself_is_read_for_ever(case):
    info = {"hasMore": True, "nextCursor": "same", "limit": 1}
    page = {"ok": True, "type": "sandbox.list", "sandboxes": [SANDBOX], "pageInfo": info}
    async with _against(case, *[(200, page)] * 4) as (server, client, _):
        seen = []
        await collect(client.list(), lambda sandbox: seen.append(sandbox) or len(seen) == 4)
        fault("same-cursor", f"a page that leads to itself is read {len(server.asked)} times, and on")


# What is handed out.


async def a_sandbox_without_its_name_is_lost(case):
    async with _against(case, (202, CREATED), _refusal(500, "internal_error")) as (server, client, _):
        wrong = await refused(lambda: client.create(name="n", wait=False), InternalServerError)
        assert SANDBOX["id"] not in f"{wrong} {vars(wrong)}"
        asked = ", ".join(one.command for one in server.asked)
    fault("lost-sandboxes", f"create(name=) that cannot name asks for {asked} and raises without the id")


async def a_desktop_without_a_url_is_an_answer(case):
    async with _against(case, (200, {"ok": True, "type": "desktop.url", "success": False})) as (_, _, sandbox):
        answer = await done(sandbox.desktop())
    fault("no-desktop", f"a desktop that could not be had has the URL {answer.desktop_url}")


async def what_is_no_json_is_an_error_of_json(case):
    async with _against(case, (200, "<p>Welcome</p>", {"Content-Type": "text/html"})) as (_, client, _):
        wrong = await refused(lambda: client.api.me(), json.JSONDecodeError)
    fault("no-json", f"a page of HTML is {type(wrong).__name__}")


async def an_odd_field_changes_the_whole_answer(case):
    odd = {"ok": True, "type": "sandbox.info", "sandbox": {**SANDBOX, "createdAt": {}}}
    logger = logging.getLogger("sandboxer")
    async with _against(case, (200, odd)) as (_, client, _):
        with unittest.mock.patch.object(logger, "disabled", True):
            answer = await done(client.api.get(SANDBOX["id"]))
    fault("odd-fields", f"a sandbox with one odd field is a {type(answer.sandbox).__name__}")


# Keys.


async def the_key_goes_to_any_host(case):
    with scripted((200, {})) as other:
        async with _against(case) as (_, client, _):
            await done(client.api.request("GET", other.url))
        fault("key-for-all", f"another host is sent Authorization: {other.asked[0].headers['Authorization']}")


async def a_header_in_small_letters_is_one_more(case):
    async with _against(case, (200, {}), default_headers={"authorization": "Bearer y"}) as (server, client, _):
        await done(client.api.request("GET", "/me"))
        sent = server.asked[0].headers.get_all("Authorization")
    fault("twice-a-header", f"a key in a header of one's own goes out as {', '.join(sorted(sent))}")


async def a_configuration_shows_the_key(case):
    async with within(case.new()) as client:
        shown = "the key" if "sbx_live_alice" in repr(client.config) else "no key"
    fault("key-shown", f"the repr of a configuration has {shown}")


async def a_tolerance_can_be_no_number(case):
    helpers = sandboxer.webhooks
    signed = helpers.sign_webhook(b"{}", "whsec_x", timestamp=1)
    equal(helpers.verify_webhook(b"{}", signed, "whsec_x"), False)
    taken = helpers.verify_webhook(b"{}", signed, "whsec_x", tolerance_seconds=float("nan"))
    fault("no-tolerance", f"a delivery of 1970 with a tolerance of nan is {'taken' if taken else 'refused'}")
