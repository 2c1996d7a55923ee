"""Failures told apart and counted."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from stormlet.report.failures import MOST_KINDS, OTHER_KINDS, FailureCounts, RepeatedFailure

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


class Meanwhile(FailureCounts):
    """Failures happen while somebody looks at them."""

    def _counted(self, last: RepeatedFailure) -> RepeatedFailure:
        self.add(ONE)
        self.add(replace(ONE, place=f"flow.py:{len(self._counts)}"))
        return super()._counted(last)


def test_another_thread_may_ask() -> None:
    """As one that serves a readiness probe: it gets those that were there."""
    counts = Meanwhile()
    counts.add(ONE)
    counts.add(replace(ONE, what="tick"))
    assert [each.what for each in counts.all()] == ["execute", "tick"]


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
    assert counts.take_unreported() == [(replace(ONE, count=5), 4)]
    assert counts.take_unreported() == []
    counts.add(ONE)
    assert counts.take_unreported() == [(replace(ONE, count=6), 1)]


def test_the_kinds_beyond_a_hundred_are_counted_together() -> None:
    """Two entries more are the most that any number of exception classes makes, and no failure is left out."""
    counts = FailureCounts()
    firsts = [counts.add(replace(ONE, kind=f"Error{number}")) for number in range(20_000)]
    assert sum(firsts) == MOST_KINDS + 1
    last = counts.all()[-1]
    assert (len(counts.all()), last.kind, last.place, last.error) == (101, OTHER_KINDS, "", ONE.error)
    assert last.count == 20_000 - MOST_KINDS


def test_what_is_distinguished_stays_so() -> None:
    """A kind that was among the first is counted for itself, however many others have come."""
    counts = FailureCounts()
    for number in range(MOST_KINDS * 2):
        counts.add(replace(ONE, kind=f"Error{number}"))
    assert not counts.add(replace(ONE, kind="Error0"))
    assert [each.count for each in counts.all() if each.kind == "Error0"] == [2]


def test_each_method_of_a_component_has_a_hundred_kinds() -> None:
    """Those of one do not hide those of another."""
    counts = FailureCounts()
    for number in range(MOST_KINDS * 2):
        counts.add(replace(ONE, kind=f"Error{number}"))
    assert counts.add(replace(ONE, what="tick"))
    assert counts.add(replace(ONE, component="other"))
    assert {each.kind for each in counts.all()[-2:]} == {ONE.kind}


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["execute", "tick"]), st.integers(1, 250))))
def test_the_counts_of_a_method_add_up(happened: list[tuple[str, str, int]]) -> None:
    """Whatever happens, each failure is in one entry."""
    counts, expected, counted = FailureCounts(), Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for component, what, kinds in happened:
        for place in range(kinds):
            counts.add(replace(ONE, component=component, what=what, place=str(place)))
        expected[component, what] += kinds
    for each in counts.all():
        counted[each.component, each.what] += each.count
    assert counted == expected
    assert len(counts.all()) <= len(expected) * (MOST_KINDS + 1)
