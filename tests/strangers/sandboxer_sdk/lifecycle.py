"""Sandboxes: made, found, changed, stopped, resumed, copied and deleted; and waiting for each."""

import os

import sandboxer
from sandboxer import NotFoundError, SandboxerError, SandboxStateError, WaitTimeoutError
from stranger import collect, done, equal, refused, until, within


async def a_sandbox_lives_and_is_deleted(case):
    async with within(case.new()) as client:
        sandbox = await done(
            client.create(type="small", ttl_seconds=600, env={"A": "1"}, no_env=True, name=f"one-{case.suffix}")
        )
        equal(type(sandbox), case.Sandbox)
        assert sandbox.id.startswith("bx_") and sandbox.id in repr(sandbox)
        equal((sandbox.state, sandbox.name, sandbox.info.type), ("ready", f"one-{case.suffix}", "small"))
        assert sandbox.api is client.api
        await done(sandbox.wait_until_ready(timeout=60))
        equal((await done(sandbox.refresh())).id, sandbox.id)
        ended = sandbox.info.archive_after
        await done(sandbox.extend(3600))
        assert sandbox.info.archive_after > ended
        await done(sandbox.extend(None))
        equal(sandbox.info.archive_after, None)
        await done(sandbox.update(name=f"two-{case.suffix}", subdomain=f"two-{case.suffix}-x", ttl_seconds=900))
        equal((sandbox.name, sandbox.info.subdomain), (f"two-{case.suffix}", f"two-{case.suffix}-x"))
        usage = await done(sandbox.usage(since="2020-01-01T00:00:00Z"))
        equal((usage.sandbox_id, usage.billing_multiplier, usage.running), (sandbox.id, 0.5, True))
        operation = await done(sandbox.delete())
        equal((operation.kind, operation.target_id, operation.reason), ("sandbox", sandbox.id, "explicit"))
        await refused(lambda: sandbox.refresh(), NotFoundError, status=404, code="not_found")

        async def completed():
            return (await done(client.api.get_deletion_operation(operation.id))).operation.status == "completed"

        await until(completed, "the end of the deletion")


async def sandboxes_are_found_again(case):
    async with within(case.new()) as client:
        ids = [(await done(client.create(type="small", wait=False))).id for _ in range(3)]
        states = ["provisioning", "provisioned", "cloning", "ready"]
        found = await collect(client.list(state=states, page_size=2))
        assert set(ids) <= {sandbox.id for sandbox in found}
        equal(len({sandbox.id for sandbox in found}), len(found))
        equal(len(await collect(client.list(limit=2))), 2)
        one = await done(client.get(ids[0]))
        equal((type(one), one.id), (case.Sandbox, ids[0]))
        equal((await done(client.connect(ids[1]))).id, ids[1])
        page = await done(client.api.sandboxes(limit=2, sort="asc", org="personal"))
        equal((len(page.sandboxes), page.page_info.has_more), (2, True))
        following = await done(client.api.sandboxes(limit=2, sort="asc", cursor=page.page_info.next_cursor))
        assert following.sandboxes[0].id not in [sandbox.id for sandbox in page.sandboxes]
        for sandbox_id in ids:
            await done(client.api.delete_sandbox(sandbox_id, confirm_delete=sandbox_id))


async def a_class_stands_for_the_client_of_the_environment(case):
    os.environ.update(SANDBOXER_API_KEY="sbx_live_alice", SANDBOXER_API_URL=case.new().config.base_url + "/")
    try:
        sandboxer.reset_default_clients()
        sandbox = await done(case.Client.create(type="small"))
        equal((await done(case.Client.get(sandbox.id))).id, sandbox.id)
        equal((await done(case.Client.connect(sandbox.id))).client, sandbox.client)
        assert sandbox.id in [known.id for known in await collect(case.Client.list())]
        await done(sandbox.delete())
        client = sandbox.client
        await done(client.aclose() if case.is_async else client.close())
        sandboxer.reset_default_clients()
    finally:
        del os.environ["SANDBOXER_API_KEY"], os.environ["SANDBOXER_API_URL"]


async def leaving_a_block_stops_or_deletes(case):
    async with within(case.new()) as client:
        for on_exit in ("stop", "delete", None):
            sandbox = await done(client.create(type="small", on_exit=on_exit))
            async with within(sandbox) as entered:
                assert entered is sandbox
            if on_exit == "stop":
                await done(case.functions.wait_for_state(client.api, sandbox.id, ("archived",), timeout=60))
                equal((await done(sandbox.refresh())).state, "archived")
            elif on_exit == "delete":
                await refused(lambda: sandbox.refresh(), NotFoundError)
                continue
            else:
                equal((await done(sandbox.refresh())).state, "ready")
            await done(sandbox.delete())
        # An error in the block is seen outside, and what was to be done is done.
        sandbox = await done(client.create(type="small"))
        try:
            async with within(await done(client.get(sandbox.id, on_exit="delete"))):
                raise KeyError("mine")
        except KeyError:
            pass
        await refused(lambda: sandbox.refresh(), NotFoundError)


