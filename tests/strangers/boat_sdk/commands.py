"""Commands, run to their end, as a stream and in the background, and their history."""

import base64

from boat_sdk import CommandRequest, CommandResponse, CommandStartedResponse
from case import fails, frames
from stranger import equal, until


async def a_command_runs_to_its_end(case):
    with case.sandbox() as sandbox_id:
        result = case.command(sandbox_id, "echo out; echo err >&2; exit 3")
        equal(type(result), CommandResponse)
        equal((result.type, result.exit_code, result.stdout, result.stderr), ("command.finished", 3, "out\n", "err\n"))
        equal((result.success, result.timed_out, result.stdout_truncated), (False, False, False))
        assert result.command_id and result.finished_at >= result.started_at
        case.command(sandbox_id, "mkdir 'a b'")
        result = case.command(sandbox_id, "pwd", cwd="a b")
        assert result.stdout.endswith("/home/user/a b\n"), result.stdout
        late = case.command(sandbox_id, "sleep 60", timeout_seconds=1)
        equal((late.timed_out, late.success), (True, False))
        await fails(lambda: case.command(sandbox_id, "true", cwd="/etc/../nowhere"), 400, "invalid_path")


async def a_command_streams(case):
    with case.sandbox() as sandbox_id:
        wanted = CommandRequest(command="echo é; echo err >&2; exit 4", stream=True, timeout_seconds=20)
        with case.api.opened("command", sandbox_id, wanted) as answer:
            equal(answer.headers["content-type"].split(";")[0], "application/x-ndjson")
            found = frames(answer)
        equal((found[0]["type"], found[-1]["type"], found[-1]["exitCode"]), ("started", "exit", 4))
        equal("".join(frame["data"] for frame in found if frame["type"] == "stdout"), "é\n")
        equal("".join(frame["data"] for frame in found if frame["type"] == "stderr"), "err\n")


async def a_command_runs_in_the_background(case):
    api = case.api
    with case.sandbox() as sandbox_id:
        wanted = "echo one; echo two >&2; while [ ! -e go ]; do sleep 0.02; done; echo three; exit 6"
        started = case.command(sandbox_id, wanted, detached=True)
        equal((type(started), started.type), (CommandStartedResponse, "command.started"))
        assert started.pid and started.command_id and started.log_path and started.err_log_path
        number = started.process_id

        def written():
            status = api.command_status(sandbox_id, number)
            return (status.stdout, status.stderr) == ("one\n", "two\n") and status

        status = await until(written, "output")
        equal((status.type, status.running, status.status, status.exit_code), ("command.status", True, "running", None))
        part = api.command_status(sandbox_id, number, stdout_offset=2, stderr_offset=4)
        equal((part.stdout, part.stderr, part.stdout_next_offset, part.more), ("e\n", "", 4, False))
        equal(api.command_status(sandbox_id, number, tail_bytes=2).stdout, "e\n")
        case.write(sandbox_id, "go", "")
        with case.api.opened("attach_command", sandbox_id, number, stdout_offset=2) as answer:
            found = frames(answer)
        equal((found[0]["type"], found[-1]["type"], found[-1]["exitCode"]), ("attached", "exit", 6))
        equal("".join(frame["data"] for frame in found if frame["type"] == "stdout"), "e\nthree\n")


async def what_runs_is_listed_ended_and_remembered(case):
    api = case.api
    with case.sandbox() as sandbox_id:
        started = case.command(sandbox_id, "exec sleep 600", detached=True)

        def running():
            listed = api.processes(sandbox_id)
            return [process for process in listed.processes if "sleep 600" in process.command] and listed

        listed = await until(running, "the process")
        assert listed.live and listed.total >= 1
        ended = api.stop_command(sandbox_id, started.process_id)
        equal((ended.type, ended.running, ended.signaled), ("command.stopped", False, True))
        equal((ended.command.status, ended.command.command_id), ("killed", started.command_id))
        await fails(lambda: api.stop_command(sandbox_id, 999999), 404, "not_found")

        case.command(sandbox_id, "echo histo")
        history = api.command_history(sandbox_id, mode="sync", q="HISTO", limit=10)
        equal([record.command for record in history.commands], ["echo histo"])
        record = history.commands[0]
        page = api.command_history(sandbox_id, limit=1)
        equal((len(page.commands), page.commands[0].command_id), (1, record.command_id))
        following = api.command_history(sandbox_id, limit=1, cursor=page.next_cursor)
        equal([known.command_id for known in following.commands], [started.command_id])
        found = api.get_command(sandbox_id, record.command_id).command
        equal((found.status, found.exit_code, found.mode, found.stdout_bytes), ("exited", 0, "sync", 6))
        logs = api.command_logs(sandbox_id, record.command_id, stream="stdout", offset=1, limit=3, encoding="base64")
        equal((base64.b64decode(logs.data), logs.next_offset, logs.size, logs.done), (b"ist", 4, 6, False))
