"""Declarations of keyed state: ``Value``, ``MapOf`` and ``ListOf`` as attributes of a bolt class, and ``Cell`` for
functions (law K1, K6).

The name of the attribute is the name of the state in the store. In the place of the declaration the class gets a
descriptor, which finds the table of the task by the state's name and the value by ``bolt.key``; see
:mod:`~stormlet.model.state.slots`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from stormlet.core.shortened import shortened
from stormlet.core.state.codecs import Values, is_immutable, unfit
from stormlet.core.state.tables import Declared
from stormlet.core.state.value_table import ValueTable
from stormlet.model.state.slots import CellBase, Slot, ValueSlot, ViewSlot
from stormlet.model.state.views import StateList, StateMap

T = TypeVar("T")
V = TypeVar("V")
M = TypeVar("M")


class Declaration(ABC):
    """Base of the declarations of states."""

    declared: Declared
    """Its types, apart from that of the keys."""

    def __set_name__(self, owner: type, name: str) -> None:
        setattr(owner, name, self.slot(name))

    @abstractmethod
    def slot(self, name: str) -> Slot:
        """Return the descriptor that reads and writes this state of a bolt, under its name."""

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

    Type checkers know ``self.total`` as an int. pyright refuses ``self.total = "one"`` only where the attribute is
    annotated, as in ``total: Value[int] = Value(int, 0)``; mypy needs no help.
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
        """Return the descriptor of this state."""
        return ValueSlot(self, name)


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
        """Return the descriptor of this state."""
        return ViewSlot(self, name, StateMap)


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
        """Return the descriptor of this state."""
        return ViewSlot(self, name, StateList)


class Cell(CellBase, Generic[V]):
    """The value of the key in hand, for a function with ``state=Value(...)``: ``total.value += 1`` (law K1)."""

    if TYPE_CHECKING:
        key: Any
        """The key in hand."""
        now: float
        """The time."""

        def __init__(
            self, declaration: Value[V], table: ValueTable, key: Any = None, now: float = 0.0
        ) -> None: ...

        @property
        def value(self) -> V:
            """The value, or what stands for it where none is set: the default."""
            ...

        @value.setter
        def value(self, value: V) -> None: ...

    __slots__ = ()

    def at(self, key: Any, now: float) -> Cell[V]:
        """Return a cell of the same state for another key, for calls that overlap (law K2)."""
        return Cell(self.declaration, self.table, key, now)
