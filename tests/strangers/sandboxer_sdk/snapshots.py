"""Named snapshots, rolling ones, and what is in them."""

import io
import tarfile

from sandboxer import NotFoundError
from stranger import done, equal, refused, until, within


async def a_named_snapshot_is_saved_shared_and_deployed(case):
    async with within(case.new()) as client:
        api, name = client.api, f"base-{case.suffix}"
        sandbox = await done(client.create(type="small"))
        await done(sandbox.files.write("tool.txt", "tool"))
        snapshot = await done(sandbox.snapshot(name, timeout=120))
        equal((snapshot.name, snapshot.status, snapshot.source_sandbox_id), (name, "ready", sandbox.id))
        started = await done(sandbox.snapshot(f"{name}-2", wait=False))
        assert started.status in ("saving", "ready")
        await done(case.functions.wait_for_named_snapshot(api, f"{name}-2", timeout=120, poll_interval=0.05))
        saving = await done(api.save_named_snapshot(sandbox_id=sandbox.id, name=name))
        equal((saving.type, saving.status), ("snapshot.named.saving", "saving"))
        await done(case.functions.wait_for_named_snapshot(api, name, timeout=120, poll_interval=0.05))
        listed = await done(api.list_named_snapshots())
        assert {name, f"{name}-2"} <= {known.name for known in listed.snapshots}
        assert listed.allowance.used >= 2
        equal((await done(api.get_named_snapshot(name))).snapshot.snapshot_id is None, False)

        shared = await done(api.create_snapshot_share(name))
        assert shared.share_code.startswith("bsh_") and shared.share_code.startswith(shared.share.code_prefix)
        async with within(await done(client.create(type="small", from_=name, on_exit="delete"))) as deployed:
            equal(await done(deployed.files.read("tool.txt")), "tool")
        async with within(await done(client.create(from_=shared.share_code, type="small", on_exit="delete"))) as deployed:
            equal(await done(deployed.files.read("tool.txt")), "tool")
        shares = (await done(api.list_snapshot_shares(name))).shares
        equal([(share.id, share.use_count) for share in shares], [(shared.share.id, 1)])
        revoked = await done(api.revoke_snapshot_share(name, shared.share.id))
        equal((revoked.type, revoked.share.status), ("snapshot.share.revoked", "revoked"))
        await refused(lambda: client.create(from_=shared.share_code), NotFoundError, code="snapshot_not_found")
        for known in (name, f"{name}-2"):
            equal((await done(api.delete_named_snapshot(known))).status, "deleted")
        await refused(lambda: api.get_named_snapshot(name), NotFoundError, status=404)
        await done(sandbox.delete())


async def what_a_stopped_sandbox_held_is_looked_at_and_removed(case):
    async with within(case.new()) as client:
        api = client.api
        sandbox = await done(client.create(type="small"))
        equal(await done(sandbox.latest_snapshot()), None)
        await done(sandbox.files.write("folder/note.txt", "note"))
        await done(sandbox.stop(timeout=60))
        latest = await done(sandbox.latest_snapshot())
        equal((latest.sandbox_id, latest.status), (sandbox.id, "completed"))
        equal((await done(api.get_latest_sandbox_snapshot(sandbox.id))).snapshot.id, latest.id)
        equal([known.id for known in (await done(sandbox.snapshots(limit=5))).snapshots], [latest.id])
        equal([known.id for known in (await done(api.list_sandbox_snapshots(sandbox.id, sort="asc"))).snapshots], [latest.id])
        assert latest.id in [known.id for known in (await done(api.list_snapshots(limit=200))).snapshots]

        tree = await done(api.get_snapshot_tree(latest.id))
        equal((tree.tree_available, tree.truncated), (True, False))
        path = next(entry.path for entry in tree.entries if entry.path.endswith("folder/note.txt"))
        equal(await done(api.get_snapshot_file(latest.id, path=path)), b"note")
        packed = await done(api.get_snapshot_file(latest.id, path=path.removesuffix("/note.txt")))
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            assert any(member.name.endswith("note.txt") for member in archive.getmembers())
        whole = await done(api.get_snapshot_file(latest.id))
        with tarfile.open(fileobj=io.BytesIO(whole)) as archive:
            assert any(member.name.endswith("folder/note.txt") for member in archive.getmembers())
        await refused(lambda: api.get_snapshot_file(latest.id, path="no"), NotFoundError, code="path_not_found")
        download = await done(api.get_snapshot_download(latest.id))
        equal((download.snapshot_id, download.sandbox_id), (latest.id, sandbox.id))
        assert download.chunks and download.chunks[0].signed_url

        deleting = await done(api.delete_snapshot(latest.id))
        equal((deleting.operation.kind, deleting.operation.target_id), ("snapshot", latest.id))
        await refused(lambda: api.get_snapshot_tree(latest.id), NotFoundError)
        other = await done(client.create(type="small"))
        await done(other.stop(timeout=60))
        many = await done(api.delete_sandbox_snapshots(other.id))
        equal((many.type, len(many.operations)), ("snapshot.deleting", 1))

        async def gone():
            return (await done(api.list_sandbox_snapshots(other.id))).snapshots == []

        await until(gone, "the end of the snapshots")
        await done(other.delete())
        await done(sandbox.delete())
