"""Ports, desktops, SSH keys, and looking at a machine."""

import tempfile
import urllib.request

from around import free_ports, public_key
from stranger import done, equal, until


async def a_port_is_reached_from_outside(case):
    port = free_ports(3)
    async with case.sandbox(type="small") as sandbox:
        await done(sandbox.files.write("www/index.html", "hello"))
        server = await done(sandbox.start(f"exec python3 -m http.server {port} --bind 127.0.0.1", cwd="www"))
        hosted = await done(sandbox.host(port, localhost=True, title="site"))
        equal((hosted.type, hosted.port, hosted.localhost, hosted.is_protected), ("port.hosted", port, True, True))
        assert "_token=" in hosted.url

        async def answered():
            try:
                with urllib.request.urlopen(hosted.url, timeout=10) as answer:
                    return answer.read() == b"hello"
            except OSError:
                return False

        await until(answered, "the page")
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
        stats = await done(api.stats(sandbox.id))
        equal(stats["ok"], True)
        curve = await done(api.metrics(sandbox.id, window="1h"))
        equal(curve["ok"], True)
        summary = await done(api.metrics_summary(window="24h", ids=sandbox.id))
        equal(summary["ok"], True)
        models = await done(api.provider_models())
        assert "codex" in str(models)
        await done(api.usage(sandbox.id, until="2030-01-01T00:00:00Z"))
        await done(sandbox.api.update(sandbox.id, ttl_seconds=600))
        equal((await done(api.get(sandbox.id))).sandbox.id, sandbox.id)
