"""The end of an epoch: each component acts on it, upstream first (law X5, K7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stormlet.core.state.timers import NAME
from stormlet.runtime.bolt.epoch_worker import BEGIN, END
from stormlet.runtime.bolt.task import BoltTask
from stormlet.runtime.epochs.states import KeptState

LEAST_PAUSE = 0.1
"""Seconds between two epochs that end for a timer alone, at least."""


class Wave:
    """Goes through the components at the end of each epoch. What a component emits is settled before the next one's
    turn."""

    def __init__(
        self,
        order: Sequence[Sequence[str]],
        bolts: Mapping[str, Sequence[BoltTask]],
        by_epochs: Sequence[str],
        state: KeptState,
    ) -> None:
        """``by_epochs`` are the bolts that work on whole epochs."""
        self._order = [[task for component in group for task in bolts.get(component, ())] for group in order]
        self._by_epochs = [task for id in by_epochs for task in bolts[id]]
        self._to_end = dict.fromkeys(self._by_epochs)
        """The tasks that are to be told of the end of the epoch."""
        self._state = state
        self._time: float | None = None
        """The time at which the epoch ends, once it does: it stands still from then on."""
        self._calls_timers = False
        """True if timers are called at its end."""
        self._last = float("-inf")
        """The time at which timers were called last."""
        self.has_begun = False
        """True once the epoch ends."""
        self.has_acted = False
        """True once a component has acted on the end of the epoch."""

    def next_timer(self) -> float | None:
        """The time of the first timer that is set; None if there is none."""
        times = (task.timers.next for task in self._state.tasks if task.timers is not None)
        return min((each for each in times if each is not None), default=None)

    def are_timers_due(self, now: float) -> bool:
        """Return True if a timer is to be called; one that sets itself again holds up neither the sources nor the end
        (law K7)."""
        due = self.next_timer()
        return due is not None and due <= now and now >= self._last + LEAST_PAUSE

    def moves(self, now: float) -> bool:
        """Have the next component act: its timers that are due, then ``end_epoch``. Returns False if there is none
        left. ``now`` is the time of the epoch if it has not begun to end."""
        if self._time is None:
            self._time = now
            self._state.tell_time(now)
            self._calls_timers = self.are_timers_due(now)
        if self._calls_timers:
            self._last = self._time
        self.has_begun = True
        acts = any(self._move(tasks, self._time) for tasks in self._order)
        self.has_acted |= acts
        return acts

    def _move(self, tasks: Sequence[BoltTask], time: float) -> bool:
        if self._calls_timers and _asked(NAME, [each for each in tasks if self._is_due(each, time)]):
            return True
        to_end = [each for each in tasks if each in self._to_end]
        for each in to_end:
            del self._to_end[each]
            state = self._state.found(each.plan)
            assert state is not None, "a bolt that works on epochs has a state"
            state.has_gathered = True  # one that dies before it is called owes that, and spoils the attempt
        return _asked(END, to_end)

    def begin_attempt(self) -> None:
        """Another attempt begins, or another epoch."""
        self._time = None
        self.has_begun = self.has_acted = False
        self._to_end = dict.fromkeys(self._by_epochs)
        _asked(BEGIN, self._by_epochs)

    def _is_due(self, task: BoltTask, now: float) -> bool:
        state = self._state.found(task.plan)
        if state is None or state.timers is None:
            return False
        at = state.timers.next
        return at is not None and at <= now


def _asked(name: str, tasks: Sequence[BoltTask]) -> bool:
    """Have this method called; returns True if there is somebody to call it."""
    for each in tasks:
        each.ask(name)
    return bool(tasks)
