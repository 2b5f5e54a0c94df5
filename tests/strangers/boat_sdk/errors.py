"""What a call is refused with."""

import socket

import urllib3
from absent import ABSENT
from boat_sdk import CreateSandboxRequest, PromptRequest, SshKeyRequest, UpdateSandboxRequest, WebhookCreateRequest
from case import KEY, fails
from stranger import equal, refused


async def what_is_not_here_is_not_found(case):
    with case.sandbox() as sandbox_id:
        for name, arguments in ABSENT.items():
            arguments = [sandbox_id if argument == "SANDBOX" else argument for argument in arguments]
            said = await fails(lambda: getattr(case.api, name)(*arguments), 404, "not_found")
            equal((name, said["message"]), (name, "there is nothing at this path"))


async def each_status_has_its_error(case):
    api = case.api
    said = await fails(lambda: api.get("bx_22222222"), 404, "not_found")
    equal((said["ok"], said["type"], said["error"]["status"]), (False, "sandbox.error", 404))
    await fails(case.of("sbx_live_nobody").me, 401, "unauthorized")
    await fails(case.of("sbx_live_bob").create, 402, "billing_required")
    await fails(case.of("sbx_live_reader").create, 403, "forbidden")
    await fails(lambda: case.create(env={"1": "x"}), 400, "invalid_env")
    await fails(lambda: case.create(environment="nowhere"), 400, "unknown_environment")
    await fails(lambda: case.create(count=2), 400, "count_requires_from")
    inside = WebhookCreateRequest(url="http://10.0.0.1/", events=["sandbox.ready"])
    await fails(lambda: api.create_webhook(inside), 400, "invalid_webhook_url")
    with case.sandbox() as sandbox_id:
        said = await fails(lambda: api.delete_sandbox("bx_other", sandbox_id), 409, "delete_confirmation_required")
        equal(said["error"]["details"]["targetId"], sandbox_id)
        hello = PromptRequest(prompt="hi", provider="mistral")
        said = await fails(lambda: api.prompt(sandbox_id, hello), 409, "provider_not_configured")
        equal(said["error"]["details"]["provider"], "mistral")


async def quotas_are_told_with_the_time_to_wait(case):
    carol = case.of("sbx_live_carol")
    wanted = CreateSandboxRequest(type="small")
    largest = CreateSandboxRequest(type="xlarge")
    await fails(lambda: carol.create(create_sandbox_request=largest), 403, "machine_class_plan_required")
    first = carol.create(create_sandbox_request=wanted).sandbox
    carol.delete_sandbox(first.id, first.id)
    said = await fails(lambda: carol.create(create_sandbox_request=wanted), 429, "rate_limited")
    equal(said["error"]["details"]["window"], "hour")


async def faults_of_the_service_are_told_as_such(case):
    api = case.api
    with case.sandbox(name="no-gateway") as sandbox_id:
        moved = UpdateSandboxRequest(subdomain="moved-x")
        await fails(lambda: api.update(sandbox_id, moved), 502, "gateway_error")
        api.update(sandbox_id, UpdateSandboxRequest(name="no-browser"))
        await fails(lambda: api.desktop(sandbox_id, vnc=1), 503, "browser_not_ready")
        api.update(sandbox_id, UpdateSandboxRequest(name="no-host-key"))
        key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me"
        await fails(lambda: api.ssh_key(sandbox_id, SshKeyRequest(key=key)), 503, "ssh_host_key_unavailable")
        api.update(sandbox_id, UpdateSandboxRequest(name="lost"))
        await fails(lambda: case.command(sandbox_id, "true"), 502, "sandbox_direct_failed")


async def without_an_answer_there_is_an_error_too(case):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nowhere = case.of(KEY, f"http://127.0.0.1:{unused.getsockname()[1]}")
        await refused(nowhere.me, urllib3.exceptions.MaxRetryError)
