"""The spouts of a run, as its epochs know them: each message of an epoch goes back to the task that has given it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TypeAlias

from stormlet.core.outcomes import DeadLetter, Failure
from stormlet.core.state.epochs import EpochAccount
from stormlet.runtime.epochs.states import position_name
from stormlet.runtime.spout.epoch_tracker import EpochTracker
from stormlet.runtime.spout.hand_overs import letter_of
from stormlet.runtime.spout.messages import HostMessage, Message
from stormlet.runtime.spout.task import SpoutTask
from stormlet.runtime.tasks import Tasks

Spout: TypeAlias = tuple[SpoutTask, EpochTracker]


class Sources:
    """The spouts of a run."""

    def __init__(self, tasks: Tasks) -> None:
        """Begin with those of a run that keeps epochs."""
        self._spouts: Sequence[Spout] = [
            (task, task.tracker) for task in tasks.all_spouts if isinstance(task.tracker, EpochTracker)
        ]

    @property
    def backlog(self) -> int:
        """Messages that are to be emitted again."""
        return sum(tracker.backlog for _, tracker in self._spouts)

    @property
    def withheld(self) -> int:
        """Messages that are acked once their epoch is durable."""
        return sum(tracker.withheld for _, tracker in self._spouts)

    @property
    def is_awaited(self) -> bool:
        """True if the host waits for a message."""
        return any(tracker.is_awaited for _, tracker in self._spouts)

    @property
    def has_told(self) -> bool:
        """True if nobody has still to hear of an outcome."""
        return all(tracker.has_told for _, tracker in self._spouts)

    def room_came(self) -> None:
        """The open epoch takes messages again."""
        for task, _ in self._spouts:
            task.room_came()

    def forget_attempt(self) -> None:
        """Forget what is under way: it belongs to an attempt that has failed."""
        for _, tracker in self._spouts:
            tracker.forget_attempt()

    def emit(self, messages: Sequence[Message], *, later: bool) -> None:
        """Have messages emitted again, with ``later`` after a pause (law X7)."""
        for (task, tracker), own in self._by_task(messages):
            tracker.emit_again(own, later=later)
            task.attend_soon()

    def tell(self, messages: Sequence[Message]) -> None:
        """These are durable (law X3)."""
        for (task, tracker), own in self._by_task(messages):
            tracker.tell(own)
            task.attend_soon()

    def take_back(self, spout: int, account: EpochAccount[Message], failure: Failure) -> None:
        """Take the messages of a task out of the epoch, as its source has them again (law X8)."""
        _, tracker = self._spouts[spout]
        tracker.give_back(account.give_back(partial(_is_of, spout)), failure)

    def positions_after(self, messages: Sequence[Message]) -> dict[str, bytes]:
        """Return how far each task is when these are durable, by the name of its position. Raises what a message id
        raises that cannot be kept."""
        found = ((task.plan, task.feed.position_after(own)) for (task, _), own in self._by_task(messages))
        return {position_name(plan): position for plan, position in found if position is not None}

    def position_name(self, spout: int) -> str:
        """Return the name of the position of a task."""
        return position_name(self._spouts[spout][0].plan)

    def letters_of(self, given_up: Sequence[Message]) -> Iterator[DeadLetter]:
        """Iterate over the dead letters of messages that were given up; the host's have none."""
        for message in given_up:
            if not isinstance(message, HostMessage) and message.failure is not None:
                task, _ = self._spouts[message.spout]
                yield letter_of(task.plan.component, message, message.failure)

    def _by_task(self, messages: Sequence[Message]) -> Sequence[tuple[Spout, Sequence[Message]]]:
        if len(self._spouts) == 1:
            return [(self._spouts[0], messages)]
        own: list[list[Message]] = [[] for _ in self._spouts]
        for message in messages:
            own[message.spout].append(message)
        return list(zip(self._spouts, own, strict=True))


def _is_of(spout: int, message: Message) -> bool:
    return message.spout == spout and not isinstance(message, HostMessage)
