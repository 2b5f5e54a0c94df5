"""Ports, desktops, SSH keys, and looking at a machine."""

import tempfile
import time
from datetime import datetime, timedelta

from around import free_ports, move_clock, public_key, says
from stranger import done, equal, until


async def a_port_is_reached_from_outside(case):
    port = free_ports(3)
    async with case.sandbox(type="small") as sandbox:
        await done(sandbox.files.write("www/index.html", "hello"))
        server = await done(sandbox.start(f"exec python3 -m http.server {port} --bind 127.0.0.1", cwd="www"))
        hosted = await done(sandbox.host(port, localhost=True, title="site"))
        equal((hosted.type, hosted.port, hosted.localhost, hosted.is_protected), ("port.hosted", port, True, True))
        assert "_token=" in hosted.url
        await until(lambda: says(hosted.url, b"hello"), "the page")
        again = await done(sandbox.api.host_port(sandbox.id, port=port, localhost=True))
        equal(again.url, hosted.url)
        public = await done(sandbox.host(port + 1, private=False))
        equal((public.is_protected, "_token" in public.url), (False, False))
        equal((await done(sandbox.host(port + 2, public=True))).is_protected, False)
        listed = await done(sandbox.api.list_hosted_ports(sandbox.id))
        equal(sorted(one["port"] for one in listed["ports"]), [port, port + 1, port + 2])
        removed = await done(sandbox.api.unhost_port(sandbox.id, port + 1))
        equal(removed.ok, True)
        left = await done(sandbox.api.list_hosted_ports(sandbox.id))
        equal(sorted(one["port"] for one in left["ports"]), [port, port + 2])
        await done(server.kill())


async def a_desktop_is_waited_for(case):
    async with case.sandbox(type="small") as sandbox:
        first = await done(sandbox.desktop(wait=False, theme="dark", public_access=True))
        equal((first.type, first.provisioning), ("desktop.provisioning", True))
        shown = await done(sandbox.desktop(timeout=60))
        equal(shown.type, "desktop.url")
        assert shown.desktop_url.startswith("http")
        waited = await done(case.functions.wait_for_desktop(sandbox.api, sandbox.id, poll_interval=0.05, theme="light"))
        assert waited.desktop_url
        low = await done(sandbox.api.desktop(sandbox.id, vnc=1, theme="light"))
        assert low.desktop_url


async def an_ssh_key_is_let_in(case):
    async with case.sandbox(type="small") as sandbox:
        with tempfile.TemporaryDirectory() as folder:
            key = public_key(folder)
        answer = await done(sandbox.ssh_key(key))
        equal((answer.type, answer.ssh_user), ("ssh_key.configured", "user"))
        assert answer.ssh_endpoint or answer.machine_ip
        again = await done(sandbox.api.ssh_key(sandbox.id, {"key": key}))
        equal(again.host_key, answer.host_key)


async def a_machine_is_looked_at(case):
    async with case.sandbox(type="small") as sandbox:
        api = sandbox.api
        command = await done(sandbox.start("exec sleep 600"))
        due = time.monotonic()

        async def sampled():
            nonlocal due
            # One is taken every half minute. Where the machine has much to do that takes a while: the hour of the window, after
            # which the sandbox stops, must not go by meanwhile.
            if time.monotonic() >= due:
                move_clock(31)
                due = time.monotonic() + 1
            return (await done(api.metrics(sandbox.id, window="1h")))["points"]

        await until(sampled, "a sample")
        stats = await done(api.stats(sandbox.id))
        equal((stats["type"], stats["sandboxId"]), ("sandbox.stats", sandbox.id))
        assert all(0 <= stats[name] <= 100 for name in ("cpu", "mem", "disk")), stats
        assert 0 < stats["memoryUsedBytes"] <= stats["memoryTotalBytes"], stats
        assert 0 <= stats["diskUsedBytes"] <= stats["diskTotalBytes"] > 0, stats
        now = stats["sampledAt"]
        hour_ago = (datetime.fromisoformat(now) - timedelta(hours=1)).isoformat()
        curve = await done(api.metrics(sandbox.id, window="1h"))
        equal((curve["type"], curve["sandboxId"], curve["window"]), ("sandbox.metrics", sandbox.id, "1h"))
        for point in curve["points"]:
            assert hour_ago < point["t"] <= now and all(0 <= point[name] <= 100 for name in ("cpu", "mem", "disk")), point
        assert curve["current"]["t"] >= now, curve
        summary = await done(api.metrics_summary(window="24h", ids=sandbox.id))
        equal((summary["window"], [one["sandboxId"] for one in summary["sandboxes"]]), ("24h", [sandbox.id]))
        assert summary["sandboxes"][0]["points"]
        models = (await done(api.provider_models()))["providers"]
        assert {"codex", "claude-code", "opencode"} <= {one["provider"] for one in models}, models
        assert all(one["models"] for one in models if one["provider"] == "codex"), models
        usage = await done(api.usage(sandbox.id, until=now))
        found = (usage.type, usage.sandbox_id, usage.sandbox_type, usage.billing_multiplier, usage.running, usage.until)
        equal(found, ("sandbox.usage", sandbox.id, "small", 0.5, True, now))
        span = (datetime.fromisoformat(now) - datetime.fromisoformat(usage.since)).total_seconds()
        assert 15 <= usage.seconds <= span / 2 + 1, (usage, span)
        equal(usage.dollars, round(usage.seconds / usage.seconds_per_dollar, 6))
        await done(command.kill())
        await done(sandbox.api.update(sandbox.id, ttl_seconds=600))
        equal((await done(api.get(sandbox.id))).sandbox.id, sandbox.id)
