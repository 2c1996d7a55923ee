"""Receipts that run out: those to renew now, and those that are lost (law R4).

Theory of operation
-------------------
A lease is shorter than what the engine may take for a message, with all its attempts. So it is renewed after each third
of its time. It counts from before the moment at which the renewal was asked for, as the broker may have got that at
once, and nobody knows when. A renewal that cannot be asked for, or is not answered, is asked for again each thirtieth
of the time until the lease has run out; then the message belongs to somebody else.

``max_hold`` ends that: a message that nobody settles would be held for ever.

All leases of a source are equally long. So they are due in the order in which they were taken or last asked for, and
one dict in that order is all there is to keep: what is settled leaves it, and nothing is searched. Only those that must
be asked for again come before all others, which are a thirtieth late then at most.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

R = TypeVar("R")
TIMES = 3
"""Renewals in the time of a lease."""
TRIES = 30
"""The same while none succeeds."""
ROUNDING = 1e-6
"""The part of a lease by which the sum of its thirds may differ from the whole."""


class _Lease(msgspec.Struct, gc=False):
    since: float
    ends: float
    due: float


def _due_of(entry: tuple[object, _Lease]) -> float:
    return entry[1].due


class Due(msgspec.Struct, Generic[R], frozen=True):
    """The leases that something must be done about."""

    renew: list[R]
    """Ask for these now, and call :meth:`Leases.renewed` or :meth:`Leases.not_renewed`."""
    lost: list[R]
    """These have run out, and are forgotten."""
    held_too_long: list[R]
    """These have been renewed for ``max_hold``, and are forgotten."""


class Leases(Generic[R]):
    """The leases of one source task. Times are seconds of any clock that does not go back."""

    __slots__ = ("_leases", "max_hold", "seconds")

    def __init__(self, seconds: float, max_hold: float) -> None:
        """``seconds`` is the time of a lease. Raises :class:`ValueError` unless ``0 < seconds <= max_hold``."""
        if not 0 < seconds <= max_hold:
            raise ValueError(
                f"a lease of {seconds} s must be longer than 0 s and no longer than max_hold={max_hold}"
            )
        self.seconds = seconds
        """The time of a lease."""
        self.max_hold = max_hold
        """Seconds for which a message is held at most."""
        self._leases: dict[R, _Lease] = {}

    def __len__(self) -> int:
        return len(self._leases)

    def __contains__(self, receipt: object) -> bool:
        return receipt in self._leases

    def hold(self, receipt: R, now: float) -> None:
        """A delivery has come, whose lease was taken no earlier than ``now``; again for one that has come again."""
        known = self._leases.pop(receipt, None)
        since = now if known is None else known.since
        self._leases[receipt] = _Lease(since, now + self.seconds, now + self.seconds / TIMES)

    def release(self, receipt: R) -> None:
        """It is settled."""
        self._leases.pop(receipt, None)

    def renewed(self, receipts: Iterable[R], asked: float) -> None:
        """The broker has renewed these, which it was asked for at the time ``asked``."""
        for receipt in receipts:
            lease = self._leases.get(receipt)
            if lease is not None:  # it may be settled meanwhile
                lease.ends = max(lease.ends, asked + self.seconds)

    def not_renewed(self, receipts: Iterable[R], now: float) -> None:
        """The broker could not be asked for these, or has not answered."""
        again = list[tuple[R, _Lease]]()
        for receipt in receipts:
            lease = self._leases.pop(receipt, None)
            if lease is not None:
                lease.due = min(now + self.seconds / TRIES, max(now, lease.ends))
                again.append((receipt, lease))
        again.sort(key=_due_of)
        self._leases = {**dict(again), **self._leases}

    def next_due(self) -> float | None:
        """Return the time at which to call :meth:`due`; None while nothing is held."""
        return next((lease.due for lease in self._leases.values()), None)

    def due(self, now: float) -> Due[R]:
        """Return what is to be renewed, and what is lost; what is to be renewed is due again a third later."""
        due = Due[R]([], [], [])
        ready: list[tuple[R, _Lease]] = []
        for receipt, lease in self._leases.items():
            if lease.due > now:
                break
            ready.append((receipt, lease))
        for receipt, lease in ready:
            del self._leases[receipt]
            self._see(receipt, lease, now, due)
        return due

    def _see(self, receipt: R, lease: _Lease, now: float, due: Due[R]) -> None:
        if lease.ends - now <= self.seconds * ROUNDING:
            due.lost.append(receipt)
        elif now - lease.since >= self.max_hold:
            due.held_too_long.append(receipt)
        else:
            lease.due = now + self.seconds / TIMES
            self._leases[receipt] = lease
            due.renew.append(receipt)
