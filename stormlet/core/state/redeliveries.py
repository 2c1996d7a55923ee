"""Messages that a broker gives again until it has their ack (law X8).

Theory of operation
-------------------
A broker knows no position to go on from. It gives again what it has no ack for: after the process was killed, after a
connection was lost, or when it has waited long enough. So a message has three parts of a life here.

1. *Under way*, from its emit until its outcome is told. What comes again is the same message. The tasks that have given
   it are noted, as each has what the broker wants to be acked by, a delivery of its own. It goes with the instance.
2. *Durable*, from the commit of its epoch until its ack has returned. The ids of these messages are a state of the
   spout, which is loaded with the others. What comes again is acked at once. What nobody could ack, as its instance has
   died, stays here until it comes again.
3. *Forgotten*, by the next commit after that.

The broker may never give a message again whose ack it has got and whose ack has not returned, as the process was killed
between. Its id would be kept for ever; so ids are dropped after :data:`KEPT`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Final, cast

from stormlet.core.shortened import shortened
from stormlet.core.state.codecs import Keys
from stormlet.core.state.commits import StateId
from stormlet.core.state.states import State
from stormlet.core.state.tables import Declared
from stormlet.core.state.value_table import ValueTable
from stormlet.errors import InvalidEmit

NAME: Final = "redelivered"
"""The name of the ids among the states of a spout."""
KEPT: Final = 86_400.0
"""Seconds after which a message is not expected again; brokers wait for an ack for half of that at most."""
IDS: Final = Declared("value", bool, ttl=KEPT)


class Given(Enum):
    """The knowledge of a message that a task gives."""

    FIRST = "first"
    UNDER_WAY = "under way"
    DURABLE = "durable"


class Redeliveries:
    """The messages of one spout, in all of its tasks."""

    def __init__(self, spout: str, state: State | None = None) -> None:
        """``state`` is one of :data:`IDS`; without it, a new one in memory."""
        self.state = State(StateId(spout, NAME), IDS) if state is None else state
        """The ids of what is durable and was not acked."""
        self._spout = spout
        self._table = cast("ValueTable", self.state.tables[0])
        self._keys = Keys()
        self._under_way: dict[Any, dict[int, object]] = {}
        """By id: the tasks that have given it, each with the value."""
        self._asked: dict[tuple[int, Any], None] = {}
        """The tasks that are to ack what is durable."""
        self._acked: dict[Any, None] = {}
        self._takers: dict[int, Callable[[object, object], None]] = {}

    def join(self, task: int, acks: Callable[[object, object], None]) -> None:
        """Have a task, known by its index, take part. ``acks`` is called with the id and the value of a message that is
        durable, for the task to ack it."""
        self._takers[task] = acks

    def give(self, task: int, message_id: object, value: object) -> Given:
        """A task gives a message. Raises :class:`~stormlet.errors.InvalidEmit` for an id that cannot be kept."""
        try:
            self._keys.fit(message_id)
            givers = self._under_way.get(message_id)
        except TypeError:
            raise InvalidEmit(
                f"{self._spout!r} redelivers, and emits the message id {shortened(message_id)}, which cannot be kept: "
                f"use None, bool, int, float, str, bytes or a tuple of these"
            ) from None
        if givers is not None:
            givers.setdefault(task, value)
            return Given.UNDER_WAY
        if (task, message_id) in self._asked:
            return Given.UNDER_WAY
        if self._table.get(message_id) is None:
            self._under_way[message_id] = {task: value}
            return Given.FIRST
        self._asked[task, message_id] = None
        return Given.DURABLE

    def take_back(self, message_id: object) -> None:
        """A message that was given first could not be emitted."""
        del self._under_way[message_id]

    def lose(self, task: int) -> None:
        """The instance of a task has died, and nobody can ack what it has given."""
        for givers in self._under_way.values():
            givers.pop(task, None)
        self._asked = {each: None for each in self._asked if each[0] != task}

    def seal(self, message_ids: Iterable[object]) -> None:
        """These messages are of the epoch that is committed now, and the acks since the last one are durable with
        it."""
        for each in message_ids:
            self._table.put(each, True)
        for each in self._acked:
            self._table.delete(each)
        self._acked = {}

    def tell(self, task: int, message_id: object) -> bool:
        """A task is to tell the outcome of a message, which is durable. Returns False if it cannot, as its instance has
        not given it; others that have are asked to ack it."""
        givers = self._under_way.pop(message_id)
        for other, value in givers.items():
            if other != task:
                self._asked[other, message_id] = None
                self._takers[other](message_id, value)
        return task in givers

    def tell_again(self, task: int, message_id: object) -> bool:
        """A task is to ack a message that has come again. Returns False if it cannot, as its instance has died."""
        return self._asked.pop((task, message_id), False) is None

    def acked(self, message_id: object) -> None:
        """The ack of a message has returned."""
        self._acked[message_id] = None

    @property
    def acks(self) -> int:
        """The number of acks that are not durable."""
        return len(self._acked)
