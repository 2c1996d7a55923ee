"""The words of an explanation."""

from __future__ import annotations

import pytest

from stormlet.core.outcomes import Outstanding, Place
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
