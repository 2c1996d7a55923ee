"""``Topology``, the builder that users hold: collects components and runs them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from types import UnionType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict, TypeVar, Unpack, cast, overload

import msgspec

from stormlet.core.components import DEFAULT_STREAM, BoltBase, Spout, TaskContext, To, overrides
from stormlet.core.configuration import Configuration, component_options, configure, read_options
from stormlet.core.description import (
    BoltSpec,
    Description,
    DirectStream,
    Executor,
    OnError,
    Output,
    SpoutSpec,
    Stream,
    StreamId,
    Subscription,
    outputs_of,
)
from stormlet.core.log_fields import log_fields
from stormlet.core.logic import (
    LogicKind,
    SourceKind,
    check_code,
    inferred_schema,
    logic_kind,
    says,
    source_kind,
    yields_to_all,
)
from stormlet.core.plan import plan
from stormlet.errors import InvalidConfiguration, InvalidTopology

if TYPE_CHECKING:
    from stormlet.runtime.dead_letters import DeadLetterTarget
    from stormlet.runtime.run import Run
    from stormlet.runtime.running import Running

T = TypeVar("T")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
U = TypeVar("U")

logger = logging.getLogger(__name__)

AddressedOutputs: TypeAlias = Iterator[To[U]] | AsyncIterator[To[U]] | Awaitable[To[U] | None] | To[U] | None
"""What a function returns that addresses all its outputs, and so says of no stream that it is the default."""

Sources: TypeAlias = Mapping[str, object] | Mapping[Stream[Any], object]
"""Sources of spouts, by the id or stream of a spout."""


class BoltFactory(Protocol[T, U]):
    """Makes a bolt: its class, or a function. A protocol, as mypy then reads T from it before the inputs."""

    def __call__(self) -> BoltBase[T, U]:
        """A new instance, for one task."""
        ...


class SpoutOptions(TypedDict, total=False):
    """What may be said of a spout beside its source and outputs; see
    :class:`~stormlet.core.configuration.Configuration`."""

    parallelism: int
    max_spout_pending: int | None
    max_attempts: int
    replay_delay: float
    replay_delay_max: float
    idle_max: float
    max_restarts: int
    restart_window: float
    restart_delay: float
    restart_delay_max: float


class BoltOptions(TypedDict, total=False):
    """What may be said of a bolt beside its logic and inputs; see :meth:`Topology.bolt`."""

    parallelism: int
    outputs: object
    tick: float | None
    concurrency: int
    executor: Executor
    on_error: OnError
    queue_capacity: int
    max_restarts: int
    restart_window: float
    restart_delay: float
    restart_delay_max: float


class Topology:
    """A named graph of spouts and bolts.

    ``configuration`` are options of :class:`~stormlet.core.configuration.Configuration`; Storm's names go
    through ``**{...}``. Raises :class:`~stormlet.errors.InvalidTopology` for an empty name and
    :class:`~stormlet.errors.InvalidConfiguration` for an option that does not exist or does not fit.
    """

    def __init__(self, name: str, **configuration: object) -> None:
        if not isinstance(cast("object", name), str) or not name.strip():
            raise InvalidTopology(f"a topology needs a name, not {name!r}")
        self.name = name
        self._configuration = _configured(Configuration(), configuration, f"topology {name!r}", name)
        self._options = read_options(configuration, "").values
        self._spouts: dict[str, SpoutSpec] = {}
        self._bolts: dict[str, BoltSpec] = {}
        self._consumed: list[object] = []

    @property
    def configuration(self) -> Configuration:
        """The configuration of the topology."""
        return self._configuration

    # Spouts.

    @overload
    def spout(
        self,
        id: str,
        source: Callable[[], Spout[T]],
        *,
        outputs: object = None,
        **options: Unpack[SpoutOptions],
    ) -> Stream[T]: ...
    @overload
    def spout(
        self,
        id: str,
        source: Callable[[], AsyncIterator[T | To[object]]]
        | Callable[[TaskContext], AsyncIterator[T | To[object]]],
        *,
        outputs: object = None,
        **options: Unpack[SpoutOptions],
    ) -> Stream[T]: ...
    @overload
    def spout(
        self,
        id: str,
        source: Callable[[], Iterator[T | To[object]]]
        | Callable[[TaskContext], Iterator[T | To[object]]]
        | Iterable[T | To[object]]
        | AsyncIterable[T | To[object]],
        *,
        outputs: object = None,
        **options: Unpack[SpoutOptions],
    ) -> Stream[T]: ...
    @overload
    def spout(
        self, id: str, source: None = None, *, outputs: type[T], **options: Unpack[SpoutOptions]
    ) -> Stream[T]: ...
    @overload
    def spout(
        self,
        id: str,
        source: None = None,
        *,
        outputs: list[str] | tuple[str, ...] | Mapping[str, object] | DirectStream | UnionType | None = None,
        **options: Unpack[SpoutOptions],
    ) -> Stream[Any]: ...
    def spout(
        self,
        id: str,
        source: object = None,
        *,
        parallelism: int = 1,
        outputs: object = None,
        **overrides: object,
    ) -> Stream[Any]:
        """Add a spout and return its default stream.

        ``source`` is a ``Spout`` class or factory, a generator function (sync or async; it may take the
        task's :class:`~stormlet.core.components.TaskContext`), any iterable or async iterable, or nothing:
        then ``running.emit`` feeds it. ``outputs`` declares the streams: a record type, a list of field
        names, a ``DirectStream``, or a mapping of these by stream name. ``overrides`` are options for this
        spout alone, such as ``max_spout_pending``, or ``max_restarts=0``: then an exception in it crashes the
        topology at once.

        Raises :class:`~stormlet.errors.InvalidTopology` and :class:`~stormlet.errors.InvalidConfiguration`
        naming the component.
        """
        where = f"spout {id!r}"
        self._check(where, id, parallelism)
        kind = source_kind(id, source)
        _check_sharing(id, source, kind, parallelism)
        check_code(where, source, "loop")
        options = _options("spout", overrides, where, log_fields(self.name, id))
        configure(self._configuration, options, where)
        streams = _outputs(where, outputs, source)
        self._spouts[id] = SpoutSpec(id, source, kind, parallelism, streams, options)
        return self._default_stream(id, streams)

    @overload
    def set_source(self, spout: Stream[T], source: Callable[[], Spout[T]]) -> None: ...
    @overload
    def set_source(
        self,
        spout: Stream[T],
        source: Callable[[], AsyncIterator[T | To[object]]]
        | Callable[[TaskContext], AsyncIterator[T | To[object]]],
    ) -> None: ...
    @overload
    def set_source(
        self,
        spout: Stream[T],
        source: Callable[[], Iterator[T | To[object]]]
        | Callable[[TaskContext], Iterator[T | To[object]]]
        | Iterable[T | To[object]]
        | AsyncIterable[T | To[object]]
        | None,
    ) -> None: ...
    def set_source(self, spout: Stream[Any], source: object) -> None:
        """Give a spout that is there already another source; its streams and options stay. It gets one task
        where several could not share that source (law S8). Runs that have begun go on with the old one.

        Raises :class:`~stormlet.errors.InvalidTopology` if ``spout`` is no stream of a spout of this topology,
        and for what is no source.
        """
        id = self._spout_of(spout)
        self._spouts[id] = self._spouts[id].with_source(source)

    def source_of(self, spout: Stream[Any]) -> object:
        """The source of a spout; None for one that ``running.emit`` alone feeds.

        Raises :class:`~stormlet.errors.InvalidTopology` if ``spout`` is no stream of a spout of this topology.
        """
        return self._spouts[self._spout_of(spout)].source

    # Bolts: first every form of logic; then the functions again, fed by streams of different types: for these
    # mypy would take what the types have in common as T, not their union.

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
    def bolt(
        self,
        id: str,
        logic: Callable[..., object],
        *inputs: Subscription[Any],
        parallelism: int = 1,
        outputs: object = None,
        tick: float | None = None,
        concurrency: int = 1,
        executor: Executor = "loop",
        on_error: OnError = "fail",
        **overrides: object,
    ) -> Stream[Any]:
        """Add a bolt and return its default stream.

        ``logic`` is a function or generator function of the value, sync or async, or a ``Bolt``,
        ``BasicBolt`` or ``BatchBolt`` class or factory. ``tick`` calls the bolt's ``tick`` every so many
        seconds (law B5). With ``concurrency`` > 1 so many inputs of one task are processed at a time (law
        B3); ``executor="thread"`` runs code that blocks in threads (law B9). ``on_error`` says what an
        exception in ``execute`` does: "fail" the input and go on, "restart" the task as well, at most
        ``max_restarts`` times in ``restart_window``, or "stop" the topology (law B4).
        ``outputs`` and ``overrides`` are as for :meth:`spout`.

        Raises :class:`~stormlet.errors.InvalidTopology` and :class:`~stormlet.errors.InvalidConfiguration`
        naming the component.
        """
        where = f"bolt {id!r}"
        self._check(where, id, parallelism)
        _at_least_one(where, "concurrency", concurrency)
        _one_of(where, "executor", executor, ("loop", "thread"))
        _one_of(where, "on_error", on_error, ("fail", "restart", "stop"))
        if not inputs:
            raise InvalidTopology(f"{where} has no input; subscribe it to a stream, such as lines.shuffle()")
        self._check_inputs(where, inputs)
        kind = logic_kind(id, logic)
        given = overrides if tick is None else {**overrides, "tick": tick}
        options = _options("bolt", given, where, log_fields(self.name, id))
        effective = configure(self._configuration, options, where)
        check_code(where, logic, executor)
        _check_tick(where, logic, kind, effective.tick if "tick" in options else None)
        streams = _outputs(where, outputs, logic)
        ticks = _ticks(logic, kind)
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
        )
        return self._default_stream(id, streams)

    def connect(self, bolt: Stream[Any], *inputs: Subscription[Any]) -> None:
        """Subscribe a bolt that is there already to more streams, its own included: how a cycle is made.

        Raises :class:`~stormlet.errors.InvalidTopology` if ``bolt`` is no stream of a bolt of this topology.
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
                f"{bolt.id} belongs to no bolt of topology {self.name!r}; bolts: {_names(self._bolts)}"
            )
        self._check_inputs(f"bolt {spec.id!r}", inputs)
        self._bolts[spec.id] = msgspec.structs.replace(spec, inputs=(*spec.inputs, *inputs))

    # Running.

    def describe(self) -> Description:
        """The frozen description; raises :class:`~stormlet.errors.InvalidTopology` if it cannot run."""
        description = Description(
            self.name, self._configuration, dict(self._spouts), dict(self._bolts), self._options
        )
        description.validate()
        return description

    def run(
        self,
        *,
        seed: int | None = None,
        active: bool = True,
        dead_letters: DeadLetterTarget | None = None,
        sources: Sources | None = None,
        **configuration: object,
    ) -> Run:
        """Run: ``async with topology.run() as running``. Leaving the block drains, an exception cancels (law
        C3, C5).

        ``seed`` makes a run under simulated time repeatable, event for event (law L16); without it, the
        loop's own is used there. With ``active=False`` spouts are opened but not asked for tuples before
        ``running.activate()``. ``dead_letters`` is a callable that gets each
        :class:`~stormlet.core.outcomes.DeadLetter`, or the path of a JSONL file (law S6). ``sources`` are for
        this run, by the id or stream of a spout: see :meth:`set_source`. ``configuration`` overrides the
        topology's options for this run; options of single components stay.

        Raises :class:`~stormlet.errors.InvalidTopology` and :class:`~stormlet.errors.InvalidConfiguration`
        here, and :class:`~stormlet.errors.StartFailed` or :class:`~stormlet.errors.TopologyCrashed` from the
        block.
        """
        from stormlet.runtime.run import Run  # not before: asyncio takes longer to import than all of this
        from stormlet.runtime.running import Running, RunOptions

        where = f"run of topology {self.name!r}"
        if seed is not None and not isinstance(cast("object", seed), int):
            raise InvalidConfiguration(f"{where}: seed must be an int or None, not {seed!r}")
        changed = _configured(self._configuration, configuration, where, self.name)
        given = read_options(configuration, where).values
        described = self.describe().with_sources(self._by_id(sources or {}))
        description, configurations = described.configured(changed, where, given)
        planned = plan(description, configurations)

        def make() -> Running:
            self._consume_one_shot_sources(description.spouts.values())
            options = RunOptions(seed, active, dead_letters)
            return Running(planned, configurations, options, self)

        return Run(make)

    def _by_id(self, sources: Sources) -> Mapping[str, object]:
        return {self._spout_of(spout): source for spout, source in sources.items()}

    def _spout_of(self, spout: str | Stream[Any]) -> str:
        """The id of a spout that is named by its id or by one of its streams."""
        id: object = spout
        if isinstance(spout, Stream) and spout.topology is self:
            id = spout.component
        if not isinstance(id, str) or id not in self._spouts:
            raise InvalidTopology(
                f"{spout!r} is neither the id nor a stream of a spout of topology {self.name!r}; "
                f"spouts: {_names(self._spouts)}"
            )
        return id

    def _consume_one_shot_sources(self, spouts: Iterable[SpoutSpec]) -> None:
        for spec in spouts:
            if spec.kind is SourceKind.ITERABLE and _is_one_shot(spec.source):
                if any(spec.source is each for each in self._consumed):
                    raise InvalidTopology(
                        f"spout {spec.id!r}: its iterator was used by an earlier run and cannot start again; "
                        f"pass a generator function or a list"
                    )
                self._consumed.append(spec.source)

    def _check(self, where: str, id: str, parallelism: int) -> None:
        if not isinstance(cast("object", id), str):
            raise InvalidTopology(f"{where}: an id is a str, not {id!r}")
        if id in self._spouts or id in self._bolts:
            raise InvalidTopology(
                f"{where}: topology {self.name!r} has a component of this id already; choose another one"
            )
        if not id.strip() or id.startswith("__"):
            raise InvalidTopology(
                f"{where}: an id must not be empty or begin with '__', which marks the engine's own "
                f"components"
            )
        _at_least_one(where, "parallelism", parallelism)

    def _check_inputs(self, where: str, inputs: Iterable[Subscription[Any] | Stream[Any]]) -> None:
        for each in inputs:
            if isinstance(each, Stream):
                raise InvalidTopology(
                    f"{where}: {each.id} needs a grouping, such as .shuffle() or .fields(...)"
                )
            if not isinstance(cast("object", each), Subscription):
                raise InvalidTopology(
                    f"{where}: {each!r} is no input; pass a grouped stream, such as lines.shuffle()"
                )
            if each.topology is not self:
                raise InvalidTopology(
                    f"{where}: {each.source} belongs to another topology than {self.name!r}"
                )

    def _default_stream(self, id: str, streams: Mapping[str, Output]) -> Stream[Any]:
        name = DEFAULT_STREAM if DEFAULT_STREAM in streams else next(iter(streams))
        return Stream(StreamId(id, name), streams[name], streams, self)


