"""The receipts of the messages that a source has under way; each settles once, and for its own connection (law R3).

Theory of operation
-------------------
With its connection a source loses what it holds: the broker delivers all that again, to it or to another. An ack that
comes later for an earlier connection means nothing to most brokers, and to some another message, whose receipt is equal
by chance. So receipts of earlier connections are kept apart. One that is settled is *stale*: it is counted, and the
broker does not hear of it.

The same message may come again while its tree goes on. If the broker has stable names for its messages, that is seen:
the message that is under way *adopts* the new receipt, and is not processed a second time. Where receipts survive, that
holds, too, for a message that was settled while its delivery was on its way from the broker to the next connection.

A message that is withdrawn is no longer this source's. If the broker delivers it once more, that is another message to
the engine, of which the old one's outcome must say nothing. Nor must the outcome of a message that a dead instance of
the spout had. So ids have a number as a suffix: each instance takes the next one, and so does each withdrawal. Messages
that are under way keep theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, Final

MARK: Final = "~"
"""Lies between a name and the suffix."""
LONGEST: Final = 12
"""Digits that no suffix has."""


class Receipts:
    """The receipts of one source task, by message id. A receipt is whatever settles the message, and never None."""

    __slots__ = (
        "_earlier",
        "_held",
        "_is_known",
        "_old",
        "_settled",
        "_suffix",
        "_suffixes",
        "_survive",
        "connection",
        "stale",
    )

    def __init__(self, *, survive: bool = False, suffixes: Iterator[int] | None = None) -> None:
        """``survive`` says that receipts stay valid when the connection is lost; ``suffixes`` are the numbers that no
        instance of the spout has taken yet."""
        self.connection = 0
        """The number of the connection, from 1; 0 before the first."""
        self.stale = 0
        """Receipts that were settled when they were valid no more."""
        self._suffixes = count() if suffixes is None else suffixes
        self._suffix = next(self._suffixes)
        self._earlier: list[int] = []
        """The suffixes, other than the present one, of ids that were under way at the last withdrawal."""
        self._survive = survive
        self._held: dict[str, Any] = {}
        self._old: dict[str, Any] = {}
        """Those of earlier connections, which are not valid."""
        self._settled: dict[str, None] | None = None
        """What was settled since a connection was lost, for as long as the next one delivers what is known."""
        self._is_known = False
        """True if some of the deliveries since the last :meth:`taken_in` were known."""

    def __len__(self) -> int:
        return len(self._held) + len(self._old)

    def __contains__(self, id: object) -> bool:
        return id in self._held or id in self._old

    def __iter__(self) -> Iterator[str]:
        yield from self._old
        yield from self._held

    def lost(self) -> None:
        """The connection is lost. Where receipts survive that, the next one may deliver all that is under way, and some
        of it is settled by then."""
        if self._survive and self._settled is None:
            self._settled = {}

    def taken_in(self) -> None:
        """All that a session delivered at once is added. If none of it was known, nothing that is settled comes
        again."""
        if not self._is_known:
            self._settled = None
        self._is_known = False

    def connected(self) -> int:
        """Begin another connection; return its number."""
        self.connection += 1
        if not self._survive:
            self._old.update(self._held)
            self._held.clear()
        return self.connection

    def id_of(self, name: str) -> str:
        """Return the message id for what the broker calls ``name``."""
        for number in self._earlier:
            if (id := _id(name, number)) in self or self._is_settled(id):
                return id
        return _id(name, self._suffix)

    def add(self, id: str, receipt: Any) -> bool:
        """Keep the receipt of a delivery. Returns False if its message is under way, which has adopted the receipt, or
        was settled while the delivery was on its way."""
        if self._settled is not None and id in self._settled:
            del self._settled[id]  # once: a broker that was killed may have forgotten the ack
            self._is_known = True
            return False
        is_known = id in self._held
        self._held[id] = receipt
        if self._old and self._old.pop(id, None) is not None:
            is_known = True
        if is_known:
            self._is_known = True
        return not is_known

    def get(self, id: str) -> Any:
        """Return a receipt without settling it; None if there is none that is valid."""
        return self._held.get(id)

    def take(self, id: str) -> Any:
        """Return a receipt to settle it, once. Returns None, and counts, if it is stale or was settled or withdrawn
        before."""
        receipt = self._held.pop(id, None)
        if receipt is None:
            self._old.pop(id, None)
            self.stale += 1
        elif self._settled is not None:
            self._settled[id] = None
        return receipt

    def give_back(self, id: str) -> Any:
        """Return a receipt whose message is to come again; None as :meth:`take` does."""
        receipt = self.take(id)
        if self._settled is not None:
            self._settled.pop(id, None)
        return receipt

    def withdraw(self, ids: Iterable[str]) -> dict[str, Any]:
        """These messages are not this source's any more; return the receipts of those that were under way."""
        held, old = self._held, self._old
        gone = {id: (held if id in held else old).pop(id) for id in ids if id in held or id in old}
        if gone:
            self._earlier = sorted({_suffix(id): None for id in (*self, *(self._settled or ()))})
            self._suffix = next(self._suffixes)
        return gone

    def _is_settled(self, id: str) -> bool:
        return self._settled is not None and id in self._settled


def _id(name: str, suffix: int) -> str:
    return f"{name}{MARK}{suffix}" if suffix or MARK in name else name


def _suffix(id: str) -> int:
    """The number behind the name; that of a delivery in a partition (``name~1+7``) counts as none."""
    number = id.rpartition(MARK)[2]
    return int(number) if number.isdecimal() and number != id and len(number) < LONGEST else 0
