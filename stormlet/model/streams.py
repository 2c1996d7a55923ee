"""Streams of components, and the methods by which bolts subscribe to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, Generic, TypeVar, cast, overload

import msgspec

from stormlet.core.groupings import (
    All,
    Custom,
    CustomGrouping,
    Direct,
    Fields,
    Global,
    Grouping,
    LocalOrShuffle,
    NoGrouping,
    PartialKey,
    Shuffle,
)
from stormlet.core.schema import Schema, schema_of
from stormlet.core.shortened import shortened
from stormlet.errors import InvalidTopology, KeyFunctionFailed
from stormlet.model.components import DEFAULT_STREAM

T = TypeVar("T")
U = TypeVar("U")
T_co = TypeVar("T_co", covariant=True)


class DirectStream(msgspec.Struct, frozen=True):
    """Declaration of a stream whose tuples go to tasks that the producer names: ``outputs=DirectStream(Word)``."""

    schema: object = None
    """A record type, a list of field names, or None."""


class Output(msgspec.Struct, frozen=True):
    """A declared stream of a component."""

    schema: Schema
    direct: bool = False


class StreamId(msgspec.Struct, frozen=True):
    """Identity of a stream in its topology (Storm's ``GlobalStreamId``)."""

    component: str
    stream: str

    def __str__(self) -> str:
        return f"stream {self.stream!r} of {self.component!r}"


@dataclass(frozen=True, slots=True)
class Subscription(Generic[T_co]):
    """A stream, and the grouping that distributes its tuples over the tasks of a bolt."""

    source: StreamId
    grouping: Grouping
    topology: object = field(repr=False)
    """Identifies the topology that the stream belongs to."""


@dataclass(frozen=True, slots=True, eq=False)
class Stream(Generic[T]):
    """A handle on one stream of one component; its methods subscribe a bolt to it.

    Invariant in its type on purpose, so that type checkers reject a bolt wired to the wrong stream.
    """

    id: StreamId
    output: Output
    outputs: Mapping[str, Output] = field(repr=False)
    """All the streams that the component declares."""
    topology: object = field(repr=False)
    """Identifies the topology that the stream belongs to."""

    @property
    def component(self) -> str:
        """The id of the component that emits it."""
        return self.id.component

    @property
    def name(self) -> str:
        """The name of the stream."""
        return self.id.stream

    @overload
    def named(self, name: str) -> Stream[object]: ...
    @overload
    def named(self, name: str, record: type[U]) -> Stream[U]: ...
    def named(self, name: str, record: type[object] = object) -> Stream[Any]:
        """Return another stream that the same component declares; ``record`` is its type, for type checkers.

        Raises :class:`~stormlet.errors.InvalidTopology` naming the declared streams, if there is none of this
        name.
        """
        if name not in self.outputs:
            raise InvalidTopology(
                f"{self.component!r} declares no stream {name!r}, only {_names(self.outputs)}; "
                f"declare it with outputs={{{name!r}: ...}}"
            )
        return Stream(StreamId(self.component, name), self.outputs[name], self.outputs, self.topology)

    def shuffle(self) -> Subscription[T]:
        """Distribute tuples evenly: after *n·k* tuples each of *n* tasks got *k*."""
        return self._subscribe(Shuffle())

    @overload
    def fields(self, *names: str | int) -> Subscription[T]: ...
    @overload
    def fields(self, key: Callable[[T], object], /) -> Subscription[T]: ...
    def fields(self, *names: str | int | Callable[[T], object]) -> Subscription[T]:
        """Send equal keys to the same task, in every run and process. The key is the named fields, the value's
        item at an index, the result of a function, or, without arguments, the whole value.

        Raises :class:`~stormlet.errors.InvalidTopology` for a name that the stream does not have, listing
        those it has.
        """
        return self._subscribe(Fields(self._key(names), _field_names(names)))

    @overload
    def partial_key(self, *names: str | int) -> Subscription[T]: ...
    @overload
    def partial_key(self, key: Callable[[T], object], /) -> Subscription[T]: ...
    def partial_key(self, *names: str | int | Callable[[T], object]) -> Subscription[T]:
        """Send each key to the less loaded of two tasks; otherwise as ``fields`` (Storm's ``PartialKeyGrouping``)."""
        return self._subscribe(PartialKey(self._key(names), _field_names(names)))

    def all(self) -> Subscription[T]:
        """Send every tuple to every task."""
        return self._subscribe(All())

    def global_(self) -> Subscription[T]:
        """Send everything to the task with the lowest id."""
        return self._subscribe(Global())

    def direct(self) -> Subscription[T]:
        """Send each tuple to the task that the producer names with ``emit(..., task=)``; the stream must be declared
        ``DirectStream``."""
        return self._subscribe(Direct())

    def local_or_shuffle(self) -> Subscription[T]:
        """Do as ``shuffle``: in one process every task is local."""
        return self._subscribe(LocalOrShuffle())

    def none(self) -> Subscription[T]:
        """State no preference; does as ``shuffle``."""
        return self._subscribe(NoGrouping())

    def custom(self, grouping: CustomGrouping) -> Subscription[T]:
        """Send each tuple to the tasks that ``grouping.choose(value)`` names (Storm's ``CustomStreamGrouping``).

        Raises :class:`~stormlet.errors.InvalidTopology` for an object without ``prepare`` and ``choose``.
        """
        if not (callable(getattr(grouping, "prepare", None)) and callable(getattr(grouping, "choose", None))):
            raise InvalidTopology(
                f"{self.id}: a custom grouping has methods prepare and choose, unlike {grouping!r}"
            )
        for method in (grouping.prepare, grouping.choose):
            if iscoroutinefunction(method):
                raise InvalidTopology(
                    f"{self.id}: {method.__name__} of custom grouping {shortened(grouping)} is async, and nobody "
                    f"awaits it; write a plain method"
                )
        return self._subscribe(Custom(grouping))

    def _subscribe(self, grouping: Grouping) -> Subscription[T]:
        if isinstance(grouping, Direct) and not self.output.direct:
            raise InvalidTopology(
                f"{self.id} is not declared direct; declare it with outputs=DirectStream(...), or use another grouping"
            )
        if self.output.direct and not isinstance(grouping, Direct):
            raise InvalidTopology(
                f"{self.id} is declared direct; subscribe to it with .direct(), not .{grouping.name}()"
            )
        return Subscription(self.id, grouping, self.topology)

    def _key(self, names: Sequence[str | int | Callable[[T], object]]) -> Callable[[object], object] | None:
        if not names:
            return None
        if len(names) == 1 and callable(names[0]):
            if iscoroutinefunction(names[0]):
                raise InvalidTopology(
                    f"{self.id}: the key function {shortened(names[0])} is async; a key is there at once: look up in a "
                    f"bolt what must be waited for, and group by what it emits"
                )
            return _guarded(cast("Callable[[object], object]", names[0]), str(self.id))
        for name in names:
            if not isinstance(name, str | int):
                raise InvalidTopology(
                    f"{self.id}: {name!r} is no field; pass names or positions one by one, as in "
                    f".fields('word', 'day'), or one key function"
                )
        try:
            return self.output.schema.reader(cast("Sequence[str | int]", names))
        except InvalidTopology as error:
            raise InvalidTopology(f"{self.id}: {error}") from None


def outputs_of(declared: object, inferred: Schema) -> dict[str, Output]:
    """Return the streams that a component declares with ``outputs=``; without it, one stream of the inferred schema."""
    if declared is None:
        return {DEFAULT_STREAM: Output(inferred)}
    if isinstance(declared, Mapping):
        streams = cast("Mapping[str, object]", declared)
        return {name: _output(each) for name, each in streams.items()}
    return {DEFAULT_STREAM: _output(declared)}


def _output(declared: object) -> Output:
    if isinstance(declared, DirectStream):
        return Output(schema_of(declared.schema), direct=True)
    return Output(schema_of(declared))


def _field_names(names: Sequence[str | int | Callable[..., object]]) -> tuple[str | int, ...]:
    return tuple(name for name in names if not callable(name))


def _guarded(key: Callable[[object], object], stream: str) -> Callable[[object], object]:
    @wraps(key)  # so that its name and its annotations can be read
    def guarded(value: object) -> object:
        try:
            return key(value)
        except Exception as error:
            raise KeyFunctionFailed(
                f"the key function on {stream} raised {shortened(error)} for {shortened(value)}"
            ) from error

    return guarded


def _names(mapping: Mapping[str, object]) -> str:
    return ", ".join(map(repr, mapping)) or "none"