def _is_one_shot(source: object) -> bool:
    return isinstance(source, Iterator | AsyncIterator)


def _configured(
    base: Configuration, options: Mapping[str, object], where: str, topology: str
) -> Configuration:
    _warn_of_ignored(where, read_options(options, where).ignored, log_fields(topology))
    return configure(base, options, where)


def _options(
    kind: Any, overrides: Mapping[str, object], where: str, extra: Mapping[str, object]
) -> Mapping[str, object]:
    options = component_options(kind, overrides, where, keywords=("parallelism", "outputs"))
    _warn_of_ignored(where, options.ignored, extra)
    return options.values


def _warn_of_ignored(where: str, ignored: Mapping[str, str], extra: Mapping[str, object]) -> None:
    for name, reason in ignored.items():
        logger.warning("%s: %s has no effect: %s", where, name, reason, extra=extra)


def _outputs(where: str, declared: object, logic: object) -> Mapping[str, Output]:
    try:
        streams = outputs_of(declared, inferred_schema(logic))
    except InvalidTopology as error:
        raise InvalidTopology(f"{where}: {error}") from None
    for name in streams:
        if not isinstance(cast("object", name), str):
            raise InvalidTopology(f"{where}: a stream's name is a str, not {name!r}")
        if not name or name.startswith("__"):
            raise InvalidTopology(
                f"{where}: {name!r} is no valid stream name; it must not be empty or begin with '__'"
            )
    if not streams:
        raise InvalidTopology(f"{where}: outputs declares no stream; leave it out for one default stream")
    return streams