async def a_sandbox_stops_and_resumes(case):
    async with within(case.new()) as client:
        api, waits = client.api, case.functions
        sandbox = await done(client.create(type="small"))
        await done(sandbox.files.write("kept.txt", "kept"))
        stopping = await done(api.stop(sandbox.id))
        equal((stopping.type, stopping.status), ("sandbox.stopping", "archiving"))
        stop_id = stopping.sandbox.stop.id
        await done(waits.wait_for_state(api, sandbox.id, {"archived"}, timeout=60, poll_interval=0.05))
        stop = (await done(api.get_stop(sandbox.id, stop_id))).stop
        equal((stop.id, stop.status), (stop_id, "completed"))
        await refused(
            lambda: waits.wait_until_ready(api, sandbox.id, timeout=60),
            SandboxStateError,
            code="sandbox_archived",
            state="archived",
        )
        await done(sandbox.resume(type="default", env={"B": "2"}, ttl_seconds=None, fail_fast=False))
        equal((sandbox.state, sandbox.info.type, sandbox.info.archive_after), ("ready", "default", None))
        equal(await done(sandbox.files.read("kept.txt")), "kept")
        await done(sandbox.stop(force=True, timeout=60))
        equal(sandbox.state, "archived")
        resuming = await done(api.resume(sandbox.id, {"ttlSeconds": 600}))
        equal((resuming.type, resuming.status), ("sandbox.resuming", "resuming"))
        await done(waits.wait_until_ready(api, sandbox.id, timeout=60, poll_interval=0.05))
        await done(waits.stop_and_remove(api, sandbox.id))
        await done(waits.wait_for_state(api, sandbox.id, ("archived",), timeout=60, poll_interval=0.05))
        removed = await done(waits.stop_and_remove(api, sandbox.id, delete=True))
        equal(removed.operation.target_id, sandbox.id)


async def a_fork_has_what_its_source_had(case):
    async with case.sandbox(type="small", env={"A": "1"}) as sandbox:
        await done(sandbox.files.write("here.txt", "here"))
        child = await done(sandbox.fork(type="small", ttl_seconds=600, monitoring=True, on_exit="delete"))
        async with within(child):
            assert child.id != sandbox.id and child.state == "ready"
            equal((await done(child.exec("cat here.txt; echo $A"))).stdout, "here1\n")
            await done(child.files.write("here.txt", "there"))
        equal(await done(sandbox.files.read("here.txt")), "here")
        key = f"fork-{case.suffix}"
        first = await done(sandbox.api.fork(sandbox.id, type="small", idempotency_key=key))
        again = await done(sandbox.api.fork(sandbox.id, type="small", idempotency_key=key))
        equal((first.type, first.id), ("sandbox.forking", again.id))
        await done(sandbox.api.delete_sandbox(first.id))


async def a_create_with_one_key_makes_one_sandbox(case):
    async with within(case.new()) as client:
        key = f"create-{case.suffix}"
        first = await done(client.api.create({"type": "small"}, idempotency_key=key))
        equal((first.type, first.status, first.ttl_seconds), ("sandbox.created", "provisioning", 3600))
        again = await done(client.create(type="small", request_options={"idempotency_key": key}))
        equal(again.id, first.sandbox.id)
        await done(again.delete())


async def a_setup_script_is_waited_for(case):
    async with within(case.new()) as client:
        sandbox = await done(
            client.create(type="small", setup_script="echo set > up.txt", wait_for_setup=True, timeout=120)
        )
        equal(await done(sandbox.files.read("up.txt")), "set\n")
        await done(sandbox.wait_for_setup(timeout=60))
        equal((await done(case.functions.wait_for_setup(client.api, sandbox.id))).setup_status, "done")
        await done(sandbox.delete())
        broken = await done(client.create(type="small", setup_script="echo no >&2; exit 3"))
        wrong = await refused(lambda: broken.wait_for_setup(timeout=60), SandboxerError, code="setup_failed")
        assert "no" in wrong.message and "3" in wrong.message
        await done(broken.delete())


async def waits_end_when_they_should(case):
    async with within(case.new()) as client:
        api, waits = client.api, case.functions
        sandbox = await done(client.create(type="small"))
        equal((await done(waits.wait_until_idle(api, sandbox.id, timeout=60))).state, "ready")
        late = await refused(
            lambda: waits.wait_for_state(api, sandbox.id, ("archived",), timeout=0), WaitTimeoutError, code="wait_timeout"
        )
        equal(late.last.state, "ready")
        await done(sandbox.delete())


async def an_organisations_sandbox_is_shared(case):
    async with within(case.new()) as client:
        sandbox = await done(client.create(type="small", org="Acme"))
        equal(sandbox.info.team.name, "Acme")
        shared = await done(sandbox.share())
        assert shared.restart_required in (True, False) and shared.message
        again = await done(client.api.share(sandbox.id))
        equal(again.sandbox.id, sandbox.id)
        async with within(case.new("sbx_live_carol")) as other:
            seen = (await done(other.api.sandboxes(org="Acme"))).sandboxes
            assert sandbox.id in [known.id for known in seen]
        await done(sandbox.delete())


async def a_lost_machine_is_restarted(case):
    async with within(case.new()) as client:
        for recover in ("high", "low"):
            sandbox = await done(client.create(type="small", name="lost", timeout=60))
            equal((await done(sandbox.refresh())).health, "degraded")
            answer = await done(sandbox.recover() if recover == "high" else client.api.recover(sandbox.id))
            equal(answer.status, "recovering")

            async def healthy():
                return (await done(sandbox.refresh())).health == "ok"

            await until(healthy, "the restart")
            await done(sandbox.delete())
