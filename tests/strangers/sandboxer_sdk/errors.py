"""What a call is refused with, and what becomes of it."""

import socket

from case import URL
from sandboxer import (
    APIConnectionError,
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    ConflictError,
    InternalServerError,
    NotFoundError,
    PaymentRequiredError,
    PermissionDeniedError,
    RateLimitError,
    SandboxerError,
)
from stranger import done, equal, refused, within

AT_ONCE = {"max_retries": 0}


async def each_status_has_its_error(case):
    async with case.api() as api, case.api("sbx_live_bob") as bob, case.api("sbx_live_reader") as reader:
        wrong = await refused(lambda: api.get("bx_22222222"), NotFoundError, status=404, code="not_found", retryable=False)
        assert wrong.request_id.startswith("req_") and wrong.request_id in str(wrong)
        equal((wrong.body["ok"], wrong.body["type"]), (False, "sandbox.error"))
        async with case.api("sbx_live_nobody") as nobody:
            await refused(lambda: nobody.me(), AuthenticationError, status=401, code="unauthorized")
        await refused(lambda: bob.create(type="small"), PaymentRequiredError, status=402, code="billing_required")
        await refused(lambda: reader.create(type="small"), PermissionDeniedError, status=403, code="forbidden")
        await refused(lambda: api.sandboxes(limit=201), BadRequestError, status=400, code="invalid_limit")
        await refused(lambda: api.create(type="huge"), BadRequestError, status=400)
        await refused(lambda: api.create(env={"1": "x"}), BadRequestError, status=400, code="invalid_env")
        await refused(
            lambda: api.create(environment="nowhere"), BadRequestError, status=400, code="unknown_environment"
        )
        await refused(
            lambda: api.create_webhook(url="http://10.0.0.1/", events=["sandbox.ready"]),
            BadRequestError,
            code="invalid_webhook_url",
        )
        sandbox = (await done(api.create(type="small"))).sandbox
        wrong = await refused(
            lambda: api.delete_sandbox(sandbox.id, confirm_delete="bx_other"),
            ConflictError,
            status=409,
            code="delete_confirmation_required",
        )
        equal(wrong.details["targetId"], sandbox.id)
        wrong = await refused(
            lambda: api.prompt(sandbox.id, prompt="hi", provider="mistral"), ConflictError, code="provider_not_configured"
        )
        equal(wrong.details["provider"], "mistral")
        await refused(lambda: api.steer(sandbox.id, message="hi"), ConflictError, code="no_running_turn")
        await done(api.delete_sandbox(sandbox.id))


async def quotas_are_told_with_the_time_to_wait(case):
    # Each face has a wallet of its own to run against.
    async with case.api("sbx_live_carol") as api:
        wrong = await refused(
            lambda: api.create(type="xlarge", request_options=AT_ONCE),
            PermissionDeniedError,
            code="machine_class_plan_required",
        )
        equal(wrong.status, 403)
        first = (await done(api.create(type="small", request_options=AT_ONCE))).sandbox
        wrong = await refused(
            lambda: api.create(type="small", request_options=AT_ONCE), RateLimitError, status=429
        )
        assert wrong.code in ("limit_reached", "rate_limited")
        await done(api.delete_sandbox(first.id))
        wrong = await refused(
            lambda: api.create(type="small", request_options=AT_ONCE),
            RateLimitError,
            status=429,
            code="rate_limited",
            retryable=True,
        )
        assert 0 < wrong.retry_after <= 3600, wrong.retry_after
        equal(wrong.details["window"], "hour")


async def faults_of_the_service_are_told_as_such(case):
    async with within(case.new()) as client:
        api = client.api
        sandbox = await done(client.create(type="small", name="no-gateway"))
        await refused(
            lambda: api.update(sandbox.id, subdomain=f"moved-{case.suffix}-x", request_options=AT_ONCE),
            InternalServerError,
            status=502,
            code="gateway_error",
        )
        await done(sandbox.update(name="no-browser"))
        await refused(
            lambda: api.desktop(sandbox.id, vnc=1, request_options=AT_ONCE),
            InternalServerError,
            status=503,
            code="browser_not_ready",
            retryable=True,
        )
        await done(sandbox.update(name="no-host-key"))
        await refused(
            lambda: api.ssh_key(
                sandbox.id,
                key="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me",
                request_options=AT_ONCE,
            ),
            InternalServerError,
            status=503,
            code="ssh_host_key_unavailable",
            retryable=True,
        )
        await done(sandbox.update(name="lost"))
        await refused(
            lambda: sandbox.exec("true"),
            InternalServerError,
            status=502,
            code="sandbox_direct_failed",
            retryable=False,
        )
        await done(sandbox.delete())


async def without_an_answer_there_is_an_error_too(case):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unused.getsockname()[1]}"
        async with within(case.Client(base_url=address, api_key="x", max_retries=0)) as client:
            await refused(lambda: client.api.me(), APIConnectionError, status=0, code="connection_error")
        unused.listen()
        async with within(case.Client(base_url=address, api_key="x", max_retries=0, timeout=0.2)) as client:
            await refused(lambda: client.api.me(), APITimeoutError, status=0, code="timeout")
    async with within(case.Client(base_url=URL)) as client:
        await refused(lambda: client.api.me(), SandboxerError, code="missing_api_key")
