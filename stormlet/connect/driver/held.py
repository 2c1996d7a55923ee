"""A message that a source task has from its broker, and that is not settled."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import msgspec

from stormlet.core.directives import is_extension
from stormlet.core.settlement.prefix import Prefix

if not TYPE_CHECKING and is_extension(__file__):
    import cython
else:
    from stormlet.core import directives as cython


@cython.no_gc
@cython.cclass
class Held:
    """A message that is held: it waits in the buffer, or its tree goes on.

    Compiled, the garbage collector does not look into it: none outlives its task, which lets go of them all.
    """

    __slots__ = (
        "attempt",
        "id",
        "key",
        "name",
        "number",
        "place",
        "receipt",
        "since",
        "size",
        "traceparent",
        "value",
    )

    def __init__(
        self,
        id: str,
        receipt: Any,
        place: Prefix | None,
        number: int,
        since: float,
        value: Any,
        name: str | None,
        attempt: int,
        size: int,
        key: Hashable,
        traceparent: str,
    ) -> None:
        self.id = id
        self.receipt = receipt
        self.place = place
        self.number = number
        """In its partition."""
        self.since = since
        """Time of its arrival, by the clock of the loop."""
        self.value = value
        self.name = name
        """Its name at the broker, which is the origin of the tree."""
        self.attempt = attempt
        self.size = size
        """Bytes of its body."""
        self.key = key
        """For sources with ``ordered_by``."""
        self.traceparent = traceparent
        """The trace that it belongs to, where messages are traced; else empty."""


class Unreadable(msgspec.Struct, frozen=True):
    """The value of a message of which nothing can be made.

    The garbage collector looks into it: the traceback of the error has frames that have it.
    """

    body: bytes
    error: Exception


def is_unreadable(message: Held) -> bool:
    """Return True if nothing can be made of it."""
    return type(message.value) is Unreadable
