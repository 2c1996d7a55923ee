"""The frozen description of a topology, collected by the builder and read by the plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Generic, Literal, TypeVar, cast, overload

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
from stormlet.errors import InvalidTopology, KeyFunctionFailed
from stormlet.model.components import DEFAULT_STREAM
from stormlet.model.configuration import Configuration, configure
from stormlet.model.graph import components_in_order
from stormlet.model.logic import (
    LogicKind,
    SourceKind,
    check_code,
    source_kind,
    yields_to_all,
)
from stormlet.model.traits import bolt_traits, spout_traits

T = TypeVar("T")
U = TypeVar("U")
T_co = TypeVar("T_co", covariant=True)

Executor = Literal["loop", "thread"]
OnError = Literal["fail", "restart", "stop"]
"""Effect of an exception in ``execute``: the input fails, the task is restarted as well, or the topology stops."""


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


class SpoutSpec(msgspec.Struct, frozen=True):
    """One spout of the description."""

    id: str
    source: object
    kind: SourceKind
    parallelism: int
    outputs: Mapping[str, Output]
    options: Mapping[str, object]

    def with_source(self, source: object) -> SpoutSpec:
        """Return the same spout, its streams and options, with another source; it has one task where several could not
        share that source (law S8).

        Raises :class:`~stormlet.errors.InvalidTopology` for an object that is not a source.
        """
        kind = source_kind(self.id, source)
        check_code(f"spout {self.id!r}", source, "loop")
        alone = yields_to_all(source, kind) or spout_traits(source).single_task
        parallelism = 1 if alone else self.parallelism
        return msgspec.structs.replace(self, source=source, kind=kind, parallelism=parallelism)


class BoltSpec(msgspec.Struct, frozen=True):
    """One bolt of the description."""

    id: str
    logic: object
    kind: LogicKind
    parallelism: int
    outputs: Mapping[str, Output]
    options: Mapping[str, object]
    inputs: Sequence[Subscription[object]]
    tick: float | None
    """Seconds between ticks, or None (law B5)."""
    concurrency: int
    executor: Executor
    on_error: OnError
    ticks: bool = False
    """True if it has a method ``tick``, or may have one: a factory's bolt is not known before it is made."""


