"""``Topology``, the builder that users hold: it collects components and runs them."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, Unpack, cast, overload

import msgspec

from stormlet.errors import InvalidConfiguration, InvalidTopology
from stormlet.model.builder_types import (
    AddressedOutputs,
    BoltFactory,
    BoltOptions,
    NumberOptions,
    SpoutOptions,
    TopologyOptions,
)
from stormlet.model.component_checks import (
    OneShotSources,
    check_at_least_one,
    check_id,
    check_inputs,
    check_one_of,
    check_sharing,
    check_tick,
    declared_outputs,
    may_tick,
)
from stormlet.model.components import DEFAULT_STREAM, BoltBase, Spout, TaskContext, To
from stormlet.model.configuration import Configuration, component_options, configure, read_options
from stormlet.model.description import BoltSpec, Description, Executor, OnError, SpoutSpec
from stormlet.model.logic import check_code, logic_kind, source_kind
from stormlet.model.planning import plan
from stormlet.model.streams import DirectStream, Output, Stream, StreamId, Subscription
from stormlet.report.log_fields import log_fields

RUNTIME: Final = "stormlet.runtime.run.handle"
"""The module that imports all of the runtime, and asyncio with it."""

if TYPE_CHECKING:
    from stormlet.runtime import dead_letters as letters
    from stormlet.runtime.run import handle
else:

    class _Late:
        """A module that is imported when one of its names is used, as by ``typing.get_type_hints``."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> object:
            return getattr(importlib.import_module(self._name), name)

    letters, handle = _Late("stormlet.runtime.dead_letters"), _Late(RUNTIME)
    # A program that has loaded asyncio may build its topology inside a loop, which the import would hold up (law F2).
    if "asyncio" in sys.modules:
        importlib.import_module(RUNTIME)

T = TypeVar("T")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
U = TypeVar("U")

logger = logging.getLogger(__name__)

Sources: TypeAlias = Mapping[str, object] | Mapping[Stream[Any], object]
"""Sources of spouts, by the id or stream of a spout."""


