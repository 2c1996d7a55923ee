"""What a session returns, as the driver takes it: a connector may forget to return anything, which is None."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any, cast

from stormlet.connect.session import Delivery, Written


def deliveries(session: object, answer: object) -> Sequence[Delivery]:
    """Return what ``receive`` returned, as a sequence that can be sliced, which a deque cannot."""
    if isinstance(answer, list | tuple):
        return cast("Sequence[Delivery]", answer)
    if isinstance(answer, Iterable):
        return list(cast("Iterable[Delivery]", answer))
    raise _refusal(session, "receive", answer, "a list of deliveries, an empty one if there are none")


def not_taken(session: object, answer: object) -> int:
    """Return what ``settle`` returned."""
    try:
        return index(cast("int", answer))
    except TypeError:
        due = "the number of receipts that the broker did not take any more, such as 0"
        raise _refusal(session, "settle", answer, due) from None


def lost(session: object, answer: object) -> Sequence[Any]:
    """Return what ``renew`` returned."""
    if isinstance(answer, Iterable):
        return list(cast("Iterable[object]", answer))
    raise _refusal(session, "renew", answer, "a list of the receipts that are lost, an empty one if none are")


def written(session: object, answer: object, count: int) -> Sequence[Written]:
    """Return what ``write`` returned of so many values."""
    if not isinstance(answer, Iterable):
        raise _refusal(session, "write", answer, "what became of each value, such as DONE")
    each = list(cast("Iterable[Written]", answer))
    if len(each) != count:
        raise ValueError(f"the sink got {count} values, and says what became of {len(each)}")
    return each


def _refusal(session: object, method: str, answer: object, due: str) -> TypeError:
    what = "None" if answer is None else f"an object of type {type(answer).__name__}"
    return TypeError(f"{type(session).__name__}.{method} returned {what}; let it return {due}")
