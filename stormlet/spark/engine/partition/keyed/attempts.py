"""The inputs of a partition with keyed state: what of them is undone, and tried again (law X6, X7, K3).

Theory of operation
-------------------
In process, messages belong to epochs, and what an epoch has changed is forgotten where one of its messages fails after
it has reached state. Here the inputs that are executed together, about a thousand, are such an epoch to the partition:
they are *committed* when all of them have their outcomes in it. Until then their outputs wait, no account knows them,
and what they have changed is in the overlay of the tables.

All inputs of the partition go to the one bolt with state, so that each has its only call of it first. An input that
fails before it has changed anything, or that its bolt refuses, is executed again alone, as everywhere else. Any other
failure *spoils* the attempt: when nothing moves any more, the overlay and the outputs that wait are dropped. What the
next attempt is made of says the same :class:`~stormlet.core.state.epochs.EpochAccount` as in process: the inputs before
the first that has failed, then that one alone, then more and more of the rest. One that is given up is left out of the
attempts, so that nothing of it stays in the state of its partition, and is no reason for a cut.

What a message has changed in *other* stages stays, also where it is given up here. In process all of it is one epoch.

Inputs that belong to no message, such as those that a ``finish`` has emitted, have trees here, too (law X5). One that
fails as often as a message may have failed crashes the run, as nobody would hear of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stormlet.core.outcomes import Failure
from stormlet.core.retries import ReplayPolicy
from stormlet.core.state.epochs import Attempt, EpochAccount
from stormlet.spark.engine.partition.account import Account
from stormlet.spark.engine.partition.inputs import Batch, Input, Inputs


class Unowned(Exception):
    """An input has failed for good that belongs to no message; ``__cause__`` is what it raised."""

    def __init__(self, task: int) -> None:
        super().__init__(task)
        self.task = task


class KeyedInputs(Inputs):
    """Those that are not committed."""

    def __init__(
        self, account: Account, policy_of: Callable[[Sequence[int]], ReplayPolicy], attempt: Attempt
    ) -> None:
        super().__init__(account, policy_of)
        self._attempt = attempt
        self._members: Sequence[Input] = ()
        """The inputs of the batch, unless all were acked at once."""
        self._epoch: EpochAccount[int] = EpochAccount(1)
        """Their places."""

    @property
    def spoilt(self) -> bool:
        """True if the attempt must be undone."""
        return self._epoch.spoilt

    @property
    def is_lone(self) -> bool:
        """True if the attempt is one at a single input, which has spoilt the last one."""
        return self._epoch.is_lone

    @property
    def any_left(self) -> bool:
        """True if inputs are not committed."""
        return len(self._epoch) > 0

    def settle(self) -> Sequence[Input]:
        """Take the outcomes so far; return the inputs that are to be executed again alone. There are none once the
        attempt is spoilt."""
        again = super().settle()
        return () if self.spoilt else again

    def repeat(self) -> Sequence[Input]:
        """Begin another attempt after one that was spoilt, and undone; return its inputs."""
        self._attempt.begin()
        return [self._members[place] for place in self._epoch.repeat()]

    def commit(self) -> Sequence[Input]:
        """Settle all inputs of the attempt, none of which is open; return those of the next one. Raise
        :class:`Unowned`."""
        self._attempt.begin()
        if not self.any_left:  # all were acked at once
            return ()
        closed = self._epoch.close()
        given_up = set(closed.given_up)
        for place in closed.messages:
            each = self._members[place]
            if place not in given_up:
                self._note_acked(each)
            elif each.messages:
                self._note_given_up(each)
            else:
                raise Unowned(each.target) from each.history[-1].exception
        return [self._members[place] for place in self._epoch.resume()]

    def _take_up(self, batch: Batch) -> None:
        super()._take_up(batch)
        self._members = list(self._open.values())
        self._epoch = EpochAccount(len(self._members))
        self._epoch.messages.extend(each.place for each in self._members)

    def _ack(self, root: int) -> None:
        each = self._open.pop(root)
        self._acked[root] = each.messages

    def _fail(self, root: int, failure: Failure | None) -> Input | None:
        assert failure is not None, "a failed tree says why"
        each = self._open.pop(root)
        each.history = each.history.and_also(failure)
        has_reached = self._attempt.has_reached(root)
        if self._gives_up(each, failure):
            self._epoch.give_up(each.place)
            if has_reached:
                self._epoch.spoil_by_given_up()
            return None
        if has_reached:
            self._epoch.spoil(each.place)
        each.attempt += 1
        return each
