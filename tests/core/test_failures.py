"""Failures told apart and counted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stormlet.core.failures import FailureCounts, RepeatedFailure

ONE = RepeatedFailure("split", "split[0]", "execute", "ValueError", "ValueError('a')", "flow.py:12", "'a'", 1)


def test_the_first_is_told_and_the_others_are_counted() -> None:
    """Only the first of a kind is news; what stands there is the last one, with the count of all."""
    counts = FailureCounts()
    assert counts.add(ONE)
    last = replace(ONE, task="split[1]", error="ValueError('b')", value="'b'", message_id=2)
    assert not counts.add(ONE)
    assert not counts.add(last)
    assert counts.all() == (replace(last, count=3),)


@pytest.mark.parametrize(
    "change", [{"component": "x"}, {"what": "tick"}, {"kind": "KeyError"}, {"place": "flow.py:13"}]
)
def test_what_makes_a_failure_another_one(change: dict[str, str]) -> None:
    """Component, method, type and place tell failures apart."""
    counts = FailureCounts()
    counts.add(ONE)
    assert counts.add(replace(ONE, **change))  # type: ignore[arg-type]
    assert len(counts.all()) == 2


def test_the_last_one_stands_at_the_end() -> None:
    """A failure that happens again moves behind those that did not."""
    counts, other = FailureCounts(), replace(ONE, place="flow.py:99")
    for failure in (ONE, other, ONE):
        counts.add(failure)
    assert [each.place for each in counts.all()] == ["flow.py:99", "flow.py:12"]


def test_what_was_not_told_is_taken_once() -> None:
    """Repetitions are handed out with how many they were since the last time, and then forgotten."""
    counts = FailureCounts()
    for _ in range(5):
        counts.add(ONE)
    assert counts.take_untold() == [(replace(ONE, count=5), 4)]
    assert counts.take_untold() == []
    counts.add(ONE)
    assert counts.take_untold() == [(replace(ONE, count=6), 1)]
