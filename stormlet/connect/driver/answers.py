"""What a session returns, as the driver takes it: a connector may forget to return anything, which is None."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from operator import index
from typing import Any, NoReturn, cast

from stormlet.connect.session import Delivery


def deliveries(session: object, answer: object) -> Sequence[Delivery]:
    """Return what ``receive`` returned, as a sequence that can be sliced, which a deque cannot."""
    if isinstance(answer, list | tuple):
        return cast("Sequence[Delivery]", answer)
    if isinstance(answer, Iterable):
        return list(cast("Iterable[Delivery]", answer))
    _refuse(session, "receive", answer, "a list of deliveries, an empty one if there are none")


def not_taken(session: object, answer: object) -> int:
    """Return what ``settle`` returned."""
    try:
        return index(cast("int", answer))
    except TypeError:
        _refuse(session, "settle", answer, "the number of receipts that the broker did not take any more, such as 0")


def lost(session: object, answer: object) -> Sequence[Any]:
    """Return what ``renew`` returned."""
    if isinstance(answer, Collection):
        return list(cast("Collection[Any]", answer))
    _refuse(session, "renew", answer, "a list of the receipts that are lost, an empty one if none are")


def _refuse(session: object, method: str, answer: object, due: str) -> NoReturn:
    what = "None" if answer is None else f"an object of type {type(answer).__name__}"
    raise TypeError(f"{type(session).__name__}.{method} returned {what}; let it return {due}")
