"""Prompts, their events in three modes, conversations, and having a word while an agent works."""

import sandboxer
from around import AT_WORK, meanwhile, move_clock
from case import URL
from sandboxer import NotFoundError
from stranger import collect, done, equal, fault, refused, until, within


def _is_end(prompt_id):
    def is_end(event):
        return event.type == "prompt" and event.id == prompt_id and event.data["status"] == "finished"

    return is_end


async def a_prompt_is_answered(case):
    async with case.sandbox(type="small") as sandbox:
        api, functions = sandbox.api, case.functions
        run = await done(sandbox.prompt("```sh\necho made\n```", provider="codex", new=True))
        assert run.id == run.prompt_id and run.id in repr(run) and run.conversation_id
        finished = await done(run.wait(timeout=120, poll_interval=0.05))
        equal((finished.status, finished.done, (await done(run.status())).status), ("finished", True, "finished"))
        assert "made" in await done(run.text(timeout=60))
        equal((await done(sandbox.refresh())).state, "idle")
        low = await done(api.prompt(sandbox.id, {"prompt": "again", "conversationId": run.conversation_id}))
        equal((low.type, low.status, low.conversation_id), ("prompt.queued", "queued", run.conversation_id))
        waited = await done(functions.wait_for_prompt(api, sandbox.id, low.prompt_id, timeout=60, poll_interval=0.05))
        equal(waited.status, "finished")
        again = await done(functions.wait_for_prompt_done(api, sandbox.id, low.prompt_id))
        equal(again.id, low.prompt_id)
        status = await done(api.prompt_run_status(sandbox.id, low.prompt_id))
        equal((status.type, status.prompt_run.conversation_id), ("prompt.run", run.conversation_id))
        await done(functions.wait_until_idle(api, sandbox.id, timeout=60, poll_interval=0.05))
        conversations = await done(sandbox.conversations())
        equal([(known.id, known.prompts, known.current) for known in conversations], [(run.conversation_id, 2, True)])
        other = await done(sandbox.prompt("elsewhere", new=True, model="gpt-x", reasoning_effort="low"))
        await done(other.wait(timeout=60, poll_interval=0.05))
        listed = await done(api.conversations(sandbox.id))
        equal([known.id for known in listed.conversations], [other.conversation_id, run.conversation_id])
        await refused(lambda: api.prompt_run_status(sandbox.id, "none"), NotFoundError, status=404)


async def a_prompt_streams(case):
    async with case.sandbox(type="small") as sandbox:
        api, functions = sandbox.api, case.functions
        events = await collect(functions.stream_prompt(api, sandbox.id, prompt="hello", poll_interval=0.05))
        prompt_id = next(event.task_id or event.id for event in events)
        assert any(map(_is_end(prompt_id), events)), events
        assert any(event.type == "response" for event in events)
        run = await done(sandbox.prompt("hello again"))
        events = await collect(functions.prompt_events(api, sandbox.id, run.prompt_id, poll_interval=0.05))
        assert {event.task_id or event.id for event in events} == {run.prompt_id}
        again = await collect(run.events(poll_interval=0.05, type="response"))
        equal({event.type for event in again}, {"response"})


def _hurry(over):
    """Moves the clock as long as a stream goes on on which nothing comes any more."""
    while not over.wait(0.1):
        move_clock(15)


async def events_come_in_three_modes(case):
    requests = []
    http = case.watching(requests)
    async with within(case.new(http_client=http)) as client:
        api, functions = client.api, case.functions
        sandbox = await done(client.create(type="small", ttl_seconds=None))
        for mode in ("poll", "sse", "auto"):
            run = await done(sandbox.prompt("hello"))
            events = await collect(sandbox.events(mode=mode, poll_interval=0.05), _is_end(run.id))
            assert any(event.type == "response" and event.task_id == run.id for event in events), mode
            prompts = functions.stream_events(
                api, sandbox.id, mode=mode, type="prompt", conversation=run.conversation_id, poll_interval=0.05
            )
            equal({event.type for event in await collect(prompts, _is_end(run.id))}, {"prompt"})
            # All there is, and no more: a stream has to end for that.
            with meanwhile(_hurry):
                listed = await collect(sandbox.events(mode=mode, follow=False, poll_interval=0.05))
            assert any(map(_is_end(run.id), listed)), listed
            assert run.id in [event.task_id for event in listed]
            with meanwhile(_hurry):
                own = await collect(run.events(mode=mode, poll_interval=0.05))
            assert own and {event.task_id or event.id for event in own} == {run.id}
        streams = [request for request in requests if "text/event-stream" in request.headers["accept"]]
        assert streams and any("last-event-id" in request.headers for request in streams)
        await done(sandbox.delete())
    await case.close(http)


