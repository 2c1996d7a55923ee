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

import msgspec

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


class Due(msgspec.Struct, frozen=True):
    """The leases that something must be done about."""

    renew: list[str]
    """Ask for these now, and call :meth:`Leases.renewed` or :meth:`Leases.not_renewed`."""
    lost: list[str]
    """These have run out, and are forgotten."""
    held_too_long: list[str]
    """These have been renewed for ``max_hold``, and are forgotten."""


class Leases:
    """The leases of one source task, by message id. Times are seconds of any clock that does not go back."""

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
        self._leases: dict[str, _Lease] = {}

    def __len__(self) -> int:
        return len(self._leases)

    def __contains__(self, id: object) -> bool:
        return id in self._leases

    def hold(self, id: str, now: float) -> None:
        """A delivery has come, whose lease was taken no earlier than ``now``; again for one that has come again."""
        known = self._leases.pop(id, None)
        since = now if known is None else known.since
        self._leases[id] = _Lease(since, now + self.seconds, now + self.seconds / TIMES)

    def release(self, id: str) -> None:
        """It is settled."""
        self._leases.pop(id, None)

    def renewed(self, ids: Iterable[str], asked: float) -> None:
        """The broker has renewed these, which it was asked for at the time ``asked``."""
        for id in ids:
            lease = self._leases.get(id)
            if lease is not None:  # it may be settled meanwhile
                lease.ends = max(lease.ends, asked + self.seconds)

    def not_renewed(self, ids: Iterable[str], now: float) -> None:
        """The broker could not be asked for these, or has not answered."""
        again = list[tuple[str, _Lease]]()
        for id in ids:
            lease = self._leases.pop(id, None)
            if lease is not None:
                lease.due = min(now + self.seconds / TRIES, max(now, lease.ends))
                again.append((id, lease))
        again.sort(key=_due_of)
        self._leases = {**dict(again), **self._leases}

    def next_due(self) -> float | None:
        """Return the time at which to call :meth:`due`; None while nothing is held."""
        return next((lease.due for lease in self._leases.values()), None)

    def due(self, now: float) -> Due:
        """Return what is to be renewed, and what is lost; what is to be renewed is due again a third later."""
        due = Due([], [], [])
        ready: list[tuple[str, _Lease]] = []
        for id, lease in self._leases.items():
            if lease.due > now:
                break
            ready.append((id, lease))
        for id, lease in ready:
            del self._leases[id]
            self._see(id, lease, now, due)
        return due

    def _see(self, id: str, lease: _Lease, now: float, due: Due) -> None:
        if lease.ends - now <= self.seconds * ROUNDING:
            due.lost.append(id)
        elif now - lease.since >= self.max_hold:
            due.held_too_long.append(id)
        else:
            lease.due = now + self.seconds / TIMES
            self._leases[id] = lease
            due.renew.append(id)
