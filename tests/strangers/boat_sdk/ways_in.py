"""Ports, desktops and SSH keys."""

import tempfile

from around import free_ports, public_key, says
from boat_sdk import DesktopRequest, HostPortRequest, SshKeyRequest
from case import fails
from stranger import equal, until


async def a_port_is_reached_from_outside(case):
    api, port = case.api, free_ports(2)
    with case.sandbox() as sandbox_id:
        case.write(sandbox_id, "www/index.html", "hello")
        case.command(sandbox_id, f"exec python3 -m http.server {port} --bind 127.0.0.1", cwd="www", detached=True)
        hosted = api.host_port(sandbox_id, HostPortRequest(port=port, localhost=True, title="site"))
        equal((hosted.type, hosted.port, hosted.localhost, hosted.is_protected), ("port.hosted", port, True, True))
        assert "_token=" in hosted.url
        await until(lambda: says(hosted.url, b"hello"), "the page")
        public = api.host_port(sandbox_id, HostPortRequest(port=port + 1, public=True))
        equal((public.is_protected, "_token" in public.url), (False, False))


async def a_desktop_is_waited_for(case):
    api = case.api
    with case.sandbox() as sandbox_id:
        first = api.desktop(sandbox_id, vnc=1, theme="dark", desktop_request=DesktopRequest(public_access=True))
        equal((first.type, first.provisioning), ("desktop.provisioning", True))
        shown = await until(lambda: (answer := api.desktop(sandbox_id)).desktop_url and answer, "the desktop")
        equal((shown.type, shown.desktop_url.startswith("http")), ("desktop.url", True))


async def an_ssh_key_is_let_in(case):
    api = case.api
    with case.sandbox() as sandbox_id:
        with tempfile.TemporaryDirectory() as folder:
            key = public_key(folder)
        answer = api.ssh_key(sandbox_id, SshKeyRequest(key=key))
        equal((answer.type, answer.ssh_user), ("ssh_key.configured", "user"))
        assert answer.machine_ip and answer.ssh_endpoint.startswith(answer.machine_ip)
        await fails(lambda: api.ssh_key(sandbox_id, SshKeyRequest(key="none")), 400, "invalid_ssh_key")
