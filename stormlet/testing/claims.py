"""The async tests that pytest leaves to us: their choice, and their run, for each example of Hypothesis."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Generator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, TypeAlias
from unittest import TestCase

import pytest

from stormlet.errors import InvalidConfiguration
from stormlet.model.signatures import signature_of
from stormlet.testing.leaks import AllowLeaks, Leaked, describe_leaks, kinds_allowed, not_allowed
from stormlet.testing.simulation import SimulatedTest, Simulation

MARKER: Final = "simulated_time"
LEAKS: Final = "simulated_time_allow_leaks"
OTHERS: Final = ("asyncio", "anyio", "trio")
"""Markers of other plugins that run async tests."""


class Claim:
    """A test that is ours to run; made at its set-up, because other plugins may wrap the function afterwards."""

    def __init__(
        self,
        name: str,
        test: Callable[..., Any],
        seed: int = 0,
        allow_leaks: AllowLeaks = False,
    ) -> None:
        self.simulated = SimulatedTest(name, seed)
        self._name = name
        self._seed = seed
        self._test = test
        self._given = given_coroutine(test)
        self._allow_leaks = allow_leaks
        self._shared = False
        self._fixtures = 0
        self._passed = False
        self._ended = False

    def run(self, funcargs: Mapping[str, object]) -> None:
        """Run the test; without fixtures that are to end, look at once for what it has left behind."""
        wanted = signature_of(self._test).parameters
        arguments = {name: value for name, value in funcargs.items() if name in wanted}
        if self._given is None:
            self.simulated.run(self._test(**arguments))
        else:
            with each_example(self._test, self._given, self._run_example):
                self._test(**arguments)
        self._passed = True
        if not self._fixtures:
            self.end()

    def _run_example(self, example: Coroutine[Any, Any, object]) -> None:
        """One example of Hypothesis', on a loop of its own unless ``sim`` or async fixtures are on that of the
        test."""
        if self._shared:
            self.simulated.run(example)
            return
        simulated = SimulatedTest(self._name, self._seed)
        try:
            simulated.run(example)
            found = simulated.leaks()
        finally:
            threads = simulated.close()
        leaks = not_allowed([*found, *threads], self._allow_leaks)
        if leaks:
            raise Leaked(leaks)

    def simulation(self) -> Simulation:
        """The simulated time of the test."""
        self._shared = True
        return self.simulated.simulation()

    def sync_form(
        self, function: Callable[..., Any], request: pytest.FixtureRequest
    ) -> Callable[..., object]:
        """A plain function that does what this async fixture function does, in the task of the test."""
        self._shared = True
        name = request.fixturename or ""

        def begin(**arguments: object) -> object:
            begun = _of_instance(function, request.instance)(**arguments)
            if inspect.iscoroutine(begun):
                return self.simulated.run(begun)
            value: object = self.simulated.begin(begun, name)
            self._fixtures += 1
            request.addfinalizer(lambda: self.simulated.end(begun, name))
            return value

        return begin

    def end(self) -> None:
        """Close the loop; if the test has passed so far, what is left behind fails it."""
        if self._ended:
            return
        self._ended = True
        found = self.simulated.leaks() if self._passed else []
        found += self.simulated.close()
        leaks = not_allowed(found, self._allow_leaks)
        if self._passed and leaks:
            pytest.fail(describe_leaks(leaks), pytrace=False)

    def abandon(self) -> None:
        """Something has failed: close the loop, whatever is left."""
        self._passed = False
        self.end()


def claim(item: pytest.Item) -> Claim | None:
    """Claim a test, if it is ours; a marker that cannot be obeyed fails it. A plain test is not meant by the marker of
    its class or module."""
    if next(item.iter_markers(MARKER), None) is not None:
        if not _is_async(item) and not any(marker.name == MARKER for marker in item.own_markers):
            return None
        _check(item)
    elif not _is_ours_to_run(item) or any(item.get_closest_marker(name) for name in OTHERS):
        return None
    assert isinstance(item, pytest.Function)
    return Claim(item.name, item.obj, **_options(item))


def are_options(seed: object = 0, allow_leaks: object = False, **unknown: object) -> bool:
    """True if the marker may be given these."""
    try:
        kinds_allowed(allow_leaks)
    except InvalidConfiguration:
        return False
    return type(seed) is int and not unknown


def _options(item: pytest.Item) -> dict[str, Any]:
    """The options of ``pytest.ini`` and the markers; the closest marker has the last word."""
    options: dict[str, Any] = {"allow_leaks": item.config.getini(LEAKS)}
    for marker in reversed(list(item.iter_markers(MARKER))):
        options.update(marker.kwargs)
    return options


def _check(item: pytest.Item) -> None:
    if any(marker.args for marker in item.iter_markers(MARKER)) or not are_options(**_options(item)):
        pytest.fail(
            f"{item.nodeid}: write @pytest.mark.{MARKER}, or with options, as in "
            f"@pytest.mark.{MARKER}(seed=7, allow_leaks=['inputs'])",
            pytrace=False,
        )
    if not _is_ours_to_run(item):
        pytest.fail(
            f"{item.nodeid} is marked {MARKER}, but it is not an `async def` test function; "
            "a plain function can call stormlet.testing.run_simulated(coroutine) instead",
            pytrace=False,
        )


def _is_ours_to_run(item: pytest.Item) -> bool:
    """True if it is a coroutine function, also one under Hypothesis' ``@given``, that no class runs in its own way, as
    unittest's do."""
    if not isinstance(item, pytest.Function):
        return False
    of_unittest = item.cls is not None and issubclass(item.cls, TestCase)
    return not of_unittest and (
        inspect.iscoroutinefunction(item.obj) or given_coroutine(item.obj) is not None
    )


def _is_async(item: pytest.Item) -> bool:
    """True if it is ``async def`` at all."""
    test = getattr(item, "obj", None)
    return inspect.isasyncgenfunction(test) or inspect.iscoroutinefunction(test) or _is_ours_to_run(item)


def _of_instance(function: Callable[..., Any], instance: object) -> Callable[..., Any]:
    """A fixture that is a method belongs to the instance of the test, not to that of its collection."""
    if inspect.ismethod(function) and type(function.__self__) is type(instance):
        bound: Callable[..., Any] = function.__func__.__get__(instance)
        return bound
    return function


CoroutineFunction: TypeAlias = Callable[..., Coroutine[Any, Any, object]]


def given_coroutine(test: Callable[..., object]) -> CoroutineFunction | None:
    """The coroutine function under ``@given``; None if this is no such test. Hypothesis lets test runners find, and
    replace, what it calls for each example as ``test.hypothesis.inner_test``."""
    inner: Any = getattr(getattr(test, "hypothesis", None), "inner_test", None)
    return inner if inspect.iscoroutinefunction(inner) else None


@contextmanager
def each_example(
    test: Any, inner: CoroutineFunction, run: Callable[[Coroutine[Any, Any, object]], object]
) -> Generator[None]:
    """Let ``run`` run the coroutine of each example of this test."""

    @wraps(inner)
    def example(*values: object, **named: object) -> None:
        run(inner(*values, **named))

    test.hypothesis.inner_test = example
    try:
        yield
    finally:
        test.hypothesis.inner_test = inner
