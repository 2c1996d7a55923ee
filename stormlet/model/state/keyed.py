"""Bolts with state for each key (law K1 to K7), and the way in which a runtime gives them their tables.

The tables belong to the task, not to the instance. An instance that was made by hand, as in a test, makes tables in
memory for itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

import msgspec

from stormlet.core.records import is_subclass
from stormlet.core.state.commits import StateId
from stormlet.core.state.map_table import AnyTable
from stormlet.core.state.states import State
from stormlet.core.state.tables import Declared
from stormlet.core.state.timers import NAME, Timers, timers_by
from stormlet.core.tuples import Tuple
from stormlet.model.components import BoltBase, Collector, overrides
from stormlet.model.state.slots import Hand, Holder, KeySlot, Slot, full_hand, hand_of
from stormlet.model.state.type_arguments import first_argument

K = TypeVar("K")
T = TypeVar("T")
U = TypeVar("U")


class KeyedBolt(BoltBase[T, U], Holder, Generic[K, T, U]):
    """A bolt with state for each key: ``KeyedBolt[key, input, output]`` (law K1).

    ::

        class Count(KeyedBolt[str, str, Total]):
            total = Value(int, 0)

            def execute(self, tup, out):
                self.total += 1
                out.emit(Total(self.key, self.total))

    Its inputs are grouped by ``fields`` or ``global_``. A call sees the state of its key alone, as all earlier calls of
    that key have left it; no two calls of one key overlap (law K2). Outputs are anchored to the input, which is acked
    on return and failed on an exception, as for a :class:`BasicBolt`.

    Only declared state survives: other attributes are lost with the instance, and are not rolled back with a failed
    epoch (law K3).
    An instance made by hand has tables of its own: set ``bolt.key``, and call ``bolt.execute(...)``.
    """

    __slots__ = ()

    needs_acks: ClassVar[bool] = True

    if TYPE_CHECKING:
        key: K
        """The key in hand: what the grouping says of the input, None with ``global_``."""
    else:
        key = KeySlot()
    now: float = 0.0
    """The time, in seconds since 1970. It stands still within an epoch."""

    def execute(self, tup: Tuple[T], out: Collector[U]) -> Awaitable[None] | None:
        """Process one input."""
        raise NotImplementedError(f"{type(self).__name__} must define execute(self, tup, out)")

    def on_timer(self, at: float, out: Collector[U]) -> Awaitable[None] | None:
        """Act on a timer of this key, set for the time ``at`` (law K7)."""

    def merge(self, other: Any) -> None:  # no Self: pyright would refuse all methods in its place
        """Fold in what other inputs of this key have left, as in ``self.total += other.total`` (law K10).

        Optional, as ``def merge(self, other: Self)``: a class that defines it says that two states, each made of some
        of the inputs, become by it the state of all of them, whichever comes first. ``other`` is a view with the other
        state of the key, and is not to be kept.
        """
        raise NotImplementedError(f"{type(self).__name__} has no merge(self, other)")

    def set_timer(self, at: float) -> None:
        """Have :meth:`on_timer` called for this key at a time, in seconds since 1970: once, never early, also after a
        restart. A timer that is set already stays; one for the past is due in the next epoch (law K7)."""
        self._timers_of_task().set(self.key, at)

    def cancel_timer(self, at: float) -> None:
        """Cancel a timer of this key, if it is set."""
        self._timers_of_task().cancel(self.key, at)

    def make_tables(self) -> None:
        """Make tables in memory, for an instance without a task."""
        kind = type(self)
        states = states_of(kind).items()
        attach(self, {name: State(StateId(kind.__name__, name), each).tables[0] for name, each in states})

    def _timers_of_task(self) -> Timers:
        if not overrides(self, KeyedBolt, "on_timer"):
            raise AttributeError(
                f"{type(self).__name__} has no timers: it does not define on_timer(self, at, out)"
            )
        hand = full_hand(self)
        if hand.timers is None:
            hand.timers = Timers(hand.tables[NAME])
        return cast("Timers", hand.timers)


def attach(bolt: KeyedBolt[Any, Any, Any], tables: dict[str, AnyTable], timers: Timers | None = None) -> Hand:
    """Give an instance the tables of its task, by the names of :func:`states_of`, and the timers of the task, where it
    has any; return what it has in hand from then on."""
    hand = hand_of(bolt)
    hand.take(tables, timers)
    return hand


def declarations_of(kind: type) -> Mapping[str, Slot]:
    """Return the states that a class declares, its bases included, by their names."""
    found: dict[str, Slot] = {}
    for base in reversed(kind.__mro__):
        for name, thing in vars(base).items():
            if isinstance(thing, Slot):
                found[name] = thing
            else:
                found.pop(name, None)
    return found


def states_of(kind: type[KeyedBolt[Any, Any, Any]]) -> Mapping[str, Declared]:
    """Return the states of a bolt class with all their types, by their names in the store; its timers are one of
    them."""
    key = key_type(kind)
    slots = declarations_of(kind).items()
    states = {name: msgspec.structs.replace(slot.declaration.declared, key=key) for name, slot in slots}
    if overrides(kind, KeyedBolt, "on_timer"):
        states[NAME] = timers_by(key)
    return states


def merges(kind: type | None) -> bool:
    """Return True for a bolt class that says by ``merge`` how two states become one."""
    return kind is not None and is_subclass(kind, KeyedBolt) and overrides(kind, KeyedBolt, "merge")


def key_type(kind: object) -> Any:
    """Return the declared type of the keys of a bolt class: the first type argument of ``KeyedBolt``; Any without."""
    return first_argument(kind, KeyedBolt)
