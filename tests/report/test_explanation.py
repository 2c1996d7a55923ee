"""The words of an explanation."""

from __future__ import annotations

import pytest

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
