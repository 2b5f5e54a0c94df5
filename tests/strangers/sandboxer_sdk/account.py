"""Who one is, which wallet pays, keys, secrets, telemetry and what is kept."""

from around import listener
from sandboxer import AuthenticationError, PermissionDeniedError
from stranger import done, equal, refused, within


async def one_reads_who_one_is(case):
    async with case.api() as api:
        user = (await done(api.me())).user
        equal((user.login, user.email, user.display_name), ("alice", "alice@example.com", "Alice"))
        equal(user.account_status, "active")
        # The way out of the generated methods.
        raw = await done(api.request("GET", "/me", params={"unknown": True}, headers={"X-Test": "1"}))
        equal((raw["ok"], raw["user"]["login"]), (True, "alice"))


async def an_organisation_is_made_chosen_and_looked_at(case):
    async with case.api() as api:
        made = await done(api.create_organization(name=f"Crew-{case.suffix}"))
        organisation = made["organization"] if "organization" in made else made["org"]
        orgs = (await done(api.list_organizations())).orgs
        equal(orgs[0].type, "personal")
        assert {"Acme", f"Crew-{case.suffix}"} <= {org.name for org in orgs}
        acme = next(org for org in orgs if org.name == "Acme")
        members = await done(api.org_members(acme.id))
        equal(sorted(member["email"] or "" for member in members["members"])[-1], "alice@example.com")
        equal([invite["email"] for invite in members["invites"]], ["eve@example.com"])
        chosen = await done(api.set_active_organization(org=organisation["id"]))
        equal(chosen.active.id, organisation["id"])
        equal((await done(api.set_active_organization(org=None))).active.type, "personal")
        personal = await done(api.limits())
        assert personal.can_start and personal.team_id is None
        shared = await done(api.limits(org="acme"))
        equal((shared.team_id, shared.team_role), (acme.id, "owner"))
    # The same wallet, by the client's own setting and by one call's.
    async with case.api(org="Acme") as api:
        equal((await done(api.limits())).team_id, acme.id)
        equal((await done(api.limits(request_options={"org": "personal"}))).team_id, None)


async def retention_is_read_by_keys_and_set_by_people(case):
    async with case.api() as api:
        policy = await done(api.get_data_retention())
        equal((policy.enabled, policy.enabled_at), (False, None))
        await refused(
            lambda: api.update_data_retention(monitoring_off=True),
            PermissionDeniedError,
            status=403,
            code="session_required",
        )
    async with case.api("alice-is-here") as api:
        changed = await done(api.update_data_retention(monitoring_off=True))
        equal((changed.type, changed.monitoring_off), ("data_retention.updated", True))
        assert changed.monitoring_off_at
        equal((await done(api.update_data_retention(monitoring_off=False))).monitoring_off, False)


async def keys_are_made_used_counted_rotated_and_revoked(case):
    async with case.api("alice-is-here") as api:
        name = f"ci-{case.suffix}"
        made = await done(api.create_scoped_api_key(name=name, ttl="24h", actions=["account.read", "sandbox.read"]))
        key = made.api_key
        equal((key.name, key.credential_lane, key.scope.actions), (name, "scoped-v1", ["account.read", "sandbox.read"]))
        assert made.secret.startswith(key.key_prefix) and made.secret.endswith(key.key_last_four)
        async with case.api(made.secret) as limited:
            await done(limited.me())
            await refused(lambda: limited.create(type="small"), PermissionDeniedError, code="forbidden")
        usage = await done(api.api_key_usage(key.id))
        equal((usage.id, usage.usage.window_days, usage.created_resources), (key.id, 30, []))
        assert usage.usage.requests >= 1
        rotated = await done(api.rotate_api_key(key.id))
        assert rotated.secret != made.secret
        async with case.api(made.secret) as old, case.api(rotated.secret) as new:
            await refused(lambda: old.me(), AuthenticationError, status=401, code="unauthorized")
            await done(new.me())
        listed = await done(api.api_keys())
        assert key.id in [known.id for known in listed.api_keys]
        assert {"read-only", "full-sandbox", "ci", "admin"} <= set(listed.catalog.presets)
        left = await done(api.revoke_api_key(key.id))
        assert key.id not in [known.id for known in left.api_keys]
        async with case.api(rotated.secret) as ended:
            await refused(lambda: ended.me(), AuthenticationError, status=401)


async def secrets_are_replaced_as_a_whole(case):
    async with case.api() as api:
        files = [{"path": "keys/one.txt", "contents": "one"}]
        updated = await done(api.update_secrets(env_contents="COLOUR=blue\n", secret_files=files))
        equal(updated.type, "secrets.updated")
        read = await done(api.secrets())
        equal((read.env_contents.strip(), [file.path for file in read.secret_files]), ("COLOUR=blue", ["keys/one.txt"]))
        await done(api.update_secrets(env_contents=""))
        read = await done(api.secrets())
        equal((read.env_contents, read.secret_files), ("", []))


async def telemetry_is_sent_where_it_is_wanted(case):
    with listener() as collector:
        async with case.api() as api:
            equal((await done(api.get_telemetry())).telemetry, None)
            endpoint = f"{collector.url}/otlp"
            answer = await done(api.set_telemetry(endpoint=endpoint, headers={"X-Token": "t"}))
            equal((answer.test.ok, answer.test.status), (True, 200))
            equal((answer.telemetry.endpoint, answer.telemetry.headers), (endpoint, ["X-Token"]))
            path, headers, _ = collector.received.get(timeout=60)
            equal((path, headers["x-token"]), ("/otlp/v1/metrics", "t"))
            equal((await done(api.get_telemetry())).telemetry.endpoint, endpoint)
            async with within(case.new()) as client:
                sandbox = await done(client.create(type="small"))
                while path != "/otlp/v1/logs":
                    path, _, _ = collector.received.get(timeout=60)
                await done(sandbox.delete())
            await done(api.delete_telemetry())
            equal((await done(api.get_telemetry())).telemetry, None)


async def repositories_are_listed_and_selected(case):
    async with case.api() as api:
        listed = await done(api.repos(sync=True, sort="asc"))
        names = [repo.full_name for installation in listed.installations for repo in installation.repositories]
        equal(sorted(names), ["acme/api", "acme/web"])
        found = await done(api.repos(q="WEB", limit=1))
        equal([repo.name for installation in found.installations for repo in installation.repositories], ["web"])
        branch = f"branch-{case.suffix}"
        selected = await done(api.select_repo(repository_id="101", base_branch=branch))
        equal([(repo.full_name, repo.base_branch) for repo in selected.selected_repositories], [("acme/web", branch)])
        again = await done(api.repos(selected=True))
        equal([repo.full_name for repo in again.selected_repositories], ["acme/web"])
        # The rest does not want it.
        await done(api.delete_environment_repo(selected.subenvironment_id, "101"))
