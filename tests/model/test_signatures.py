"""What the signatures of functions say."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from functools import partial
from weakref import ref

import pytest

from stormlet.model.signatures import can_be_called, positional_parameters, returned, takes_resume


def nothing() -> None:
    pass


def keyworded(*, limit: int = 1) -> int:
    return limit


def both(value: object, out: object) -> None:
    pass


class Shout:
    """Has a method."""

    def method(self, value: object) -> None:
        pass


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (nothing, 0),
        (keyworded, 0),
        (str.upper, 1),
        (both, 2),
        (partial(both, ""), 1),
        (Shout().method, 1),
        (lambda a, /, b, *c, d, **e: None, 3),
        (int, None),
    ],
    ids=["none", "keyword", "builtin", "two", "partial", "method", "all kinds", "unknown"],
)
def test_how_many_positional_parameters(function: Callable[..., object], count: int | None) -> None:
    """Those without a name, those with one and the rest; None where Python cannot tell."""
    assert positional_parameters(function) == count


def test_every_function_is_asked_for_itself() -> None:
    """What is remembered of one function is not said of another, nor of its partial."""
    for _ in range(2):
        assert can_be_called(both, 1, 2)
        assert not can_be_called(both, 1)
        assert can_be_called(partial(both, 1), 2)
        assert can_be_called(nothing)
        assert returned(keyworded) is int
        assert returned(both) is type(None)


def test_functions_are_not_kept() -> None:
    """What was read of a function goes with it."""

    def short_lived(value: int) -> int:
        return value

    assert can_be_called(short_lived, 1)
    assert returned(short_lived) is int
    gone = ref(short_lived)
    del short_lived
    gc.collect()
    assert gone() is None


def resumable(resume: object = None) -> Iterator[object]:
    yield resume


def positional(resume: object = None, /) -> Iterator[object]:
    yield resume


@pytest.mark.parametrize(
    ("source", "takes"),
    [(resumable, True), (partial(resumable), True), (positional, False), (list, False), (iter, False)],
    ids=["keyword", "partial", "positional only", "without", "unknown signature"],
)
def test_who_can_resume(source: Callable[..., object], takes: bool) -> None:
    """Functions that accept ``resume=``; not those of which Python cannot tell."""
    assert takes_resume(source) is takes
