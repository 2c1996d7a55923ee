"""Bolts as the user declares them, in every form that their logic may have, and their subscriptions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, Unpack, cast, overload

import msgspec

from stormlet.core.schema import Schema
from stormlet.core.state.tables import Declared
from stormlet.errors import InvalidTopology
from stormlet.model.builder_types import AddressedOutputs, BoltFactory, BoltOptions
from stormlet.model.checks.committers import check_alone, rows_of, works_by_epochs
from stormlet.model.checks.components import (
    check_at_least_one,
    check_inputs,
    check_one_of,
    check_tick,
    declared_outputs,
    may_tick,
)
from stormlet.model.checks.keyed import (
    check_calls,
    check_groupings,
    check_stateless,
    states_of_class,
    states_of_function,
)
from stormlet.model.components import BoltBase, To
from stormlet.model.configuration import configure
from stormlet.model.description import BoltSpec, Executor, OnError, SpoutSpec
from stormlet.model.logic import check_code, component_class, logic_kind
from stormlet.model.state.declared import Cell, Value
from stormlet.model.state.keyed import KeyedBolt, key_type
from stormlet.model.streams import Stream, StreamId, Subscription
from stormlet.topology.builder import Builder, listed

T = TypeVar("T")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
U = TypeVar("U")
V = TypeVar("V")


class BoltBuilder(Builder):
    """Declares bolts, and subscribes them to streams."""

    # First every form of logic; then the functions again, fed by streams of different types: for these
    # mypy would take the common base of the types as T, not their union.

    @overload
    def bolt(
        self,
        id: str,
        logic: Callable[[T], Awaitable[None] | None],
        first: Subscription[T],
        /,
        *others: Subscription[T],
        **options: Unpack[BoltOptions],
    ) -> Stream[None]: ...
    @overload
    def bolt(
        self,
        id: str,
        logic: BoltFactory[T, U],
        first: Subscription[T],
        /,
        *others: Subscription[T],
        **options: Unpack[BoltOptions],
    ) -> Stream[U]: ...
    @overload
    def bolt(  # pyright: ignore[reportOverlappingOverload] it forgets partial(Class, …) in a protocol
        self,
        id: str,
        logic: Callable[[], BoltBase[T, U]],
        first: Subscription[T],
        /,
        *others: Subscription[T],
        **options: Unpack[BoltOptions],
    ) -> Stream[U]: ...
    @overload
    def bolt(
        self,
        id: str,
        logic: Callable[[T], AddressedOutputs[U]],
        first: Subscription[T],
        /,
        *others: Subscription[T],
        **options: Unpack[BoltOptions],
    ) -> Stream[U]: ...
    @overload
    def bolt(
        self,
        id: str,
        logic: Callable[[T], Iterator[U | To[object]] | AsyncIterator[U | To[object]]],
        first: Subscription[T],
        /,
        *others: Subscription[T],
        **options: Unpack[BoltOptions],
    ) -> Stream[U]: ...
    @overload
    def bolt(
        self,
        id: str,
        logic: Callable[[T], Awaitable[U | To[object] | None]],
        first: Subscription[T],
        /,
        *others: Subscription[T],
        **options: Unpack[BoltOptions],
    ) -> Stream[U]: ...
    @overload
    def bolt(
        self,
        id: str,
        logic: Callable[[T], U | To[object] | None],
        first: Subscription[T],
        /,
        *others: Subscription[T],
        **options: Unpack[BoltOptions],
    ) -> Stream[U]: ...
    @overload
    def bolt(
        self,
        id: str,
        logic: Callable[[T | T2 | T3], Iterator[U | To[object]] | AsyncIterator[U | To[object]]],
        first: Subscription[T],
        second: Subscription[T2],
        /,
        *others: Subscription[T3],
        **options: Unpack[BoltOptions],
    ) -> Stream[U]: ...
    @overload
    def bolt(
        self,
        id: str,
        logic: Callable[[T | T2 | T3], Awaitable[U | To[object] | None]],
        first: Subscription[T],
        second: Subscription[T2],
        /,
        *others: Subscription[T3],
        **options: Unpack[BoltOptions],
    ) -> Stream[U]: ...
    @overload
    def bolt(
        self,
        id: str,
        logic: Callable[[T | T2 | T3], U | To[object] | None],
        first: Subscription[T],
        second: Subscription[T2],
        /,
        *others: Subscription[T3],
        **options: Unpack[BoltOptions],
    ) -> Stream[U]: ...
    @overload
    def bolt(
        self,
        id: str,
        logic: Callable[[T, Cell[V]], Awaitable[None] | None],
        first: Subscription[T],
        /,
        *others: Subscription[T],
        state: Value[V],
        **options: Unpack[BoltOptions],
    ) -> Stream[None]: ...
    @overload
    def bolt(
        self,
        id: str,
        logic: Callable[[T, Cell[V]], AddressedOutputs[U]],
        first: Subscription[T],
        /,
        *others: Subscription[T],
        state: Value[V],
        **options: Unpack[BoltOptions],
    ) -> Stream[U]: ...
    @overload
    def bolt(
        self,
        id: str,
        logic: Callable[[T, Cell[V]], Iterator[U | To[object]] | AsyncIterator[U | To[object]]],
        first: Subscription[T],
        /,
        *others: Subscription[T],
        state: Value[V],
        **options: Unpack[BoltOptions],
    ) -> Stream[U]: ...
    @overload
    def bolt(
        self,
        id: str,
        logic: Callable[[T, Cell[V]], Awaitable[U | To[object] | None]],
        first: Subscription[T],
        /,
        *others: Subscription[T],
        state: Value[V],
        **options: Unpack[BoltOptions],
    ) -> Stream[U]: ...
    @overload
    def bolt(
        self,
        id: str,
        logic: Callable[[T, Cell[V]], U | To[object] | None],
        first: Subscription[T],
        /,
        *others: Subscription[T],
        state: Value[V],
        **options: Unpack[BoltOptions],
    ) -> Stream[U]: ...
    def bolt(
        self,
        id: str,
        logic: Callable[..., object],
        *inputs: Subscription[Any],
        state: object = None,
        parallelism: int = 1,
        outputs: object = None,
        tick: float | None = None,
        concurrency: int = 1,
        executor: Executor = "loop",
        on_error: OnError = "fail",
        **overrides: object,
    ) -> Stream[Any]:
        """Add a bolt and return its default stream.

        ``logic`` is a function or generator function of the value, sync or async, or a ``Bolt``, ``BasicBolt``,
        ``BatchBolt``, ``KeyedBolt``, ``EpochBolt`` or ``Committer`` class or factory. With ``state=Value(...)`` a
        function also takes a :class:`~stormlet.Cell` of the key's state, whose name is that of the parameter (law K1).
        ``tick`` is the number of seconds between two calls of the bolt's ``tick`` (law B5). ``concurrency`` is the
        number of inputs that one task processes at a time (law B3); ``executor="thread"`` runs code that blocks in
        threads (law B9). ``on_error`` is the effect of an exception in ``execute``: "fail" the input and go on,
        "restart" the task as well, at most ``max_restarts`` times in ``restart_window``, or "stop" the topology (law
        B4). ``outputs`` and ``overrides`` are as for :meth:`spout`.

        Raises :class:`~stormlet.errors.InvalidTopology` and :class:`~stormlet.errors.InvalidConfiguration`
        naming the component.
        """
        where = f"bolt {id!r}"
        self._check_new(where, id, parallelism)
        check_at_least_one(where, "concurrency", concurrency)
        check_one_of(where, "executor", executor, ("loop", "thread"))
        check_one_of(where, "on_error", on_error, ("fail", "restart", "stop"))
        if not inputs:
            raise InvalidTopology(f"{where} has no input; subscribe it to a stream, such as lines.shuffle()")
        check_inputs(where, inputs, self, self.name)
        kind = logic_kind(id, logic, has_cell=state is not None)
        keyed, states = self._keyed(where, logic, state)
        if keyed:
            check_calls(where, logic, concurrency, executor)
            self._check_groupings(where, logic, inputs)
        rows = rows_of(where, logic)
        if rows is not None and not rows.has_tasks_elsewhere:
            check_alone(where, parallelism, concurrency, executor)
        by_epochs = works_by_epochs(where, logic, executor)
        given = overrides if tick is None else {**overrides, "tick": tick}
        options = self._options("bolt", id, where, given)
        effective = configure(self._configuration, options, where)
        check_code(where, logic, executor)
        check_tick(where, logic, kind, effective.tick if "tick" in options else None)
        streams = declared_outputs(where, outputs, logic)
        ticks = may_tick(logic, kind)
        seconds = effective.tick if ticks else None
        self._bolts[id] = BoltSpec(
            id,
            logic,
            kind,
            parallelism,
            streams,
            options,
            inputs,
            seconds,
            concurrency,
            executor,
            on_error,
            ticks,
            keyed,
            states,
            cast("Value[Any] | None", state),
            rows,
            by_epochs,
        )
        return self._default_stream(id, streams)

    def connect(self, bolt: Stream[Any], *inputs: Subscription[Any]) -> None:
        """Subscribe an existing bolt to more streams, its own included. This is the way to make a cycle.

        Raises :class:`~stormlet.errors.InvalidTopology` if ``bolt`` is not a stream of a bolt of this topology.
        """
        if not isinstance(cast("object", bolt), Stream):
            raise InvalidTopology(
                f"connect needs a bolt's stream, as topology.bolt(...) returns it, not {bolt!r}"
            )
        if not inputs:
            raise InvalidTopology(f"connect {bolt.id}: name the inputs, such as lines.shuffle()")
        spec = self._bolts.get(bolt.component)
        if spec is None or bolt.topology is not self:
            raise InvalidTopology(
                f"{bolt.id} belongs to no bolt of topology {self.name!r}; bolts: {listed(self._bolts)}"
            )
        check_inputs(f"bolt {spec.id!r}", inputs, self, self.name)
        everything = (*spec.inputs, *inputs)
        if spec.keyed:
            self._check_groupings(f"bolt {spec.id!r}", spec.logic, everything)
        self._bolts[spec.id] = msgspec.structs.replace(spec, inputs=everything)

    def _keyed(self, where: str, logic: object, state: object) -> tuple[bool, Mapping[str, Declared]]:
        """Return True for a bolt with state for each key, and its states."""
        if state is not None:
            return True, states_of_function(where, logic, state)
        made = component_class(logic)
        if made is not None and issubclass(made, KeyedBolt):
            return True, states_of_class(where, cast("type[KeyedBolt[Any, Any, Any]]", cast("object", made)))
        check_stateless(where, logic)
        return False, {}

    def _check_groupings(self, where: str, logic: object, inputs: Sequence[Subscription[Any]]) -> None:
        made = component_class(logic)
        check_groupings(where, inputs, Any if made is None else key_type(made), self._schema_of)

    def _schema_of(self, stream: StreamId) -> Schema:
        components: Mapping[str, SpoutSpec | BoltSpec] = {**self._spouts, **self._bolts}
        return components[stream.component].outputs[stream.stream].schema
