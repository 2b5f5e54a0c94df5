"""Commands, run to their end, as a stream and in the background; their history; and files."""

import base64

from sandboxer import BadRequestError, CommandError, NotFoundError
from stranger import collect, done, each, equal, refused, until


async def a_command_runs_to_its_end(case):
    async with case.sandbox(type="small") as sandbox:
        result = await done(sandbox.exec("echo out; echo err >&2; exit 3"))
        equal((result.exit_code, result.stdout, result.stderr, result.success), (3, "out\n", "err\n", False))
        equal((result.ok, result.output, result.timed_out), (False, "out\nerr\n", False))
        assert result.command_id and type(result).from_response(result.raw) == result
        await done(sandbox.exec(["mkdir", "a b"], check=True))
        result = await done(sandbox.exec("pwd; echo $COLOUR", cwd="a b", env={"COLOUR": "it's"}))
        assert result.stdout.endswith("/home/user/a b\nit's\n")
        wrong = await refused(lambda: sandbox.exec("exit 7", check=True), CommandError, code="command_failed", exit_code=7)
        equal(wrong.result.exit_code, 7)
        late = await done(sandbox.exec("sleep 60", timeout_seconds=1))
        equal((late.timed_out, late.success), (True, False))
        await refused(
            lambda: sandbox.exec("true", timeout_seconds=601), BadRequestError, status=400, code="invalid_timeout"
        )
        answer = await done(case.functions.exec_command(sandbox.api, sandbox.id, "cat", cwd="/tmp", timeout_seconds=10))
        equal((answer.type, answer.exit_code, answer.stdout), ("command.finished", 0, ""))
        answer = await done(sandbox.api.command(sandbox.id, command="echo $SHADE", env={"SHADE": "dark"}))
        equal((answer.stdout, answer.stdout_truncated), ("dark\n", False))


async def a_command_streams(case):
    async with case.sandbox(type="small") as sandbox:
        stream = sandbox.exec_stream("echo é; echo err >&2; exit 4", env={"A": "1"}, cwd="/tmp", timeout_seconds=20)
        stream = await done(stream)
        frames = await collect(stream)
        equal((frames[0].type, frames[-1].type), ("started", "exit"))
        equal((stream.stdout, stream.stderr, stream.exit_frame.exit_code), ("é\n", "err\n", 4))
        result = await done(stream.wait())
        equal((result.exit_code, result.success, result.command_id), (4, False, stream.command_id))
        stream = await done(sandbox.exec_stream(["sh", "-c", "exit 5"]))
        wrong = await refused(lambda: stream.wait(check=True), CommandError, exit_code=5)
        equal(wrong.result.raw.type, "exit")
        # Output comes while the command runs.
        stream = await done(sandbox.exec_stream("echo first; while [ ! -e go ]; do sleep 0.02; done; echo second"))
        async for frame in each(stream):
            if frame.type == "stdout" and "first" in frame.data:
                await done(sandbox.files.write("go", ""))
        equal((stream.stdout, stream.exit_frame.success), ("first\nsecond\n", True))
        frames = await collect(sandbox.api.command_stream(sandbox.id, {"command": "echo low"}))
        equal([frame.data for frame in frames if frame.type == "stdout"], ["low\n"])


async def a_command_runs_in_the_background(case):
    async with case.sandbox(type="small") as sandbox:
        command = await done(sandbox.start("echo one; echo two >&2; while [ ! -e go ]; do sleep 0.02; done; echo three; exit 6"))
        equal(type(command), case.Command)
        assert command.pid and command.command_id and str(command.process_id) in repr(command)

        async def written():
            status = await done(command.status())
            return status.stdout == "one\n" and status.stderr == "two\n" and status

        status = await until(written, "output")
        equal((status.type, status.running, status.exit_code), ("command.status", True, None))
        equal((await done(sandbox.command_status(command.process_id))).status, "running")
        part = await done(command.status(stdout_offset=2, stderr_offset=4))
        equal((part.stdout, part.stderr, part.stdout_next_offset, part.more), ("e\n", "", 4, False))
        equal((await done(command.status(tail_bytes=2))).stdout, "e\n")
        low = await done(sandbox.api.command_status(sandbox.id, command.process_id, tail_bytes=4))
        equal(low.stdout, "one\n")
        await done(sandbox.files.write("go", ""))
        frames = await collect(command.attach())
        equal(frames[-1].type, "exit")
        equal("".join(frame.data for frame in frames if frame.type == "stdout"), "one\nthree\n")
        rest = await collect(sandbox.attach(command.process_id, stdout_offset=4, stderr_offset=4))
        equal("".join(frame.data for frame in rest if frame.type == "stdout"), "three\n")
        raw = await collect(sandbox.api.attach_command(sandbox.id, command.process_id, stdout_offset=0))
        equal((raw[0].type, raw[-1].type, raw[-1].exit_code), ("attached", "exit", 6))
        again = sandbox.command(command.process_id)
        result = await done(again.wait())
        equal((result.exit_code, result.stdout, result.stderr), (6, "one\nthree\n", "two\n"))
        await refused(lambda: command.wait(check=True), CommandError, exit_code=6)
        equal(await done(command.logs()), "one\nthree\n")
        equal(await done(command.logs("stderr")), "two\n")
        equal(await done(again.logs()), "one\nthree\n")


