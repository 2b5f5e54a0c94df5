"""Who one is, which wallet pays, keys, secrets, webhooks, telemetry and what is kept."""

import hashlib
import hmac
import json

from around import listener
from boat_sdk import (
    ActiveOrgUpdateRequest,
    CreateScopedApiKeyRequest,
    DataRetentionUpdateRequest,
    RepoSelectionRequest,
    SecretFile,
    SecretsUpdateRequest,
    TelemetrySetRequest,
    WebhookCreateRequest,
    WebhookUpdateRequest,
)
from case import fails
from stranger import equal


async def one_reads_who_one_is(case):
    user = case.api.me().user
    equal((user.login, user.email, user.display_name), ("alice", "alice@example.com", "Alice"))
    equal((user.account_status, user.connection_method in user.connection_methods), ("active", True))


async def a_wallet_is_chosen(case):
    api = case.api
    listed = api.list_organizations()
    equal((listed.type, listed.orgs[0].type), ("org.list", "personal"))
    acme = next(org for org in listed.orgs if org.name == "Acme")
    equal((acme.type, acme.role, acme.member_count), ("org", "owner", 2))
    chosen = api.set_active_organization(ActiveOrgUpdateRequest(org="acme"))
    equal((chosen.active.id, chosen.active.type), (acme.id, "org"))
    equal(api.limits().team_id, acme.id)
    equal(api.set_active_organization(ActiveOrgUpdateRequest(org=None)).active.type, "personal")
    own = api.limits()
    equal((own.type, own.can_start, own.team_id), ("limits.info", True, None))
    # By the query, by the header and by the old name.
    for option in ({"org": "ACME"}, {"x_boat_org": "Acme"}, {"team_id": acme.id}):
        equal((api.limits(**option).team_id, api.limits(**option).team_role), (acme.id, "owner"))
    equal(api.limits(org="personal", x_boat_org="Acme").team_id, None)


async def retention_is_read_by_keys_and_set_by_people(case):
    policy = case.api.get_data_retention()
    equal((policy.type, policy.enabled, policy.enabled_at), ("data_retention.info", False, None))
    change = DataRetentionUpdateRequest(monitoring_off=True)
    await fails(lambda: case.api.update_data_retention(change), 403, "session_required")
    changed = case.person.update_data_retention(change)
    equal((changed.type, changed.monitoring_off), ("data_retention.updated", True))
    assert changed.monitoring_off_at
    equal(case.person.update_data_retention(DataRetentionUpdateRequest(monitoring_off=False)).monitoring_off, False)


async def keys_are_made_used_counted_rotated_and_revoked(case):
    person = case.person
    wanted = CreateScopedApiKeyRequest(name="ci", ttl="24h", actions=["account.read", "sandbox.read"])
    made = person.create_scoped_api_key(wanted)
    key = made.api_key
    equal((key.name, key.credential_lane, key.scope.actions), ("ci", "scoped-v1", ["account.read", "sandbox.read"]))
    assert made.secret.startswith(key.key_prefix) and made.secret.endswith(key.key_last_four)
    limited = case.of(made.secret)
    equal(limited.me().user.login, "alice")
    await fails(limited.create, 403, "forbidden")
    rotated = person.rotate_api_key(key.id)
    assert rotated.secret != made.secret
    await fails(limited.me, 401, "unauthorized")
    equal(case.of(rotated.secret).me().user.login, "alice")
    listed = person.api_keys()
    assert key.id in [known.id for known in listed.api_keys]
    assert {"read-only", "full-sandbox", "ci", "admin"} <= set(listed.catalog.presets)
    left = person.revoke_api_key(key.id)
    assert key.id not in [known.id for known in left.api_keys]
    await fails(case.of(rotated.secret).me, 401, "unauthorized")


async def a_machine_has_a_key_of_its_own(case):
    with case.sandbox() as sandbox_id:
        machine = case.of(case.command(sandbox_id, "printf %s $SANDBOXER_TOKEN").stdout)
        equal(machine.get(sandbox_id).sandbox.id, sandbox_id)
        await fails(machine.get_data_retention, 403, "forbidden")
        known = next(key for key in case.person.api_keys().api_keys if key.sandbox_id == sandbox_id)
        usage = case.person.api_key_usage(known.id)
        equal((usage.type, usage.id, usage.created_resources), ("api_key.usage", known.id, []))
        equal((usage.usage.window_days, usage.usage.requests >= 1), (30, True))


