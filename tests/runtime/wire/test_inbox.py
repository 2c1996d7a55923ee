"""The queue of a bolt task, by itself (law B6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stormlet.runtime.wire.inbox import Inbox


def inbox_with(count: int, capacity: int = 2) -> Inbox:
    inbox = Inbox(capacity, lambda: None)
    items: list[Any] = list(range(count))
    inbox.items.extend(items)
    return inbox


@pytest.mark.parametrize(("count", "full"), [(0, False), (1, False), (2, True), (3, True)])
def test_a_queue_is_full_when_it_has_what_it_may_have(count: int, full: bool) -> None:
    """From its capacity on, producers wait."""
    assert inbox_with(count).full is full


def test_producers_wait_until_there_is_room() -> None:
    """To take from a queue that is full all the same wakes nobody."""
    woken: list[str] = []
    inbox = inbox_with(4)
    inbox.call_when_room(lambda: woken.append("producer"))
    assert (inbox.take(), woken) == ([0, 1], [])
    assert (inbox.take(), woken) == ([2, 3], ["producer"])


def test_a_producer_that_waits_no_more_is_not_woken() -> None:
    """It may have been killed, again and again, while the consumer hung."""
    woken: list[str] = []
    wake: Callable[[], None] = lambda: woken.append("producer")  # noqa: E731
    inbox = inbox_with(2)
    inbox.call_when_room(wake)
    inbox.call_no_more(wake)
    assert (inbox.take(), woken) == ([0, 1], [])
