"""All that holds the clock of a simulated loop: threads at work, child processes, connections that await an answer.

The clock waits for each for ``patience`` seconds of real time at the most: for a thread since it is at work, for the
others since something was sent to them, or came. Then it goes on, and a warning says without what; if that gives a sign
of life, it is waited for again. At one moment of simulated time the clock waits six times as long for all, as what
polls outside would otherwise never let time pass. After that it waits for nothing outside any more.

Real time is spent only while there is something outside. Threads at rest are looked at again a thousandth of a second
later: one that just got work may not have had its turn. Then the loop looks once more for what they have
brought before they came to rest.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from selectors import EVENT_READ, SelectorKey
from socket import socket
from threading import enumerate as living_threads
from time import monotonic
from typing import Final

from stormlet.testing.outside.partners import Children, Connections, ReportingSocket, Thing
from stormlet.testing.outside.threads import Threads

TURN: Final = 0.001
"""Real seconds in which a thread that got work has its turn."""
SHORTEST_PAUSE: Final = 0.001
LONGEST_PAUSE: Final = 0.05
MOMENT: Final = 6
"""The factor of its patience for which the clock waits at one moment."""
ADVICE: Final = (
    "a test holds the clock for as long as something takes by `with sim.held():`; "
    "stormlet.testing.SimulatedLoop.patience is how long the clock waits by itself"
)


class World:
    """Everything outside of one loop."""

    def __init__(self, now: Callable[[], float], patience: Callable[[], float]) -> None:
        self.connections = Connections()
        self.children = Children()
        self.threads = Threads()
        self._now = now
        self._patience = patience
        self._moment = -1.0
        self._spent = 0.0
        self._waits_no_more = False
        self._left: list[str] = []

    def explain(self, error: BaseException) -> None:
        """Add to an error what the clock has gone on without."""
        for line in self._left:
            if line not in getattr(error, "__notes__", ()):
                error.add_note(line)

    def received(self, ready: Iterable[tuple[SelectorKey, int]]) -> None:
        """Something has come at these."""
        if self.connections.there or self.children.living:
            for key, events in ready:
                partner = self.connections.there.get(key.fd) or self.children.of(key.fd)
                if partner is not None and events & EVENT_READ:
                    partner.received(monotonic())

    def reporting(self, sock: socket) -> ReportingSocket:
        """The same socket; what is sent by it is noted."""
        fd = sock.fileno()

        def note_sent() -> None:
            connection = self.connections.there.get(fd)
            if connection is not None:
                connection.sent(monotonic())

        return ReportingSocket(sock, note_sent)

    @contextmanager
    def accounted_for(self) -> Generator[None]:
        """The threads that are started inside are accounted for elsewhere."""
        before = set(living_threads())
        yield
        self.threads.leave_out(each for each in living_threads() if each not in before)

    def pauses(self) -> Iterable[float]:
        """Seconds of real time, one after another, in which to wait for something from outside before time may
        pass."""
        there = self.connections.there or self.children.living or self.threads.new()
        return self._pauses() if there and not self._waits_no_more else ()

    def _pauses(self) -> Iterator[float]:
        pause, looks = SHORTEST_PAUSE, self._last_looks()
        while (held := self._is_held()) or looks:
            if held:
                yield from self._counted(pause)
                pause, looks = min(2 * pause, LONGEST_PAUSE), self._last_looks()
            else:
                yield looks.pop()

    def _last_looks(self) -> list[float]:
        """Pauses, the first at the end, after which threads that are at rest now are known to be so."""
        if not self.threads.new():
            return []
        return [0.0, TURN] if self.threads.may_have_got_work() else [0.0]

    def _counted(self, seconds: float) -> Iterator[float]:
        began = monotonic()
        try:
            yield seconds
        finally:
            self._spent += monotonic() - began

    def _is_held(self) -> bool:
        """True if the clock waits for something now; what it has waited for in vain is given up."""
        if self._waits_no_more:
            return False
        if self._now() != self._moment:
            self._moment, self._spent = self._now(), 0.0
        now, patience = monotonic(), self._patience()
        busy: Sequence[Thing] = (
            *self.threads.busy(now, patience),
            *self.connections.busy(now),
            *self.children.busy(now),
        )
        waiting = [each for each in busy if not each.given_up]
        if waiting and self._spent >= MOMENT * patience:
            self._waits_no_more = True
            self._go_on_without(
                waiting, f"after {self._spent:.3g} s of real time at that moment, and waits no more"
            )
            return False
        silent = [each for each in waiting if each.until(patience) <= now]
        self._go_on_without(silent, f"after {patience:g} s of real time")
        return len(waiting) > len(silent)

    def _go_on_without(self, things: Sequence[Thing], why: str) -> None:
        if not things:
            return
        for each in things:
            each.given_up = True
        names = ", ".join(map(str, things))
        self._left.append(f"simulated time went on at {self._moment:g} s without {names}, {why}; {ADVICE}")
        warnings.warn(self._left[-1], RuntimeWarning, stacklevel=2)