async def secrets_are_replaced_as_a_whole(case):
    api = case.api
    files = [SecretFile(path="keys/one.txt", contents="one")]
    updated = api.update_secrets(SecretsUpdateRequest(env_contents="COLOUR=blue\n", secret_files=files))
    equal((updated.type, updated.pushed is not None), ("secrets.updated", True))
    read = api.secrets()
    equal((read.env_contents.strip(), read.secret_files), ("COLOUR=blue", files))
    api.update_secrets(SecretsUpdateRequest())
    read = api.secrets()
    equal((read.env_contents, read.secret_files), ("", []))


async def repositories_are_listed_and_selected(case):
    api = case.api
    listed = api.repos(sync=True, sort="asc")
    names = [repo.full_name for installation in listed.installations for repo in installation.repositories]
    equal(sorted(names), ["acme/api", "acme/web"])
    found = api.repos(q="WEB", limit=1)
    equal([repo.name for installation in found.installations for repo in installation.repositories], ["web"])
    selected = api.select_repo(RepoSelectionRequest(repository_id="101", base_branch="next"))
    equal([(repo.full_name, repo.base_branch) for repo in selected.selected_repositories], [("acme/web", "next")])
    equal([repo.full_name for repo in api.repos(selected=True).selected_repositories], ["acme/web"])
    # The rest does not want it.
    api.delete_environment_repo(selected.subenvironment_id, "101")
    equal(api.repos(selected=True).selected_repositories, [])


async def telemetry_is_sent_where_it_is_wanted(case):
    api = case.api
    with listener() as collector:
        equal(api.get_telemetry().telemetry, None)
        answer = api.set_telemetry(TelemetrySetRequest(endpoint=f"{collector.url}/otlp", headers={"X-Token": "t"}))
        equal((answer.test.ok, answer.test.status), (True, 200))
        equal((answer.telemetry.endpoint, answer.telemetry.headers), (f"{collector.url}/otlp", ["X-Token"]))
        path, headers, _ = collector.received.get(timeout=60)
        equal((path, headers["x-token"]), ("/otlp/v1/metrics", "t"))
        equal(api.get_telemetry().telemetry.headers, ["X-Token"])
        with case.sandbox():
            while path != "/otlp/v1/logs":
                path, _, _ = collector.received.get(timeout=60)
        equal(api.delete_telemetry().telemetry, None)
        equal(api.get_telemetry().telemetry, None)


async def webhooks_are_told_and_signed(case):
    api = case.api
    with listener() as receiver:
        made = api.create_webhook(
            WebhookCreateRequest(name="mine", url=f"{receiver.url}/one", events=["sandbox.ready", "sandbox.archived"])
        )
        webhook, secret = made.webhook, made.secret
        equal((made.type, webhook.name, webhook.url), ("webhook.created", "mine", f"{receiver.url}/one"))
        with case.sandbox() as sandbox_id:
            path, headers, body = receiver.received.get(timeout=60)
        event = json.loads(body)
        equal((path, event["type"], event["data"]["sandbox"]["id"]), ("/one", "sandbox.ready", sandbox_id))
        # The client has nothing that verifies; this is how it is documented.
        signed = dict(part.split("=", 1) for part in headers["sandboxer-signature"].split(","))
        text = f"{signed['t']}.".encode() + body
        equal(signed["v1"], hmac.new(secret.encode(), text, hashlib.sha256).hexdigest())
        known = api.get_webhook(webhook.id).webhook
        equal(known, webhook)
        assert webhook.id in [known.id for known in api.list_webhooks().webhooks]
        changed = api.update_webhook(webhook.id, WebhookUpdateRequest(name="yours", events=["sandbox.error"])).webhook
        equal((changed.name, changed.events, changed.url), ("yours", ["sandbox.error"], webhook.url))
        rotated = api.rotate_webhook_signing_secret(webhook.id)
        equal((rotated.type, rotated.secret == secret), ("webhook.rotated", False))
        equal(api.delete_webhook(webhook.id).id, webhook.id)
        await fails(lambda: api.get_webhook(webhook.id), 404, "not_found")
