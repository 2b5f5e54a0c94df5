"""Sandboxes: made, found, changed, stopped, resumed, copied, shared, restarted and deleted."""

import datetime

from boat_sdk import (
    CreateSandboxRequest,
    CreateSandboxRequestFilesInner,
    ForkRequest,
    HostPortRequest,
    ResumeRequest,
    StopRequest,
    UpdateSandboxRequest,
)
from case import fails
from stranger import equal, until


async def a_sandbox_lives_and_is_deleted(case):
    api = case.api
    made = api.create(
        create_sandbox_request=CreateSandboxRequest(
            type="small",
            ttl_seconds=600,
            env={"A": "1"},
            no_env=True,
            name="one",
            files=[CreateSandboxRequestFilesInner(path="given.txt", content="given")],
            hosted_ports=[HostPortRequest(port=8080, public=True)],
        )
    )
    equal((made.type, made.status, made.ttl_seconds), ("sandbox.created", "provisioning", 600))
    equal([(port.port, port.is_protected, port.error) for port in made.hosted_ports], [(8080, False, None)])
    sandbox_id = made.sandbox.id
    await until(lambda: api.get(sandbox_id).sandbox.state == "ready", "a ready sandbox")
    equal(api.read_file(sandbox_id, "given.txt").content, "given")
    equal(case.command(sandbox_id, "echo $A").stdout, "1\n")
    before = api.get(sandbox_id).sandbox
    equal((before.name, before.type, before.billing_multiplier), ("one", "small", 0.5))
    changed = api.update(sandbox_id, UpdateSandboxRequest(name="two", subdomain="two-x", ttl_seconds=3600)).sandbox
    equal((changed.name, changed.subdomain), ("two", "two-x"))
    assert changed.archive_after > before.archive_after
    equal(api.update(sandbox_id, UpdateSandboxRequest(ttl_seconds=None)).sandbox.archive_after, None)
    usage = api.usage(sandbox_id, since="2020-01-01T00:00:00Z", until="4000000000")
    equal((usage.sandbox_id, usage.sandbox_type, usage.running), (sandbox_id, "small", True))
    assert usage.until > usage.since >= datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
    deleted = case.delete(sandbox_id)
    operation = deleted.operation
    equal((deleted.type, operation.kind, operation.target_id), ("sandbox.deleting", "sandbox", sandbox_id))
    await fails(lambda: api.get(sandbox_id), 404, "not_found")
    await until(
        lambda: api.get_deletion_operation(operation.id).operation.status == "completed", "the end of the deletion"
    )


async def sandboxes_are_found_again(case):
    api = case.api
    ids = [case.create().id for _ in range(3)]
    found, cursor, more = [], None, True
    while more:
        page = api.sandboxes(limit=2, sort="asc", cursor=cursor, state="provisioning,ready", org="personal")
        assert page.type == "sandbox.list" and len(page.sandboxes) <= 2
        found += [sandbox.id for sandbox in page.sandboxes]
        cursor, more = page.page_info.next_cursor, page.page_info.has_more
    equal(found[-3:], ids)
    newest = api.sandboxes(limit=1, include="cost").sandboxes
    equal([sandbox.id for sandbox in newest], [ids[-1]])
    for sandbox_id in ids:
        case.delete(sandbox_id)


async def a_sandbox_stops_and_resumes(case):
    api = case.api
    with case.sandbox() as sandbox_id:
        case.write(sandbox_id, "kept.txt", "kept")
        stopping = api.stop(sandbox_id)
        equal((stopping.type, stopping.id, stopping.status), ("sandbox.stopping", sandbox_id, "archiving"))
        stop_id = stopping.sandbox.stop.id
        await until(case.in_state(sandbox_id, "archived"), "an archived sandbox")
        stop = api.get_stop(sandbox_id, stop_id)
        equal((stop.type, stop.stop.id, stop.stop.status), ("stop.status", stop_id, "completed"))
        wanted = ResumeRequest(type="default", env={"B": "2"}, ttl_seconds=None)
        resuming = api.resume(sandbox_id, resume_request=wanted)
        equal((resuming.type, resuming.status), ("sandbox.resuming", "resuming"))
        await until(case.in_state(sandbox_id, "ready"), "a resumed sandbox")
        sandbox = api.get(sandbox_id).sandbox
        equal((sandbox.type, sandbox.archive_after), ("default", None))
        equal(case.command(sandbox_id, "cat kept.txt; echo $B").stdout, "kept2\n")
        equal(api.stop(sandbox_id, stop_request=StopRequest(force=True)).status, "archiving")
        await until(case.in_state(sandbox_id, "archived"), "an archived sandbox")
        said = await fails(lambda: api.stop(sandbox_id), 400, "stop_failed")
        equal(said["error"]["details"]["sandbox"]["id"], sandbox_id)
        await fails(lambda: case.command(sandbox_id, "true"), 409, "sandbox_not_ready")


