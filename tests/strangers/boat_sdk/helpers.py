"""The helpers around the operations."""

import contextlib
import socket
import threading
import unittest.mock
import urllib.parse

from around import AT_WORK, meanwhile, move_clock
from boat_sdk import FileWriteRequest, PromptRequest, boat_helpers
from case import ERRORS, KEY, URL
from stranger import collect, equal, refused, until


async def states_are_waited_for(case):
    api = case.api.whole
    made = api.create()
    sandbox_id = made.sandbox.id
    ready = boat_helpers.wait_until_ready(api, sandbox_id, timeout_seconds=60, poll_interval_seconds=0.02)
    equal((ready.id, ready.state), (sandbox_id, "ready"))
    shown = boat_helpers.wait_for_desktop(api, sandbox_id, 60, 0.02, public_access=True)
    assert shown.desktop_url
    # There was no prompt yet.
    await refused(lambda: boat_helpers.wait_until_idle(api, sandbox_id, 0, 0.02), TimeoutError)
    stopping = boat_helpers.stop_and_remove(api, sandbox_id)
    equal(stopping.type, "sandbox.stopping")
    await until(case.in_state(sandbox_id, "archived"), "an archived sandbox")
    await refused(lambda: boat_helpers.wait_until_ready(api, sandbox_id), RuntimeError)
    deleting = boat_helpers.stop_and_remove(api, sandbox_id, delete=True)
    equal((deleting.type, deleting.operation.target_id), ("sandbox.deleting", sandbox_id))


async def texts_are_written_and_read(case):
    api = case.api.whole
    with case.sandbox() as sandbox_id:
        equal(boat_helpers.write_text(api, sandbox_id, "a/b.txt", "é\n").size, 3)
        equal(boat_helpers.read_text(api, sandbox_id, "/home/user/a/b.txt"), "é\n")


async def commands_are_run_streamed_and_followed(case):
    api = case.api.whole
    with case.sandbox() as sandbox_id:
        result = boat_helpers.exec_command(api, sandbox_id, "pwd; exit 3", cwd="/tmp", timeout_seconds=20)
        result = result.actual_instance
        # Without a wall around it, a sandbox's /tmp is a folder somewhere else.
        equal((result.exit_code, result.stdout.endswith("/tmp\n")), (3, True))
        # Output comes while the command runs.
        stream = boat_helpers.stream_command(
            api, sandbox_id, "echo é; while [ ! -e go ]; do sleep 0.02; done; echo err >&2; exit 4"
        )
        frames = []
        for frame in stream:
            frames.append(frame)
            if frame["type"] == "stdout":
                boat_helpers.write_text(api, sandbox_id, "go", "")
        equal([frame["type"] for frame in frames], ["started", "stdout", "stderr", "exit"])
        equal((frames[1]["data"], frames[2]["data"], frames[3]["exitCode"]), ("é\n", "err\n", 4))
        frames = await collect(boat_helpers.stream_command(api, sandbox_id, "sleep 60", timeout_seconds=1))
        equal((frames[-1]["type"], frames[-1]["timedOut"]), ("exit", True))
        frames = await collect(boat_helpers.run_command(api, sandbox_id, "yes | head -c 300000; exit 5"))
        equal((frames[0]["type"], frames[-1]["type"], frames[-1]["exitCode"]), ("started", "exit", 5))
        equal("".join(frame["data"] for frame in frames if frame["type"] == "stdout"), "y\n" * 150_000)
        again = await collect(boat_helpers.follow_command(api, sandbox_id, frames[0]["processId"]))
        equal("".join(frame["data"] for frame in again if frame["type"] == "stdout"), "y\n" * 150_000)
        missing = boat_helpers.follow_command(api, sandbox_id, 999_999)
        await refused(lambda: next(missing), ERRORS[404], status=404)