class Description(msgspec.Struct, frozen=True):
    """A whole topology, ready to be planned."""

    name: str
    configuration: Configuration
    spouts: Mapping[str, SpoutSpec]
    bolts: Mapping[str, BoltSpec]
    options: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    """The options of the configuration that the user gave to the topology."""

    @property
    def components(self) -> Mapping[str, SpoutSpec | BoltSpec]:
        """All components by id, spouts first, in the order they were declared."""
        return {**self.spouts, **self.bolts}

    def validate(self) -> None:
        """Raise :class:`~stormlet.errors.InvalidTopology` if there is no spout, if a bolt has no input, if one
        would lose its state where a spout above it resumes, or needs epochs that no spout gives."""
        if not self.spouts:
            raise InvalidTopology(
                f"topology {self.name!r} does not have any spout; add one with topology.spout(...)"
            )
        for bolt in self.bolts.values():
            if not bolt.inputs:
                raise InvalidTopology(
                    f"bolt {bolt.id!r} has no input; subscribe it to a stream, such as lines.shuffle()"
                )
        for spout in self.spouts.values():
            given = spout_traits(spout.source)
            if given.resumes:
                self._check_state_below(spout.id, given.state_advice)
        for bolt in self.bolts.values():
            wanted = bolt_traits(bolt.logic)
            if wanted.needs_epochs:
                self._check_epochs(bolt.id, wanted.epochs_advice)

    def _check_epochs(self, bolt: str, advice: str) -> None:
        if len(self.spouts) > 1:
            raise InvalidTopology(
                f"bolt {bolt!r} writes exactly once, for which the topology must have one spout; it has "
                f"{', '.join(map(repr, self.spouts))}: give each a topology of its own"
            )
        for spout in self.spouts.values():
            if not spout_traits(spout.source).gives_epochs:
                raise InvalidTopology(
                    f"bolt {bolt!r} writes exactly once, and spout {spout.id!r} gives no epochs; {advice}"
                )

    def _check_state_below(self, spout: str, advice: str) -> None:
        for id in self._below(spout):
            traits = bolt_traits(self.bolts[id].logic)
            if traits.keeps_state:
                raise InvalidTopology(
                    f"bolt {id!r} keeps state, which a run that goes on from the checkpoint of spout {spout!r} would "
                    f"miss; {traits.state_advice or f'{advice}, or keep the state outside the process'}"
                )

    def with_sources(self, sources: Mapping[str, object]) -> Description:
        """Return the same description with other sources for the spouts of these ids; raise
        :class:`~stormlet.errors.InvalidTopology` for an object that is not a source."""
        replaced = {id: self.spouts[id].with_source(source) for id, source in sources.items()}
        return msgspec.structs.replace(self, spouts={**self.spouts, **replaced})

    def configured(
        self, configuration: Configuration, where: str, given: Collection[str] = ()
    ) -> tuple[Description, Mapping[str, Configuration]]:
        """Return the same description with another configuration, and the configuration of each component. ``where``
        opens error messages; ``given`` names the options that the user set, apart from the topology's own.

        Raises :class:`~stormlet.errors.InvalidConfiguration` where the options of a component do not go
        together with it.
        """
        spouts = self.spouts
        if "max_spout_pending" not in (*self.options, *given):
            spouts = {id: self._with_room(spec, configuration) for id, spec in spouts.items()}
        specs: dict[str, SpoutSpec | BoltSpec] = {**spouts, **self.bolts}
        components = {
            id: configure(configuration, spec.options, f"{id!r} of {where}") for id, spec in specs.items()
        }
        bolts = {
            id: msgspec.structs.replace(spec, tick=components[id].tick if spec.ticks else None)
            for id, spec in self.bolts.items()
        }
        return msgspec.structs.replace(
            self, configuration=configuration, spouts=spouts, bolts=bolts
        ), components

    def _with_room(self, spout: SpoutSpec, configuration: Configuration) -> SpoutSpec:
        """Return the spout with as many messages pending as the bolts below it need, but no more than it should
        have."""
        below = (self.bolts[id] for id in self._below(spout.id))
        least = max((bolt_traits(bolt.logic).least_pending * bolt.parallelism for bolt in below), default=0)
        default, most = configuration.max_spout_pending, spout_traits(spout.source).most_pending
        if "max_spout_pending" in spout.options or default is None:
            return spout
        wanted = max(default, least)
        pending = wanted if most is None else min(wanted, most)
        if pending == default:
            return spout
        return msgspec.structs.replace(spout, options={**spout.options, "max_spout_pending": pending})

    def _below(self, component: str) -> Iterable[str]:
        successors, below, left = self._successors(), dict[str, None](), [component]
        while left:
            new = [id for id in successors[left.pop()] if id not in below]
            below.update(dict.fromkeys(new))
            left += new
        return below

    def in_order(self) -> list[list[str]]:
        """Return the components upstream first; those that form a cycle stand together (law C2)."""
        return components_in_order(self._successors())

    def cycles(self) -> list[list[str]]:
        """Return the cycles. They are allowed, and their edges do not wait for room (law B6)."""
        loops = [
            bolt.id
            for bolt in self.bolts.values()
            if any(each.source.component == bolt.id for each in bolt.inputs)
        ]
        return [group for group in self.in_order() if len(group) > 1 or group[0] in loops]

    def _successors(self) -> dict[str, list[str]]:
        successors: dict[str, list[str]] = {id: [] for id in self.components}
        for bolt in self.bolts.values():
            for subscription in bolt.inputs:
                successors[subscription.source.component].append(bolt.id)
        return successors


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
            raise KeyFunctionFailed(f"the key function on {stream} raised {error!r} for {value!r}") from error

    return guarded


def _names(mapping: Mapping[str, object]) -> str:
    return ", ".join(map(repr, mapping)) or "none"
