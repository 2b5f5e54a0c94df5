"""One face of the client: the one that waits, or the one that is awaited."""

import contextlib
import inspect
import os

import httpx
import sandboxer
import sandboxer.aio
import sandboxer.webhooks
from stranger import Recorder, done, within

URL = os.environ["STRANGER_URL"]


class Case:
    """What a scenario is given."""

    def __init__(self, is_async):
        self.is_async = is_async
        self.functions = sandboxer.aio if is_async else sandboxer
        prefix = "Async" if is_async else ""
        self.Client = getattr(sandboxer, prefix + "Sandboxer")
        self.Api = getattr(sandboxer, prefix + "SandboxerApi")
        self.Sandbox = getattr(sandboxer, prefix + "Sandbox")
        self.Command = getattr(sandboxer, prefix + "Command")
        self.suffix = "async" if is_async else "sync"

    def new(self, key="sbx_live_alice", **options):
        """A client of the server."""
        return self.Client(base_url=URL, api_key=key, **options)

    @contextlib.asynccontextmanager
    async def api(self, key="sbx_live_alice", **options):
        """The low-level client."""
        async with within(self.new(key, **options)) as client:
            yield client.api

    @contextlib.asynccontextmanager
    async def sandbox(self, **options):
        """A sandbox that is ready, and deleted in the end."""
        async with within(self.new()) as client:
            async with within(await done(client.create(on_exit="delete", **options))) as sandbox:
                yield sandbox

    def watching(self, requests):
        """An HTTP client of one's own, which puts what it sends into the list."""
        if self.is_async:

            async def keep(request):
                requests.append(request)

            return httpx.AsyncClient(event_hooks={"request": [keep]})
        return httpx.Client(event_hooks={"request": [requests.append]})

    async def close(self, http):
        """Closes an HTTP client of one's own."""
        await done(http.aclose() if self.is_async else http.close())


def take(is_async):
    """Wraps what the package offers to programs of this face."""
    recorder = Recorder("sandboxer")
    ours = sandboxer.aio if is_async else sandboxer
    for name in sorted(set(sandboxer.__all__)):
        member = getattr(sandboxer, name)
        if not inspect.isclass(member) or not member.__module__.startswith("sandboxer."):
            continue
        if name.startswith("Async") == is_async or name in SHARED:
            recorder.take_class(member)
    for module in (ours, sandboxer.webhooks):
        functions = [name for name in module.__all__ if inspect.isfunction(getattr(module, name))]
        recorder.take_functions(module, functions)


# Neither of the two faces: results and errors.
SHARED = {"CommandResult", "RateLimitError", "SandboxerError", "CommandError", "WaitTimeoutError", "SandboxStateError"}
