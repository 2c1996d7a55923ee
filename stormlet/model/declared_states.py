"""Declarations of keyed state: ``Value``, ``MapOf`` and ``ListOf`` as attributes of a bolt class, and ``Cell`` for
functions (law K1, K6).

The name of the attribute is the name of the state in the store. In the place of the declaration the class gets a
``property``, which Python reads without a call in between: a bolt reads and writes its state for every tuple. The
property finds the table of the task by the state's name and the value by ``bolt.key``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from stormlet.core.codecs import LEAST_INT, MOST_INT, Values, is_immutable, unfit
from stormlet.core.shortened import shortened
from stormlet.core.tables import Declared, ValueTable
from stormlet.model.state_views import StateList, StateMap

T = TypeVar("T")
V = TypeVar("V")
M = TypeVar("M")


class Slot(property):
    """The property in the place of a declaration."""

    declaration: Declaration


def table_and_key(bolt: Any, name: str) -> tuple[Any, Any]:
    """Return a table of a bolt and the key in hand, if need be of tables that the bolt makes for itself."""
    if not hasattr(bolt, "key"):
        raise AttributeError(
            f"{type(bolt).__name__} has a key, and state, in execute and on_timer alone; a test that makes an instance "
            f"sets bolt.key first"
        )
    if not hasattr(bolt, "_tables"):
        bolt.make_tables()
    return bolt._tables[name], bolt.key


class Declaration(ABC):
    """Base of the declarations of states."""

    declared: Declared
    """Its types, apart from that of the keys."""

    def __set_name__(self, owner: type, name: str) -> None:
        slot = self.slot(name)
        slot.declaration = self
        setattr(owner, name, slot)

    @abstractmethod
    def slot(self, name: str) -> Slot:
        """Return the property that reads and writes this state of a bolt, under its name."""

    def fault(self) -> str | None:
        """Return the reason why this state cannot be kept, with the way out; None if it can."""
        kinds = (
            [self.declared.value]
            if self.declared.kind == "value"
            else [self.declared.inner, self.declared.value]
        )
        return next((fault for kind in kinds if (fault := unfit(kind))), None) or _fault_of_ttl(
            self.declared.ttl
        )


def _fault_of_ttl(ttl: object) -> str | None:
    if ttl is None or (isinstance(ttl, int | float) and not isinstance(ttl, bool) and 0 < ttl < float("inf")):
        return None
    return f"ttl must be a number of seconds above 0, or None, not {ttl!r}"


class Value(Declaration, Generic[V]):
    """One value for each key, as in ``total = Value(int, 0)`` (law K1).

    It reads as ``default`` where none is set, or as a new ``factory()``; without either, as None. Setting it to None
    removes it, and so does ``del``. ``ttl`` is the number of seconds after which a value that was not written
    again reads as absent (law K6). ``upgrade`` makes a value from one in the store that is of another
    type, given in basic types (law K5).

    The type is one that msgspec can encode: basic types, records and containers of these. What can change, such as a
    list or a record that is not frozen, may be changed in place.
    """

    @overload
    def __init__(
        self: Value[T],
        kind: type[T],
        default: T,
        *,
        ttl: float | None = None,
        upgrade: Callable[[Any], T] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Value[T],
        kind: type[T],
        *,
        factory: Callable[[], T],
        ttl: float | None = None,
        upgrade: Callable[[Any], T] | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Value[T | None],
        kind: type[T],
        *,
        ttl: float | None = None,
        upgrade: Callable[[Any], T] | None = None,
    ) -> None: ...
    def __init__(
        self,
        kind: Any,
        default: Any = None,
        *,
        factory: Callable[[], Any] | None = None,
        ttl: float | None = None,
        upgrade: Callable[[Any], Any] | None = None,
    ) -> None:
        self.declared = Declared("value", kind, ttl=ttl, upgrade=upgrade)
        self.default = default
        self.factory = factory

    if TYPE_CHECKING:

        @overload
        def __get__(self, bolt: None, owner: type) -> Value[V]: ...
        @overload
        def __get__(self, bolt: object, owner: type) -> V: ...
        def __get__(self, bolt: object, owner: type) -> object: ...

        def __set__(self, bolt: object, value: V) -> None: ...

        def __delete__(self, bolt: object) -> None: ...

    def fault(self) -> str | None:
        """Return the reason why this state cannot be kept."""
        return super().fault() or self._fault_of_default()

    def _fault_of_default(self) -> str | None:
        if self.default is None:
            return None
        if self.factory is not None:
            return "it has a default and a factory; leave one out"
        if not is_immutable(self.declared.value):
            return (
                f"all keys would share the default {shortened(self.default)}, which can change; pass a function that "
                f"makes it: factory={type(self.default).__name__}"
            )
        try:
            Values(self.declared.value).fit(self.default)
        except TypeError as error:
            return f"its default does not fit: {error}"
        return None

    def absent(self, table: ValueTable, key: Any) -> Any:
        """Return the value of a key that has none. One that a factory has made is in the table from then on, as it may
        be changed in place."""
        if self.factory is None:
            return self.default
        table.put(key, self.factory())
        return table.get(key)

    def slot(self, name: str) -> Slot:
        """Return the property of this state."""
        absent, plain = self.absent, self.declared.ttl is None

        def read(bolt: Any) -> Any:
            table, key = table_and_key(bolt, name)
            value = table.get(key)
            return absent(table, key) if value is None else value

        def read_immutable(bolt: Any) -> Any:
            # As read does; reading what cannot change leaves no trace.
            try:
                value = bolt._tables[name].changed.get(bolt.key)
            except AttributeError:
                return read(bolt)
            return read(bolt) if value is None else value

        def write(bolt: Any, value: Any) -> None:
            table, key = table_and_key(bolt, name)
            table.put(key, value)

        def write_int(bolt: Any, value: Any) -> None:
            # As write does, for the most frequent type. A key that has changed before fits.
            if type(value) is int and LEAST_INT <= value <= MOST_INT:
                try:
                    table, key = bolt._tables[name], bolt.key
                except AttributeError:
                    table, key = table_and_key(bolt, name)
                if key in table.changed and plain:
                    table.changed[key] = value
                    table.touched = True
                    return
            write(bolt, value)

        def delete(bolt: Any) -> None:
            table, key = table_and_key(bolt, name)
            table.delete(key)

        kind = self.declared.value
        return Slot(
            read_immutable if is_immutable(kind) else read, write_int if kind is int else write, delete
        )


class MapOf(Declaration, Generic[M, V]):
    """A dict for each key, as in ``prices = MapOf(str, Decimal)`` (law K1).

    Its entries are stored one by one: reading or setting one leaves the others alone, however many there are. ``ttl``
    is for each entry, as for :class:`Value`.
    """

    def __init__(self, key: type[M], value: type[V], *, ttl: float | None = None) -> None:
        self.declared = Declared("map", value, key, ttl=ttl)

    if TYPE_CHECKING:

        @overload
        def __get__(self, bolt: None, owner: type) -> MapOf[M, V]: ...
        @overload
        def __get__(self, bolt: object, owner: type) -> MutableMapping[M, V]: ...
        def __get__(self, bolt: object, owner: type) -> object: ...

        def __set__(self, bolt: object, value: Mapping[M, V]) -> None: ...

        def __delete__(self, bolt: object) -> None: ...

    def slot(self, name: str) -> Slot:
        """Return the property of this state."""

        def read(bolt: Any) -> StateMap[Any, Any]:
            return StateMap(*table_and_key(bolt, name))

        def write(bolt: Any, value: Mapping[Any, Any]) -> None:
            read(bolt).replace(value)

        def delete(bolt: Any) -> None:
            read(bolt).clear()

        return Slot(read, write, delete)


class ListOf(Declaration, Generic[V]):
    """A list for each key, as in ``latest = ListOf(float)`` (law K1).

    Its items are stored one by one: ``append``, ``pop()`` and setting one item leave the others alone; inserting and
    deleting in the middle moves those behind. ``ttl`` is for the list as a whole, from the last time that an item was
    set.
    """

    def __init__(self, kind: type[V], *, ttl: float | None = None) -> None:
        self.declared = Declared("list", kind, int, ttl=ttl)

    if TYPE_CHECKING:

        @overload
        def __get__(self, bolt: None, owner: type) -> ListOf[V]: ...
        @overload
        def __get__(self, bolt: object, owner: type) -> MutableSequence[V]: ...
        def __get__(self, bolt: object, owner: type) -> object: ...

        def __set__(self, bolt: object, value: Sequence[V]) -> None: ...

        def __delete__(self, bolt: object) -> None: ...

    def slot(self, name: str) -> Slot:
        """Return the property of this state."""

        def read(bolt: Any) -> StateList[Any]:
            return StateList(*table_and_key(bolt, name))

        def write(bolt: Any, value: Sequence[Any]) -> None:
            read(bolt).replace(value)

        def delete(bolt: Any) -> None:
            read(bolt).clear()

        return Slot(read, write, delete)


class Cell(Generic[V]):
    """The value of the key in hand, for a function with ``state=Value(...)``: ``total.value += 1`` (law K1)."""

    __slots__ = ("_declaration", "_table", "key", "now")

    key: Any
    """The key in hand."""
    now: float
    """The time."""

    def __init__(self, declaration: Value[V], table: ValueTable, key: Any = None, now: float = 0.0) -> None:
        self._declaration = declaration
        self._table = table
        self.key = key
        self.now = now

    @property
    def value(self) -> V:
        """The value, or what stands for it where none is set: the default."""
        value = self._table.get(self.key)
        return cast("V", self._declaration.absent(self._table, self.key) if value is None else value)

    @value.setter
    def value(self, value: V) -> None:
        self._table.put(self.key, value)

    def at(self, key: Any, now: float) -> Cell[V]:
        """Return a cell of the same state for another key, for calls that overlap (law K2)."""
        return Cell(self._declaration, self._table, key, now)
