"""The words of an explanation."""

from __future__ import annotations

import re

import pytest

from stormlet.core.outcomes import Failure, FailureKind, Outstanding, Place
from stormlet.report.explanation import Explanation, TreeState


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (TreeState.OPEN, "is open (root 7)"),
        (TreeState.WAITING, "waits for its replay now: it waits for room"),
        (TreeState.BURYING, "was given up, and dead_letters= has not returned"),
        (TreeState.TELLING, "has its outcome, and its spout is about to be notified"),
        (
            TreeState.UNKNOWN,
            "is not open: it was acked or failed, which nobody remembers, or there never was one",
        ),
        (TreeState.ACKED, "was acked"),
        (TreeState.FAILED, "failed"),
    ],
)
def test_every_state_has_its_words(state: TreeState, words: str) -> None:
    """Whatever became of a message, one line says it."""
    assert (
        str(Explanation(state=state, root=7, spout="orders", message_id=1))
        == f"message 1 of 'orders' {words}"
    )


def test_a_text_names_ten_tuples_and_counts_the_others() -> None:
    """A tree may have a million of them."""
    tuples = [Outstanding(number, "save", 4, "save[0]", Place.HELD, ("read[0]",)) for number in range(13)]
    lines = str(Explanation(state=TreeState.OPEN, root=7, outstanding=tuple(tuples))).splitlines()
    assert [line.split()[0] for line in lines[1:]] == [*map(str, range(10)), "and"]
    assert lines[-1] == "  and 3 more tuples"


@pytest.mark.parametrize(("failed", "shown"), [(7, [1, 2, 3, 4, 5, 6, 7]), (9, [1, 2, 3, 3, 7, 8, 9])])
def test_a_text_shows_the_first_and_the_last_attempts_of_many(failed: int, shown: list[int]) -> None:
    """Of nine, the three between are a count in their place; of seven, each has its line."""
    failures = tuple(Failure(FailureKind.FAILED, reason=str(number)) for number in range(1, failed + 1))
    text = str(Explanation(state=TreeState.WAITING, failures=failures))
    assert [int(number) for number in re.findall(r"^  (?:attempt )?(\d+) ", text, re.MULTILINE)] == shown
    assert ("3 more attempts failed" in text) == (failed == 9)
