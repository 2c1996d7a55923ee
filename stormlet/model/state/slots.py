"""The state that a bolt has in hand, and the descriptors by which its attributes read and write that (law K1, K2).

A bolt reads and writes its state for every tuple, so this runs compiled where it can: one object has the key and the
tables, which the descriptors find at one place of the instance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import UNSET

from stormlet.core.directives import is_extension
from stormlet.core.state.value_table import ValueTable

if not TYPE_CHECKING and is_extension(__file__):
    import cython
else:
    from stormlet.core import directives as cython

B = TypeVar("B", bound="Holder")


class Hand:
    """The tables of an instance, by the names of their states, and the key that it has in hand."""

    __slots__ = ("key", "only", "tables", "timers")

    def __init__(self, tables: dict[str, Any] | None = None, timers: Any = None, key: Any = UNSET) -> None:
        self.key = key
        """UNSET between calls."""
        self.take(tables, timers)

    def take(self, tables: dict[str, Any] | None, timers: Any) -> None:
        """Have these in hand from now on."""
        self.tables: Any = tables
        """None for an instance without a task, until it makes some."""
        self.timers = timers
        first = next(iter(tables.values())) if tables is not None and len(tables) == 1 else None
        self.only: ValueTable | None = first if isinstance(first, ValueTable) else None
        """The table of a bolt that has one value and nothing else, as most do: it need not be looked up."""


class Holder:
    """The base of bolts with state: compiled, its one attribute is found without a search by name."""

    __slots__ = ("_hand",)  # of each view of an instance: see view_of
    _hand: Hand | None


def hand_of(bolt: Holder) -> Hand:
    """Return what an instance has in hand; it may be nothing yet."""
    # Compiled, there is always an attribute, which is None at first.
    hand: Hand | None = bolt._hand if cython.compiled else getattr(bolt, "_hand", None)  # pyright: ignore[reportPrivateUsage]
    if hand is None:
        hand = bolt._hand = Hand()  # pyright: ignore[reportPrivateUsage]
    return hand


def view_of(bolt: B, key: object) -> B:
    """Return the same instance with another key in hand, for calls that overlap: all its attributes but the key are
    shared (law K2)."""
    view, hand = Holder.__new__(type(bolt)), hand_of(bolt)
    view.__dict__ = bolt.__dict__
    view._hand = Hand(hand.tables, hand.timers, key)  # pyright: ignore[reportPrivateUsage]
    return view


def full_hand(bolt: Any) -> Hand:
    """Return what an instance has in hand, if need be with tables that it makes for itself. Raise
    :class:`AttributeError` if it has no key."""
    hand = hand_of(bolt)
    if hand.key is UNSET:
        raise no_key(bolt)
    if hand.tables is None:
        bolt.make_tables()
    return hand


def no_key(bolt: object) -> AttributeError:
    """Return the error for a bolt that is asked for its key or its state between calls."""
    return AttributeError(
        f"{type(bolt).__name__} has a key, and state, in execute and on_timer alone; a test that makes an instance "
        f"sets bolt.key first"
    )


class KeySlot:
    """The attribute ``key`` of a bolt."""

    __slots__ = ()

    def __get__(self, bolt: Any, owner: Any) -> Any:
        if bolt is None:
            return self
        hand = hand_of(bolt)
        if hand.key is UNSET:
            raise no_key(bolt)
        return hand.key

    def __set__(self, bolt: Any, key: Any) -> None:
        hand_of(bolt).key = key

    def __delete__(self, bolt: Any) -> None:
        hand_of(bolt).key = UNSET


class Slot:
    """The attribute in the place of a declaration."""

    __slots__ = ("declaration", "name")

    def __init__(self, declaration: Any, name: str) -> None:
        self.declaration = declaration
        self.name = name


class ValueSlot(Slot):
    """One that is a value."""

    __slots__ = ()

    def __get__(self, bolt: Any, owner: Any) -> Any:
        return self if bolt is None else self._read(bolt)

    def __set__(self, bolt: Any, value: Any) -> None:
        self._write(bolt, value)

    def __delete__(self, bolt: Any) -> None:
        self._write(bolt, None)

    # Apart from the above, whose locals have no C types.

    def _read(self, bolt: Any) -> Any:
        hand = full_hand(bolt)
        table: ValueTable = hand.tables[self.name] if hand.only is None else hand.only
        value = table.get(hand.key)
        return self.declaration.absent(table, hand.key) if value is None else value

    def _write(self, bolt: Any, value: Any) -> None:
        hand = full_hand(bolt)
        table: ValueTable = hand.tables[self.name] if hand.only is None else hand.only
        table.put(hand.key, value)


class ViewSlot(Slot):
    """One that is a view of many entries: a map or a list."""

    __slots__ = ("view",)

    def __init__(self, declaration: Any, name: str, view: Callable[[Any, Any], Any]) -> None:
        Slot.__init__(self, declaration, name)
        self.view = view
        """Makes a view of a table and a key."""

    def __get__(self, bolt: Any, owner: Any) -> Any:
        if bolt is None:
            return self
        hand = full_hand(bolt)
        return self.view(hand.tables[self.name], hand.key)

    def __set__(self, bolt: Any, value: Any) -> None:
        self.__get__(bolt, None).replace(value)

    def __delete__(self, bolt: Any) -> None:
        self.__get__(bolt, None).clear()


class CellBase:
    """The value of the key in hand, for a function."""

    __slots__ = ("declaration", "key", "now", "table")

    def __init__(self, declaration: Any, table: ValueTable, key: Any = None, now: float = 0.0) -> None:
        self.declaration = declaration
        self.table = table
        self.key = key
        """The key in hand."""
        self.now = now
        """The time."""

    @property
    def value(self) -> Any:
        """The value, or what stands for it where none is set: the default."""
        value = self.table.get(self.key)
        return self.declaration.absent(self.table, self.key) if value is None else value

    @value.setter
    def value(self, value: Any) -> None:
        self.table.put(self.key, value)