def _check_sharing(id: str, source: object, kind: SourceKind, parallelism: int) -> None:
    if parallelism > 1 and yields_to_all(source, kind):
        raise InvalidTopology(
            f"spout {id!r}: with parallelism={parallelism} every task would yield the same values; use "
            f"parallelism=1, or a generator function that takes the task context and yields its share: def "
            f"{id}(context): ..."
        )
    if parallelism > 1 and says(source, "single_task"):
        raise InvalidTopology(
            f"spout {id!r}: with parallelism={parallelism} every task would emit the same; use parallelism=1"
        )


def _check_tick(where: str, logic: object, kind: LogicKind, tick: float | None) -> None:
    if tick is not None and not _ticks(logic, kind):
        raise InvalidTopology(
            f"{where} has tick={tick}, but no method tick(self, out); define it, or leave out tick="
        )


def _ticks(logic: object, kind: LogicKind) -> bool:
    if kind is LogicKind.FUNCTION:
        return False
    return not isinstance(logic, type) or overrides(logic, BoltBase, "tick")


def _at_least_one(where: str, name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidConfiguration(f"{where}: {name} must be an int, not {value!r}")
    if value < 1:
        raise InvalidConfiguration(f"{where}: {name} must be at least 1, not {value}")


def _one_of(where: str, name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidConfiguration(
            f"{where}: {name} must be one of {', '.join(map(repr, choices))}, not {value!r}"
        )


def _names(mapping: Mapping[str, object]) -> str:
    return ", ".join(map(repr, mapping)) or "none"
