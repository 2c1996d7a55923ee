"""``@fuzzed`` in place of ``@given``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy


def fuzzed(
    *inputs: SearchStrategy[Any], **named: SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A quarter of the examples of the profile: there are many tests, and each runs whole commands."""
    return lambda test: settings(max_examples=settings.default.max_examples // 4)(
        given(*inputs, **named)(test)
    )
