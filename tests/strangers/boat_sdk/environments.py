"""Environments: what sandboxes are given."""

import json

from boat_sdk import (
    AddEnvironmentRepoRequest,
    CreateSandboxEnvironmentRequest,
    SecretFile,
    SetEnvironmentSecretFileRequest,
    SetEnvironmentVarRequest,
    UpdateSandboxEnvironmentRequest,
    UpdateSandboxEnvironmentRequestRepositoriesInner,
    UpgradeSandboxEnvironmentRequest,
)
from case import fails
from stranger import equal


def _one(api, environment_id):
    return next(environment for environment in api.environments().environments if environment.id == environment_id)


def _make(case, name):
    """A new environment. The answer is not of the type that the client wants it to be: see faults.py."""
    with case.api.opened("create_environment", CreateSandboxEnvironmentRequest(name=name)) as answer:
        made = json.loads(answer.data)
    equal(made["type"], "environment.created")
    assert name in [known["name"] for known in made["environments"]], made
    return next(known for known in case.api.environments().environments if known.name == name)


async def an_environment_is_made_filled_used_upgraded_and_deleted(case):
    api = case.api
    environment = _make(case, "site")
    equal((environment.pass_secrets, environment.safe_for_third_parties), (True, False))
    first = api.set_environment_var(environment.id, "COLOUR", SetEnvironmentVarRequest(value="blue"))
    assert first.success and first.version_id
    api.set_environment_secret_file(environment.id, SetEnvironmentSecretFileRequest(path="conf/a.txt", contents="one"))
    api.add_environment_repo(environment.id, AddEnvironmentRepoRequest(repository_id="102"))
    filled = _one(api, environment.id)
    assert "COLOUR=blue" in filled.env_contents
    equal([file.path for file in filled.secret_files], ["conf/a.txt"])
    equal([(repo.full_name, repo.base_branch) for repo in filled.selected_repositories], [("acme/api", "main")])
    api.delete_environment_repo(environment.id, "102")

    with case.sandbox(environment="site") as sandbox_id:
        before = api.get(sandbox_id).sandbox
        equal(before.environment, "site")
        equal(case.command(sandbox_id, "echo $COLOUR; cat conf/a.txt").stdout, "blue\none")
        api.set_environment_var(environment.id, "COLOUR", SetEnvironmentVarRequest(value="red"))
        upgraded = api.upgrade_environment(
            environment.id, upgrade_sandbox_environment_request=UpgradeSandboxEnvironmentRequest(agent_ids=[sandbox_id])
        )
        equal((upgraded.success, upgraded.upgraded, upgraded.failed), (True, 1, 0))
        assert api.get(sandbox_id).sandbox.environment_version > before.environment_version
        equal(case.command(sandbox_id, "echo $COLOUR").stdout, "red\n")

    api.delete_environment_var(environment.id, "COLOUR")
    api.delete_environment_secret_file("conf/a.txt", environment.id)
    emptied = _one(api, environment.id)
    equal((emptied.env_contents.strip(), emptied.secret_files), ("", []))
    await fails(lambda: api.delete_environment_var(environment.id, "COLOUR"), 404, "not_found")
    updated = api.update_environment(
        environment.id,
        UpdateSandboxEnvironmentRequest(
            name="site-2",
            pass_github=False,
            env_contents="A=1",
            secret_files=[SecretFile(path="b", contents="c")],
            repositories=[UpdateSandboxEnvironmentRequestRepositoriesInner(repository_id="101", base_branch="main")],
        ),
    )
    equal((updated.environment.name, updated.environment.pass_github), ("site-2", False))
    numbers = [version.version_number for version in _one(api, environment.id).versions]
    equal(numbers, sorted(numbers, reverse=True))
    assert api.delete_environment(environment.id).success
    assert environment.id not in [known.id for known in api.environments().environments]


async def what_environments_refuse(case):
    api = case.api
    base = next(known for known in api.environments().environments if known.is_default)
    value = SetEnvironmentVarRequest(value="x")
    again = CreateSandboxEnvironmentRequest(name=base.name)
    await fails(lambda: api.create_environment(again), 409, "create_failed")
    # A name that the client does not look at; this one ends a line.
    await fails(lambda: api.create_environment(CreateSandboxEnvironmentRequest(name="ends\n")), 400, "invalid_name")
    await fails(lambda: api.delete_environment(base.id), 400, "update_failed")
    await fails(lambda: api.set_environment_var(base.id, "SANDBOXER_TOKEN", value), 400, "invalid_env")
    climbing = SetEnvironmentSecretFileRequest(path="../x", contents="")
    await fails(lambda: api.set_environment_secret_file(base.id, climbing), 400, "invalid_secret_path")
