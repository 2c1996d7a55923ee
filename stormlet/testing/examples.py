"""Async tests under Hypothesis' ``@given``, which calls the coroutine function once for each example."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeAlias

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
