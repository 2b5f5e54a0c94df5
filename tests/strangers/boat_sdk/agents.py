"""Prompts, their events, conversations, and having a word while an agent works."""

import uuid

from around import AT_WORK
from boat_sdk import PromptRequest, SteerRequest
from case import fails
from stranger import equal, until


def prompt(case, sandbox_id, text, **fields):
    """A prompt that was queued."""
    return case.api.prompt(sandbox_id, PromptRequest(provider="codex", prompt=text, **fields))


def ended(case, sandbox_id, prompt_id):
    """Something to look at until a run is over."""

    def look():
        run = case.api.prompt_run_status(sandbox_id, prompt_id).prompt_run
        return run.done and run

    return look


async def a_prompt_is_answered(case):
    api = case.api
    with case.sandbox() as sandbox_id:
        options = {"new": True, "model": "m", "reasoning_effort": "low", "fast": False}
        queued = prompt(case, sandbox_id, "```sh\necho made\n```", **options)
        equal((queued.type, queued.status, queued.provider), ("prompt.queued", "queued", "codex"))
        equal((queued.id, queued.model, queued.fast), (sandbox_id, "m", False))
        run = await until(ended(case, sandbox_id, queued.prompt_id), "the answer")
        equal((run.status, run.conversation_id), ("finished", queued.conversation_id))
        second = prompt(case, sandbox_id, "again", conversation_id=uuid.UUID(queued.conversation_id))
        equal(second.conversation_id, queued.conversation_id)
        await until(ended(case, sandbox_id, second.prompt_id), "the answer")
        other = prompt(case, sandbox_id, "elsewhere", new=True)
        await until(ended(case, sandbox_id, other.prompt_id), "the answer")
        known = api.conversations(sandbox_id).conversations
        equal([one.id for one in known], [other.conversation_id, queued.conversation_id])
        equal([(one.prompts, one.current) for one in known], [(1, True), (2, False)])

        events = api.events(sandbox_id, sort="asc", conversation=queued.conversation_id).events
        of_first = [event for event in events if event.task_id == queued.prompt_id]
        last = of_first[-1]
        equal((last.type, last.id, last.data["status"]), ("prompt", queued.prompt_id, "finished"))
        assert any(event.type == "response" and "made" in str(event.data) for event in of_first), of_first
        page = api.events(sandbox_id, limit=2, type="prompt")
        equal((len(page.events), page.page_info.has_more), (2, True))
        following = api.events(sandbox_id, type="prompt", cursor=page.page_info.next_cursor)
        equal([event.id for event in following.events], [queued.prompt_id])
        await fails(lambda: api.prompt_run_status(sandbox_id, "none"), 404, "not_found")


async def an_agent_at_work_is_spoken_to_and_interrupted(case):
    api = case.api
    with case.sandbox() as sandbox_id:

        def at_work(prompt_id):
            return lambda: api.prompt_run_status(sandbox_id, prompt_id).prompt_run.status == "running"

        queued = prompt(case, sandbox_id, AT_WORK)
        await until(at_work(queued.prompt_id), "the turn")
        conversation = uuid.UUID(queued.conversation_id)
        for number, options in enumerate(({}, {"conversation": queued.conversation_id})):
            steered = api.steer(sandbox_id, SteerRequest(message=f"word {number}"), **options)
            equal((steered.type, steered.status, steered.native), ("prompt.steered", "steered", True))
        api.steer(sandbox_id, SteerRequest(message="word 2", conversation=conversation))
        case.write(sandbox_id, "go", "")
        equal((await until(ended(case, sandbox_id, queued.prompt_id), "the answer")).status, "finished")
        steers = api.events(sandbox_id, type="steer").events
        equal([event.data["message"] for event in steers], ["word 2", "word 1", "word 0"])
        said = await fails(lambda: api.steer(sandbox_id, SteerRequest(message="late")), 409, "no_running_turn")
        equal(said["error"]["details"]["reason"], "turn_ended")
        case.command(sandbox_id, "rm go")
        for options in ({"conversation": queued.conversation_id}, {}):
            queued = prompt(case, sandbox_id, AT_WORK)
            await until(at_work(queued.prompt_id), "the turn")
            answer = api.interrupt(sandbox_id, **options)
            equal((answer.type, answer.status), ("sandbox.interrupted", "interrupted"))
            equal((await until(ended(case, sandbox_id, queued.prompt_id), "the end")).status, "interrupted")