async def a_fork_has_what_its_source_had(case):
    api = case.api
    with case.sandbox(env={"A": "1"}) as sandbox_id:
        case.write(sandbox_id, "here.txt", "here")
        wanted = ForkRequest(type="small", ttl_seconds=600, monitoring=True)
        forking = api.fork(sandbox_id, idempotency_key="one-fork", fork_request=wanted)
        again = api.fork(sandbox_id, idempotency_key="one-fork", fork_request=wanted)
        equal((forking.type, forking.status, again.id), ("sandbox.forking", "forking", forking.id))
        await until(case.in_state(forking.id, "ready"), "the fork")
        equal(case.command(forking.id, "cat here.txt; echo $A; echo there > here.txt").stdout, "here1\n")
        equal(api.read_file(sandbox_id, "here.txt").content, "here")
        case.delete(forking.id)


async def a_create_with_one_key_makes_one_sandbox(case):
    api = case.api
    first = api.create(idempotency_key="one-create", create_sandbox_request=CreateSandboxRequest(type="small"))
    again = api.create(idempotency_key="one-create", create_sandbox_request=CreateSandboxRequest(type="small"))
    equal(again.sandbox.id, first.sandbox.id)
    other = CreateSandboxRequest(type="large")
    await fails(
        lambda: api.create(idempotency_key="one-create", create_sandbox_request=other), 409, "idempotency_key_reused"
    )
    case.delete(first.sandbox.id)


async def a_setup_script_is_waited_for(case):
    api = case.api
    with case.sandbox(setup_script="echo set > up.txt") as sandbox_id:
        await until(lambda: api.get(sandbox_id).sandbox.setup_status == "done", "the setup")
        equal(api.read_file(sandbox_id, "up.txt").content, "set\n")
    with case.sandbox(setup_script="echo no >&2; exit 3") as sandbox_id:
        await until(lambda: api.get(sandbox_id).sandbox.setup_status == "failed", "the failure")
        said = api.get(sandbox_id).sandbox.setup_error
        assert "no" in said and "3" in said, said


async def an_organisations_sandbox_is_shared(case):
    api = case.api
    made = api.create(x_boat_org="acme", create_sandbox_request=CreateSandboxRequest(type="small", visibility="shared"))
    sandbox_id = made.sandbox.id
    equal(made.sandbox.team.name, "Acme")
    await until(case.in_state(sandbox_id, "ready"), "a ready sandbox")
    shared = api.share(sandbox_id)
    equal((shared.sandbox.id, isinstance(shared.restart_required, bool)), (sandbox_id, True))
    assert shared.message
    other = case.of("sbx_live_carol").sandboxes(org="Acme").sandboxes
    assert sandbox_id in [sandbox.id for sandbox in other]
    case.delete(sandbox_id)
    with case.sandbox() as sandbox_id:
        await fails(lambda: api.share(sandbox_id), 400, "not_org_sandbox")


async def a_lost_machine_is_restarted(case):
    api = case.api
    with case.sandbox(name="lost") as sandbox_id:
        equal(api.get(sandbox_id).sandbox.health, "degraded")
        answer = api.recover(sandbox_id)
        equal(answer.status, "recovering")
        assert answer.message
        await until(lambda: api.get(sandbox_id).sandbox.health == "ok", "the restart")
        await fails(lambda: api.recover(sandbox_id), 409, "too_soon")
    with case.sandbox() as sandbox_id:
        await fails(lambda: api.recover(sandbox_id), 409, "sandbox_is_reachable")