class Topology:
    """A named graph of spouts and bolts.

    ``configuration`` are options of :class:`~stormlet.model.configuration.Configuration`; Storm's names go
    through ``**{...}``. Raises :class:`~stormlet.errors.InvalidTopology` for an empty name and
    :class:`~stormlet.errors.InvalidConfiguration` for an option that does not exist or does not fit.
    """

    # Type checkers hold the values of a mapping, as Storm's names come in one, against every option: without the one
    # that is a word, a mapping of numbers fits.

    @overload
    def __init__(self, name: str, **configuration: Unpack[NumberOptions]) -> None: ...
    @overload
    def __init__(self, name: str, **configuration: Unpack[TopologyOptions]) -> None: ...
    def __init__(self, name: str, **configuration: object) -> None:
        if not isinstance(cast("object", name), str) or not name.strip():
            raise InvalidTopology(f"a topology needs a name, not {name!r}")
        self.name = name
        self._configuration = _configured(Configuration(), configuration, f"topology {name!r}", name)
        self._options = read_options(configuration, "").values
        self._spouts: dict[str, SpoutSpec] = {}
        self._bolts: dict[str, BoltSpec] = {}
        self._one_shot = OneShotSources()
        # Now, as the first run would hold its loop for a tenth of a second (law F2); and not with this module, as
        # asyncio takes longer to import than all of this.
        importlib.import_module(RUNTIME)

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
        task's :class:`~stormlet.model.components.TaskContext`), any iterable or async iterable, or nothing:
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
        check_sharing(id, source, kind, parallelism)
        check_code(where, source, "loop")
        options = _options("spout", overrides, where, log_fields(self.name, id))
        configure(self._configuration, options, where)
        streams = declared_outputs(where, outputs, source)
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
        """Give an existing spout another source; its streams and options stay. It gets one task where several could
        not share that source (law S8). Runs that have begun go on with the old one.

        Raises :class:`~stormlet.errors.InvalidTopology` if ``spout`` is not a stream of a spout of this topology,
        and for an object that is not a source.
        """
        id = self._spout_of(spout)
        self._spouts[id] = self._spouts[id].with_source(source)

    def source_of(self, spout: Stream[Any]) -> object:
        """Return the source of a spout; None for one that ``running.emit`` alone feeds.

        Raises :class:`~stormlet.errors.InvalidTopology` if ``spout`` is not a stream of a spout of this topology.
        """
        return self._spouts[self._spout_of(spout)].source

    # Bolts: first every form of logic; then the functions again, fed by streams of different types: for these
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
        ``BasicBolt`` or ``BatchBolt`` class or factory. ``tick`` is the number of seconds between two calls of
        the bolt's ``tick`` (law B5). ``concurrency`` is the number of inputs that one task processes at a time (law
        B3); ``executor="thread"`` runs code that blocks in threads (law B9). ``on_error`` is the effect of an
        exception in ``execute``: "fail" the input and go on, "restart" the task as well, at most
        ``max_restarts`` times in ``restart_window``, or "stop" the topology (law B4).
        ``outputs`` and ``overrides`` are as for :meth:`spout`.

        Raises :class:`~stormlet.errors.InvalidTopology` and :class:`~stormlet.errors.InvalidConfiguration`
        naming the component.
        """
        where = f"bolt {id!r}"
        self._check(where, id, parallelism)
        check_at_least_one(where, "concurrency", concurrency)
        check_one_of(where, "executor", executor, ("loop", "thread"))
        check_one_of(where, "on_error", on_error, ("fail", "restart", "stop"))
        if not inputs:
            raise InvalidTopology(f"{where} has no input; subscribe it to a stream, such as lines.shuffle()")
        check_inputs(where, inputs, self, self.name)
        kind = logic_kind(id, logic)
        given = overrides if tick is None else {**overrides, "tick": tick}
        options = _options("bolt", given, where, log_fields(self.name, id))
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
                f"{bolt.id} belongs to no bolt of topology {self.name!r}; bolts: {_names(self._bolts)}"
            )
        check_inputs(f"bolt {spec.id!r}", inputs, self, self.name)
        self._bolts[spec.id] = msgspec.structs.replace(spec, inputs=(*spec.inputs, *inputs))

    # Running.

    def describe(self) -> Description:
        """Return the frozen description; raise :class:`~stormlet.errors.InvalidTopology` if it cannot run."""
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
        dead_letters: letters.DeadLetterTarget | None = None,
        sources: Sources | None = None,
        **configuration: Unpack[TopologyOptions],
    ) -> handle.Run:
        """Run the topology: ``async with topology.run() as running``. Leaving the block drains it, an exception in the
        block cancels it (law C3, C5).

        ``seed`` makes a run under simulated time repeatable, event for event (law L16); without it, the
        loop's own seed is used there. With ``active=False`` spouts are opened but not asked for tuples before
        ``running.activate()``. ``dead_letters`` is a callable that gets each
        :class:`~stormlet.core.outcomes.DeadLetter`, or the path of a JSONL file (law S6). ``sources`` are for
        this run, by the id or stream of a spout: see :meth:`set_source`. ``configuration`` overrides the
        topology's options for this run; options of single components stay.

        Raises :class:`~stormlet.errors.InvalidTopology` and :class:`~stormlet.errors.InvalidConfiguration`
        here, and :class:`~stormlet.errors.StartFailed` or :class:`~stormlet.errors.TopologyCrashed` from the
        block.
        """
        where = f"run of topology {self.name!r}"
        if seed is not None and not isinstance(cast("object", seed), int):
            raise InvalidConfiguration(f"{where}: seed must be an int or None, not {seed!r}")
        changed = _configured(self._configuration, configuration, where, self.name)
        given = read_options(configuration, where).values
        described = self.describe().with_sources(self._by_id(sources or {}))
        description, configurations = described.configured(changed, where, given)
        planned = plan(description, configurations)

        def make() -> handle.Running:
            self._one_shot.use(description.spouts.values())
            options = handle.RunOptions(seed, active, dead_letters)
            return handle.Running(planned, configurations, options, self)

        return handle.Run(make)

    def _by_id(self, sources: Sources) -> Mapping[str, object]:
        return {self._spout_of(spout): source for spout, source in sources.items()}

    def _spout_of(self, spout: str | Stream[Any]) -> str:
        """Return the id of a spout that is named by its id or by one of its streams."""
        id: object = spout
        if isinstance(spout, Stream) and spout.topology is self:
            id = spout.component
        if not isinstance(id, str) or id not in self._spouts:
            raise InvalidTopology(
                f"{spout!r} is neither the id nor a stream of a spout of topology {self.name!r}; "
                f"spouts: {_names(self._spouts)}"
            )
        return id

    def _check(self, where: str, id: str, parallelism: int) -> None:
        check_id(where, id)
        if id in self._spouts or id in self._bolts:
            raise InvalidTopology(
                f"{where}: topology {self.name!r} has a component of this id already; choose another one"
            )
        check_at_least_one(where, "parallelism", parallelism)

    def _default_stream(self, id: str, streams: Mapping[str, Output]) -> Stream[Any]:
        name = DEFAULT_STREAM if DEFAULT_STREAM in streams else next(iter(streams))
        return Stream(StreamId(id, name), streams[name], streams, self)


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


def _names(mapping: Mapping[str, object]) -> str:
    return ", ".join(map(repr, mapping)) or "none"
