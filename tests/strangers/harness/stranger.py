"""What the scenarios of every stranger share: finding what a package offers, noting what was called, reporting.

A package is used as it was installed. Its public functions and methods are wrapped on the outside, so that a call from a
scenario is noted, while a call from within the package is not.
"""

import asyncio
import contextlib
import faulthandler
import functools
import inspect
import json
import logging
import os
import sys
import time
import traceback

OPENED_BY_SYNTAX = {"__enter__", "__exit__", "__aenter__", "__aexit__", "__iter__", "__aiter__"}


class Report:
    """The lines that are written; see README.md."""

    def __init__(self):
        self._file = open(os.environ["STRANGER_REPORT"], "w", encoding="utf-8")
        self._called = set()

    def write(self, kind, **fields):
        self._file.write(json.dumps({"kind": kind, **fields}) + "\n")
        self._file.flush()

    def called(self, name):
        if name not in self._called:
            self._called.add(name)
            self.write("called", name=name)


report = Report()


# What a package offers.


def is_public(name):
    return not name.startswith("_") or name in OPENED_BY_SYNTAX


class Recorder:
    """Wraps what a package offers; `package` is the name of its top module."""

    def __init__(self, package):
        self._package = package

    def _is_inside(self, frame):
        module = frame.f_globals.get("__name__", "")
        return module == self._package or module.startswith(self._package + ".")

    def _wrap(self, name, function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            inside = self._is_inside(sys._getframe(1))
            result = function(*args, **kwargs)
            return result if inside else note(name, result)

        return wrapper

    def take_class(self, cls):
        """Takes the public methods and properties of a class."""
        for name, member in list(vars(cls).items()):
            full = f"{cls.__name__}.{name}"
            if not is_public(name):
                continue
            if inspect.isfunction(member):
                setattr(cls, name, self._wrap(full, member))
            elif isinstance(member, property):
                setattr(cls, name, property(self._wrap(full, member.fget)))
            elif isinstance(member, (classmethod, staticmethod)):
                setattr(cls, name, type(member)(self._wrap(full, member.__func__)))
            elif inspect.isfunction(getattr(member, "func", None)):
                # A descriptor of the package's own around a function.
                setattr(cls, name, type(member)(self._wrap(full, member.func)))
            else:
                continue
            report.write("method", name=full)

    def take_functions(self, module, names):
        """Takes these functions of a module."""
        for name in names:
            full = f"{module.__name__}.{name}"
            setattr(module, name, self._wrap(full, getattr(module, name)))
            report.write("method", name=full)


def note(name, result):
    """Notes that a call has come to its result: when it is there, or when the first item is."""
    if inspect.iscoroutine(result):

        async def finished():
            value = await result
            report.called(name)
            return value

        return finished()
    if inspect.isasyncgen(result):

        async def items():
            try:
                async for item in result:
                    report.called(name)
                    yield item
                report.called(name)
            finally:
                await result.aclose()

        return items()
    if inspect.isgenerator(result):

        def items():
            try:
                for item in result:
                    report.called(name)
                    yield item
                report.called(name)
            finally:
                result.close()

        return items()
    report.called(name)
    return result


# Scenarios, written once for a client that waits and for one that is awaited.


async def done(value):
    """The value, awaited where it has to be."""
    return await value if inspect.isawaitable(value) else value


async def each(items):
    """The items of either kind of iterator."""
    if hasattr(items, "__aiter__"):
        iterator = items.__aiter__()
        try:
            async for item in iterator:
                yield item
        finally:
            if hasattr(iterator, "aclose"):
                await iterator.aclose()
    else:
        iterator = iter(items)
        try:
            for item in iterator:
                yield item
        finally:
            if hasattr(iterator, "close"):
                iterator.close()


async def collect(items, until=None):
    """The items up to the one that `until` holds for, or all."""
    found = []
    async with contextlib.aclosing(each(items)) as iterator:
        async for item in iterator:
            found.append(item)
            if until is not None and until(item):
                break
    return found


@contextlib.asynccontextmanager
async def within(manager):
    """Enters either kind of context manager."""
    if hasattr(manager, "__aenter__"):
        async with manager as value:
            yield value
    else:
        with manager as value:
            yield value


async def refused(value, kind, **fields):
    """The error of this kind that a call ends with; `value` is a function without arguments, or what is to be awaited."""
    try:
        await done(value() if callable(value) else value)
    except kind as error:
        assert type(error) is kind, f"{type(error).__name__} instead of {kind.__name__}: {error}"
        for name, wanted in fields.items():
            assert getattr(error, name) == wanted, f"{name}: {getattr(error, name)!r} instead of {wanted!r}: {error}"
        return error
    raise AssertionError(f"no {kind.__name__}")


async def until(look, what, seconds=60):
    """What `look` answers with as soon as that is something."""
    deadline = time.monotonic() + seconds
    while True:
        found = await done(look())
        if found:
            return found
        assert time.monotonic() < deadline, f"{what} did not come"
        time.sleep(0.02)


def equal(found, wanted):
    assert found == wanted, f"{found!r} instead of {wanted!r}"


def fault(name, symptom):
    """Reports that a fault of the client shows, and how."""
    report.write("fault", id=name, symptom=symptom)


def without_waiting(coroutine):
    """Runs a scenario of a client that is not awaited: nothing in it ever waits, so one step does all of it."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()
    raise AssertionError("a call of the waiting client had to be awaited")


class Complaints(logging.Handler):
    """What a client logs about answers that are not what it expects."""

    def __init__(self, logger):
        super().__init__(logging.WARNING)
        self.messages = []
        logging.getLogger(logger).addHandler(self)

    def emit(self, record):
        self.messages.append(record.getMessage())

    def take(self):
        messages, self.messages = self.messages, []
        return messages


def scenarios_of(modules):
    """The scenarios of these modules, in the order of their files; what is imported is none."""
    return [
        function
        for module in modules
        for name, function in vars(module).items()
        if inspect.iscoroutinefunction(function)
        and function.__module__ == module.__name__
        and not name.startswith("_")
    ]


def run(scenarios, logger, is_async):
    """Runs scenarios, functions that each take what `scenarios` pairs them with, and reports how each went."""
    complaints = Complaints(logger)
    for scenario, argument in scenarios:
        name = scenario.__name__
        # What hangs is ended, and says where.
        faulthandler.dump_traceback_later(float(os.environ.get("STRANGER_LIMIT", "300")), exit=True)
        started = time.monotonic()
        error = None
        try:
            coroutine = scenario(argument)
            asyncio.run(coroutine) if is_async else without_waiting(coroutine)
        except BaseException as problem:
            traceback.print_exc()
            error = f"{type(problem).__name__}: {problem}"
        said = complaints.take()
        if said and error is None:
            error = "; ".join(said)
        report.write("scenario", name=name, seconds=time.monotonic() - started, error=error)
    faulthandler.cancel_dump_traceback_later()
    report.write("end")
