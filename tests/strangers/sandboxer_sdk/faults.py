"""Faults of the client, each shown: see faults.json."""

from sandboxer import BadRequestError, NotFoundError, SandboxerError
from stranger import collect, done, fault, refused, within


async def web_sockets_are_asked_for_without_asking(case):
    requests = []
    http = case.watching(requests)
    async with within(case.new(http_client=http)) as client:
        sandbox = await done(client.create(type="small"))
        for call in ("exec_web_socket", "ssh_web_socket"):
            wrong = await refused(lambda: getattr(client.api, call)(sandbox.id), SandboxerError, status=426)
            asked = "Upgrade" if "upgrade" in requests[-1].headers else "no Upgrade"
            fault("plain-web-sockets", f"{requests[-1].method} with {asked} header, answered {wrong.status} {wrong.code}")
        await done(sandbox.delete())
    await case.close(http)


async def a_limit_does_not_make_pages_smaller(case):
    requests = []
    http = case.watching(requests)
    async with within(case.new(http_client=http)) as client:
        sandbox = await done(client.create(type="small"))
        await collect(client.list(limit=1))
        fault("page-size", f"list(limit=1) asks for limit={requests[-1].url.params['limit']}")
        await done(sandbox.delete())
    await case.close(http)


async def stopping_what_is_stopped_is_an_error(case):
    async with within(case.new()) as client:
        sandbox = await done(client.create(type="small"))
        await done(sandbox.stop(timeout=60))
        wrong = await refused(lambda: sandbox.stop(), BadRequestError)
        fault("stop-of-stopped", f"stop() of an archived sandbox raises {wrong.code}")
        await done(sandbox.delete())


async def the_error_of_a_clean_up_hides_that_of_the_block(case):
    async with within(case.new()) as client:
        sandbox = await done(client.create(type="small", on_exit="stop"))
        await done(sandbox.stop(timeout=60))
        try:
            async with within(sandbox):
                raise KeyError("mine")
        except (KeyError, SandboxerError) as seen:
            fault("clean-up-hides", f"a KeyError in the block comes out as {type(seen).__name__}")
        await done(sandbox.delete())


async def variables_stand_in_the_text_of_a_command(case):
    async with case.sandbox(type="small") as sandbox:
        await done(sandbox.exec("true", env={"PASSWORD": "s3cr3t"}))
        history = await done(sandbox.history(limit=1))
        fault("env-in-command", f"the history has {history.commands[0].command}")


async def an_id_leads_to_another_path(case):
    requests = []
    http = case.watching(requests)
    async with within(case.new(http_client=http)) as client:
        await refused(lambda: client.api.get(".."), NotFoundError, status=404)
        fault("unchecked-ids", f"get('..') asks for {requests[-1].url.path.rstrip('/')}")
    await case.close(http)
