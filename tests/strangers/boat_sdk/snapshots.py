"""Named snapshots and what is shared of them, rolling ones, and what is in them."""

import io
import tarfile

from boat_sdk import CreateSandboxRequest, NamedSnapshotSaveRequest
from case import fails
from stranger import equal, until


async def a_named_snapshot_is_saved_shared_and_deployed(case):
    api = case.api
    with case.sandbox() as sandbox_id:
        case.write(sandbox_id, "tool.txt", "tool")
        saving = api.save_named_snapshot(NamedSnapshotSaveRequest(sandbox_id=sandbox_id, name="base"))
        equal((saving.type, saving.status, saving.snapshot.name), ("snapshot.named.saving", "saving", "base"))
        found = await until(
            lambda: (known := api.get_named_snapshot("base").snapshot).status == "ready" and known, "the snapshot"
        )
        equal((found.source_sandbox_id, found.snapshot_id is None), (sandbox_id, False))
        listed = api.list_named_snapshots()
        equal(([known.name for known in listed.snapshots], listed.allowance.used), (["base"], 1))

        # The client calls it a saved snapshot here.
        shared = api.create_snapshot_share("base")
        assert shared.share_code.startswith("bsh_") and shared.share_code.startswith(shared.share.code_prefix)
        for source in ("base", shared.share_code):
            with case.sandbox(var_from=source) as deployed:
                equal(api.read_file(deployed, "tool.txt").content, "tool")
        many = api.create(create_sandbox_request=CreateSandboxRequest(type="small", var_from="base", count=2))
        equal((len(many.sandboxes), many.sandbox.id in [made.id for made in many.sandboxes]), (2, True))
        for made in many.sandboxes:
            case.delete(made.id)
        shares = api.list_snapshot_shares("base").shares
        equal([(share.id, share.use_count) for share in shares], [(shared.share.id, 1)])
        revoked = api.revoke_snapshot_share("base", shared.share.id)
        equal((revoked.type, revoked.share.status), ("snapshot.share.revoked", "revoked"))
        await fails(lambda: case.create(var_from=shared.share_code), 404, "snapshot_not_found")
        equal(api.delete_named_snapshot("base").status, "deleted")
        await fails(lambda: api.get_named_snapshot("base"), 404, "not_found")


async def what_a_stopped_sandbox_held_is_looked_at_and_removed(case):
    api = case.api
    with case.sandbox() as sandbox_id:
        equal(api.get_latest_sandbox_snapshot(sandbox_id).snapshot, None)
        case.write(sandbox_id, "folder/note.txt", "note")
        api.stop(sandbox_id)
        await until(case.in_state(sandbox_id, "archived"), "an archived sandbox")
        latest = api.get_latest_sandbox_snapshot(sandbox_id).snapshot
        equal((latest.sandbox_id, latest.status), (sandbox_id, "completed"))
        listed = api.list_sandbox_snapshots(sandbox_id, limit=5, sort="asc").snapshots
        equal([known.id for known in listed], [latest.id])
        assert latest.id in [known.id for known in api.list_snapshots(limit=200).snapshots]

        tree = api.get_snapshot_tree(latest.id)
        equal((tree.tree_available, tree.truncated), (True, False))
        path = next(entry.path for entry in tree.entries if entry.path.endswith("folder/note.txt"))
        equal(api.get_snapshot_file(latest.id, path=path), b"note")
        packed = api.get_snapshot_file(latest.id)
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            assert any(member.name.endswith("folder/note.txt") for member in archive.getmembers())
        await fails(lambda: api.get_snapshot_file(latest.id, path="no"), 404, "path_not_found")
        download = api.get_snapshot_download(latest.id)
        equal((download.snapshot_id, download.sandbox_id), (latest.id, sandbox_id))
        assert download.chunks and download.chunks[0].signed_url
        await fails(lambda: api.delete_snapshot(latest.id, sandbox_id), 409, "delete_confirmation_required")
        deleting = api.delete_snapshot(latest.id, str(latest.id))
        equal((deleting.operation.kind, deleting.operation.target_id), ("snapshot", str(latest.id)))
        await fails(lambda: api.get_snapshot_tree(latest.id), 404, "not_found")
    with case.sandbox() as sandbox_id:
        api.stop(sandbox_id)
        await until(case.in_state(sandbox_id, "archived"), "an archived sandbox")
        many = api.delete_sandbox_snapshots(sandbox_id, sandbox_id)
        equal((many.type, len(many.operations)), ("snapshot.deleting", 1))
        await until(lambda: api.list_sandbox_snapshots(sandbox_id).snapshots == [], "the end of the snapshots")
