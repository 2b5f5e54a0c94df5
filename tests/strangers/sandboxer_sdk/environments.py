"""Environments: what sandboxes are given."""

from sandboxer import BadRequestError, NotFoundError
from stranger import done, equal, refused, within


async def _one(api, environment_id):
    listed = await done(api.environments())
    return next(environment for environment in listed.environments if environment.id == environment_id)


async def an_environment_is_made_filled_used_upgraded_and_deleted(case):
    async with within(case.new()) as client:
        api = client.api
        name = f"env-{case.suffix}"
        made = await done(api.create_environment(name=name))
        environment = next(known for known in made.environments if known.name == name)
        equal((environment.pass_secrets, environment.safe_for_third_parties), (True, False))
        first = await done(api.set_environment_var(environment.id, "COLOUR", value="blue"))
        assert first.success and first.version_id
        await done(api.set_environment_secret_file(environment.id, path="conf/a.txt", contents="one"))
        await done(api.add_environment_repo(environment.id, repository_id="102", base_branch="main"))
        filled = await _one(api, environment.id)
        assert "COLOUR=blue" in filled.env_contents
        equal([file.path for file in filled.secret_files], ["conf/a.txt"])
        equal([repo.full_name for repo in filled.selected_repositories], ["acme/api"])
        await done(api.delete_environment_repo(environment.id, "102"))

        sandbox = await done(client.create(type="small", environment=name))
        equal(sandbox.info.environment, name)
        equal((await done(sandbox.exec("echo $COLOUR; cat conf/a.txt"))).stdout, "blue\none")
        pinned = sandbox.info.environment_version
        await done(api.set_environment_var(environment.id, "COLOUR", {"value": "red"}))
        upgraded = await done(api.upgrade_environment(environment.id, agent_ids=[sandbox.id]))
        equal((upgraded.success, upgraded.upgraded), (True, 1))
        assert (await done(sandbox.refresh())).environment_version != pinned
        equal((await done(sandbox.exec("echo $COLOUR"))).stdout, "red\n")
        await done(sandbox.delete())

        await done(api.delete_environment_var(environment.id, "COLOUR"))
        await done(api.delete_environment_secret_file(environment.id, "conf/a.txt"))
        emptied = await _one(api, environment.id)
        equal((emptied.env_contents.strip(), emptied.secret_files), ("", []))
        await refused(
            lambda: api.delete_environment_var(environment.id, "COLOUR"), NotFoundError, status=404, code="not_found"
        )
        updated = await done(
            api.update_environment(
                environment.id,
                name=f"{name}-2",
                pass_github=False,
                env_contents="A=1",
                secret_files=[{"path": "b", "contents": "c"}],
                repositories=[{"repositoryId": "101", "baseBranch": "main"}],
            )
        )
        equal((updated.environment.name, updated.environment.pass_github), (f"{name}-2", False))
        versions = (await _one(api, environment.id)).versions
        numbers = [version.version_number for version in versions]
        equal(numbers, sorted(numbers, reverse=True))
        assert (await done(api.delete_environment(environment.id))).success
        assert environment.id not in [known.id for known in (await done(api.environments())).environments]


async def what_environments_refuse(case):
    async with case.api() as api:
        await refused(lambda: api.create_environment(name="not a name"), BadRequestError, code="invalid_name")
        base = next(known for known in (await done(api.environments())).environments if known.is_default)
        await refused(lambda: api.delete_environment(base.id), BadRequestError, code="update_failed")
        await refused(lambda: api.set_environment_var(base.id, "1A", value=""), BadRequestError, code="invalid_key")
        await refused(
            lambda: api.set_environment_var(base.id, "SANDBOXER_TOKEN", value="x"), BadRequestError, code="invalid_env"
        )
        await refused(
            lambda: api.set_environment_secret_file(base.id, path="../x", contents=""),
            BadRequestError,
            code="invalid_secret_path",
        )