async def what_runs_is_listed_ended_and_remembered(case):
    async with case.sandbox(type="small") as sandbox:
        long = await done(sandbox.start("exec sleep 600"))

        async def running():
            processes = await done(sandbox.processes())
            return [process for process in processes.processes if "sleep 600" in process.command] and processes

        processes = await until(running, "the process")
        assert processes.live and processes.total >= 1
        await done(sandbox.api.processes(sandbox.id))
        ended = await done(long.kill())
        equal((ended.type, ended.running, ended.signaled), ("command.stopped", False, True))
        other = await done(sandbox.start(["sleep", "601"]))
        equal((await done(sandbox.kill(other.process_id))).command.status, "killed")
        third = await done(sandbox.start("sleep 602"))
        stopped = await done(sandbox.api.stop_command(sandbox.id, third.process_id))
        equal(stopped.process_id, third.process_id)
        await refused(lambda: sandbox.kill(999999), NotFoundError, status=404)

        await done(sandbox.exec("echo histo"))
        history = await done(sandbox.history(mode="sync", q="HISTO", limit=10))
        equal([record.command for record in history.commands], ["echo histo"])
        page = await done(sandbox.history(limit=2))
        equal(len(page.commands), 2)
        following = await done(sandbox.history(limit=2, cursor=page.next_cursor, mode="commands"))
        assert following.commands and following.commands[0].command_id != page.commands[0].command_id
        everything = await done(sandbox.api.command_history(sandbox.id))
        equal(everything.type, "command.list")
        record = history.commands[0]
        found = (await done(sandbox.api.get_command(sandbox.id, record.command_id))).command
        equal((found.status, found.exit_code, found.mode, found.stdout_bytes), ("exited", 0, "sync", 6))
        logs = await done(
            sandbox.api.command_logs(sandbox.id, record.command_id, stream="stdout", offset=1, limit=3, encoding="base64")
        )
        equal((base64.b64decode(logs.data), logs.next_offset, logs.size, logs.done), (b"ist", 4, 6, False))


async def files_are_written_and_read(case):
    async with case.sandbox(type="small") as sandbox:
        api, functions, files = sandbox.api, case.functions, sandbox.files
        written = await done(files.write("deep/er/text.txt", "é\n"))
        equal((written.type, written.size), ("file.written", 3))
        equal(await done(files.read("deep/er/text.txt")), "é\n")
        every = bytes(range(256))
        await done(files.write("bytes", every))
        equal(await done(files.read_bytes("bytes")), every)
        await done(files.write_bytes("/tmp/bytes", every * 2))
        equal(await done(files.download("/tmp/bytes")), every * 2)
        await done(functions.write_text(api, sandbox.id, "t", "text"))
        equal(await done(functions.read_text(api, sandbox.id, "/home/user/t")), "text")
        await done(functions.write_bytes(api, sandbox.id, "b", b"\xff\x00"))
        equal(await done(functions.read_bytes(api, sandbox.id, "b")), b"\xff\x00")
        await done(api.write_file(sandbox.id, path="low", content="bG93", encoding="base64"))
        low = await done(api.read_file(sandbox.id, "low"))
        equal((low.type, low.encoding, low.size, low.content), ("file.read", "utf8", 3, "low"))
        equal(await done(api.artifact(sandbox.id, "low")), b"low")
        await refused(lambda: files.read("/etc/passwd"), BadRequestError, status=400, code="invalid_path")
        await refused(lambda: files.download("../../etc/passwd"), BadRequestError, status=400, code="invalid_path")