async def what_was_there_before_is_passed_over(case):
    requests = []
    http = case.watching(requests)
    async with within(case.new(http_client=http)) as client:
        sandbox = await done(client.create(type="small"))
        for mode in ("poll", "sse", "auto"):
            before = await done(sandbox.prompt("hello"))
            await done(before.wait(timeout=60, poll_interval=0.05))
            run = await done(sandbox.prompt(AT_WORK))
            requests.clear()

            def release(over):
                # The second question comes after the answer to the first: what was there is passed over by then.
                while len(requests) < 2 and not over.wait(0.02):
                    pass
                with sandboxer.Sandboxer(base_url=URL, api_key="sbx_live_alice") as other:
                    other.api.write_file(sandbox.id, path="go", content="")

            with meanwhile(release):
                events = await collect(
                    sandbox.events(mode=mode, poll_interval=0.05, from_start=False), _is_end(run.id)
                )
            equal({event.task_id or event.id for event in events}, {run.id})
            await done(sandbox.exec("rm go"))
        await done(sandbox.delete())
    await case.close(http)


async def events_are_listed_in_pages(case):
    async with case.sandbox(type="small") as sandbox:
        api = sandbox.api
        for _ in range(3):
            run = await done(sandbox.prompt("hello"))
            await done(run.wait(timeout=60, poll_interval=0.05))
        page = await done(api.events(sandbox.id, limit=2, sort="asc", type="prompt"))
        equal((len(page.events), page.page_info.has_more), (2, True))
        following = await done(
            api.events(sandbox.id, sort="asc", type="prompt", cursor=page.page_info.next_cursor, conversation=run.conversation_id)
        )
        equal([event.id for event in following.events], [run.id])


async def an_agent_at_work_is_spoken_to_and_interrupted(case):
    async with case.sandbox(type="small") as sandbox:
        api = sandbox.api

        async def at_work(run):
            async def running():
                return (await done(run.status())).status == "running"

            await until(running, "the turn")

        run = await done(sandbox.prompt(AT_WORK))
        await at_work(run)
        equal((await done(sandbox.refresh())).state, "running")
        for steer in (
            lambda: run.steer("one"),
            lambda: sandbox.steer("two", conversation=run.conversation_id),
            lambda: api.steer(sandbox.id, message="three"),
        ):
            answer = await done(steer())
            equal((answer.type, answer.status, answer.conversation_id), ("prompt.steered", "steered", run.conversation_id))
        await done(sandbox.files.write("go", ""))
        equal((await done(run.wait(timeout=60, poll_interval=0.05))).status, "finished")
        text = await done(run.text())
        for word in ("one", "two", "three"):
            assert word in text, text
        steers = (await done(api.events(sandbox.id, type="steer"))).events
        equal([event.data["message"] for event in steers], ["three", "two", "one"])
        await done(sandbox.exec("rm go"))
        for interrupt in (
            lambda run: run.interrupt(),
            lambda run: sandbox.interrupt(conversation=run.conversation_id),
            lambda run: api.interrupt(sandbox.id),
        ):
            run = await done(sandbox.prompt(AT_WORK))
            await at_work(run)
            answer = await done(interrupt(run))
            equal((answer.type, answer.status), ("sandbox.interrupted", "interrupted"))
            equal((await done(run.wait(timeout=60, poll_interval=0.05))).status, "interrupted")


async def a_finished_run_is_followed_over_two_streams(case):
    """A fault of the client: that a run is over is only seen between two streams."""
    requests = []
    http = case.watching(requests)
    async with within(case.new(http_client=http)) as client:
        sandbox = await done(client.create(type="small", ttl_seconds=None))
        run = await done(sandbox.prompt("hello"))
        await done(run.wait(timeout=60, poll_interval=0.05))
        requests.clear()
        with meanwhile(_hurry):
            await collect(run.events(mode="sse", poll_interval=0.05))
        streams = [request for request in requests if "text/event-stream" in request.headers["accept"]]
        fault("until-between-streams", f"the events of a finished run take {len(streams)} streams")
        await done(sandbox.delete())
    await case.close(http)
