"""Webhooks: endpoints, and deliveries that are received here and verified by the client's own helpers."""

import json

import sandboxer
from around import listener
from sandboxer import WebhookVerificationError
from stranger import done, equal, refused, within


async def deliveries_are_verified(case):
    with listener() as receiver:
        # The same functions by either of their names.
        for module in (sandboxer, sandboxer.webhooks):
            if module is sandboxer and case.is_async:
                continue
            await _deliver(case, module, receiver)


async def _deliver(case, helpers, receiver):
    url = f"{receiver.url}/{helpers.__name__}"
    async with within(case.new()) as client:
        api = client.api
        made = await done(api.create_webhook(name="mine", url=url, events=["sandbox.ready", "sandbox.archived"]))
        webhook, secret = made.webhook, made.secret
        assert secret.startswith("whsec_") and len(secret) == 70
        sandbox = await done(client.create(type="small"))
        _, headers, body = receiver.received.get(timeout=60)
        event = helpers.construct_event(body, headers, secret)
        equal((event.type, event.data.sandbox.id, event.data.state), ("sandbox.ready", sandbox.id, "ready"))
        signature = next(value for name, value in headers.items() if name.lower() == "sandboxer-signature")
        equal(helpers.construct_event(body, signature, [secret, "whsec_other"]).id, event.id)
        assert helpers.verify_webhook(body, signature, secret)
        assert not helpers.verify_webhook(body + b" ", signature, secret)
        assert helpers.verify_webhook_headers(body, headers, secret)
        separate = {name: value for name, value in headers.items() if name.lower().startswith("x-")}
        assert helpers.verify_webhook_headers(body, separate, secret)
        assert not helpers.verify_webhook_headers(body, separate, "whsec_other")
        await refused(
            lambda: helpers.construct_event(body, headers, "whsec_other"),
            WebhookVerificationError,
            code="webhook_verification_failed",
        )
        # What it signs itself it accepts, and so would a receiver of ours.
        assert helpers.verify_webhook(body, helpers.sign_webhook(body, secret), secret)

        rotated = await done(api.rotate_webhook_signing_secret(webhook.id))
        assert rotated.secret != secret
        updated = await done(api.update_webhook(webhook.id, name=None, events=["sandbox.archived"]))
        equal((updated.webhook.name, updated.webhook.events), (None, ["sandbox.archived"]))
        equal((await done(api.get_webhook(webhook.id))).webhook.url, url)
        await done(sandbox.stop(timeout=60))
        _, headers, body = receiver.received.get(timeout=60)
        event = helpers.construct_event(body, headers, rotated.secret)
        equal((event.type, event.data.state), ("sandbox.archived", "archived"))
        equal(json.loads(body)["data"]["previousState"], "archiving")
        assert webhook.id in [known.id for known in (await done(api.list_webhooks())).webhooks]
        equal((await done(api.delete_webhook(webhook.id))).id, webhook.id)
        equal([known.id for known in (await done(api.list_webhooks())).webhooks], [])
        await done(sandbox.delete())