async def a_long_command_is_followed_over_connections(case):
    api = case.api.whole
    with case.sandbox(ttl_seconds=None) as sandbox_id:
        asked = unittest.mock.patch.object(
            api, "attach_command_without_preload_content", wraps=api.attach_command_without_preload_content
        )
        with asked as attach:

            def go(over):
                # The server ends a connection after ten minutes; the client goes on where it was.
                while attach.call_count < 2 and not over.wait(0.02):
                    pass
                case.of(KEY).write_file(sandbox_id, FileWriteRequest(path="go", content=""))

            frames = []
            wanted = "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two"
            with meanwhile(go):
                for frame in boat_helpers.run_command(api, sandbox_id, wanted):
                    frames.append(frame)
                    if frame.get("data") == "one\n":
                        move_clock(601)
        equal([frame["type"] for frame in frames], ["started", "stdout", "stdout", "exit"])
        equal((frames[2]["data"], frames[2]["nextOffset"], frames[3]["exitCode"]), ("two\n", 8, 0))
        equal([call.kwargs["stdout_offset"] for call in attach.call_args_list], [0, 4])


class _Wire:
    """Stands between the client and the server, and can be cut."""

    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}{urllib.parse.urlsplit(URL).path}"
        self.opened = 0
        self._ends = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        server = urllib.parse.urlsplit(URL)
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection((server.hostname, server.port))
                self.opened += 1
                self._ends += [near, far]
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(source, target), daemon=True).start()

    def _carry(self, source, target):
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)

    def cut(self):
        """Ends all connections where they are."""
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._ends = []

    def close(self):
        """Takes no more."""
        self.cut()
        self._listener.close()


async def a_command_is_followed_over_a_cut(case):
    with case.sandbox() as sandbox_id, contextlib.closing(_Wire()) as wire:
        wanted = "for n in 1 2 3 4; do echo $n; while [ ! -e go$n ]; do sleep 0.02; done; done"
        started = case.command(sandbox_id, wanted, detached=True)
        seen = []
        for frame in boat_helpers.follow_command(case.of(KEY, wire.url).whole, sandbox_id, started.process_id):
            seen.append(frame.get("data", frame["type"]))
            if len(seen) == 2:
                wire.cut()
            if frame["type"] == "stdout":
                case.write(sandbox_id, f"go{len(seen)}", "")
        equal((seen, wire.opened), (["1\n", "2\n", "3\n", "4\n", "exit"], 2))


async def prompts_are_waited_for_and_streamed(case):
    api = case.api.whole
    with case.sandbox() as sandbox_id:
        queued = api.prompt(sandbox_id, PromptRequest(provider="codex", prompt="hello"))
        run = boat_helpers.wait_for_prompt(api, sandbox_id, queued.prompt_id, 60, 0.02)
        equal((run.status, run.done), ("finished", True))
        equal(boat_helpers.wait_for_prompt_done(api, sandbox_id, queued.prompt_id, 60, 0.02).id, queued.prompt_id)
        equal(boat_helpers.wait_until_idle(api, sandbox_id, 60, 0.02).state, "idle")
        stream = boat_helpers.stream_prompt(
            api, sandbox_id, PromptRequest(provider="codex", prompt=AT_WORK), poll_interval_seconds=0.02
        )
        events = []
        for event in stream:
            events.append(event)
            case.write(sandbox_id, "go", "")
        run = events[0].task_id
        assert run != queued.prompt_id and {event.task_id for event in events} == {run}, events
        equal(api.prompt_run_status(sandbox_id, run).prompt_run.status, "finished")


async def events_are_streamed(case):
    api = case.api.whole
    hello = PromptRequest(provider="codex", prompt="hello")
    with case.sandbox() as sandbox_id:
        queued = api.prompt(sandbox_id, hello)
        boat_helpers.wait_for_prompt(api, sandbox_id, queued.prompt_id, 60, 0.02)
        stream = boat_helpers.stream_events(
            api, sandbox_id, include_existing=True, limit=1, timeout_seconds=60, poll_interval_seconds=0.02
        )
        events = await collect(stream, lambda event: event.type == "prompt")
        equal((len(events) > 1, {event.task_id for event in events}), (True, {queued.prompt_id}))

        def ask(over):
            # What was there is passed over at some time; from then on what comes is seen.
            other = case.of(KEY).whole
            while not over.wait(0.1):
                other.prompt(sandbox_id, hello)

        with meanwhile(ask):
            stream = boat_helpers.stream_events(api, sandbox_id, type="prompt", poll_interval_seconds=0.02)
            events = await collect(stream, lambda event: event.data["status"] == "finished")
        assert queued.prompt_id not in [event.task_id for event in events]
        over = boat_helpers.stream_events(api, sandbox_id, timeout_seconds=0, poll_interval_seconds=0.02)
        await refused(lambda: list(over), TimeoutError)
