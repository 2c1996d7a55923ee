"""The interfaces that users implement and call: spouts, bolts and their collectors (Storm's ``ISpout``,
``IBolt``).

Every method may be a plain function or a coroutine function. Instances are made by the engine, one per task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast, overload

import msgspec

from stormlet.core.outcomes import Failure
from stormlet.core.schema import Schema
from stormlet.core.tuples import Tuple
from stormlet.model.configuration import Configuration
from stormlet.report.connections import Connection
from stormlet.report.statistics import Progress

T = TypeVar("T")
U = TypeVar("U")
U_co = TypeVar("U_co", covariant=True)
U_contra = TypeVar("U_contra", contravariant=True)

DEFAULT_STREAM = "default"


class SharedObjects:
    """One object of each class for a whole run, so that its components can work together."""

    def __init__(self) -> None:
        self._objects: dict[type[Any], Any] = {}

    def one(self, kind: type[T]) -> T:
        """Return the shared instance of ``kind``; the first call makes it, without arguments."""
        if kind not in self._objects:
            self._objects[kind] = kind()
        return cast("T", self._objects[kind])


def _ignore(report: object) -> None:
    """Report to nothing: the default where no engine runs."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """A task's knowledge of itself, passed to ``open`` and ``prepare`` (Storm's ``TopologyContext``)."""

    topology: str
    """The topology's name."""
    component: str
    """The component's id."""
    task: int
    """The task's id, unique in the topology."""
    task_index: int
    """The task's place among those of its component, from 0."""
    parallelism: int
    """Number of tasks that the component has."""
    config: Configuration
    """The configuration that holds for this component."""
    inputs: tuple[Schema, ...] = ()
    """The schema of each stream that a bolt consumes."""
    sync_dead_letters: Callable[[], None] | None = None
    """Write the dead letters so far through to the device, as fsync does; it blocks. None if they are kept in memory
    alone."""
    shared: SharedObjects = field(default_factory=SharedObjects, repr=False, compare=False)
    """Objects that the components of one run share."""
    report_progress: Callable[[Progress], None] = field(default=_ignore, repr=False, compare=False)
    """Report the progress of this task with work of its own; ``statistics()`` and the views show the latest report. May
    be called at any time, from any thread."""
    show_connection: Callable[[Callable[[], Connection]], None] = field(
        default=_ignore, repr=False, compare=False
    )
    """Have ``health()``, ``statistics()`` and the views ask this function for the connection of this task to a broker.
    A run is ready only while all of them are."""
    resume: Mapping[Hashable, object] = field(
        default_factory=dict[Hashable, object], repr=False, compare=False
    )
    """For a spout that is ``resumable``: the position after the last durable message of each partition, by default its
    id, where another run has ended (law X8)."""
    in_epochs: bool = False
    """True if messages belong to epochs (law X1)."""
    is_durable: bool = False
    """True if the topology has ``state=``, so that positions of sources outlive the process (law X1)."""
    is_traced: bool = False
    """True if messages of this run may be traced."""


class To(msgspec.Struct, Generic[U_co], frozen=True):
    """An output of a function bolt or a generator spout that goes to another stream, or to one task (law
    B1)."""

    value: U_co
    stream: str = DEFAULT_STREAM
    task: int | None = None
    """The id of the receiving task, for streams declared ``Direct``."""


class Collector(Protocol[U_contra]):
    """The interface by which a bolt emits, acks and fails (Storm's ``OutputCollector``).

    All methods are plain calls and may be used at any time on the loop's thread (law F3). On any other thread, as in a
    pool, use the ``_threadsafe`` ones; the plain ones raise :class:`RuntimeError` there.
    """

    @overload
    def emit(
        self,
        value: U_contra,
        *,
        anchors: Tuple[object] | Iterable[Tuple[object]] | None = ...,
        task: int | None = None,
    ) -> tuple[int, ...]: ...
    @overload
    def emit(
        self,
        value: object,
        *,
        stream: str,
        anchors: Tuple[object] | Iterable[Tuple[object]] | None = ...,
        task: int | None = None,
    ) -> tuple[int, ...]: ...
    def emit(
        self,
        value: object,
        *,
        anchors: Tuple[object] | Iterable[Tuple[object]] | None = (),
        stream: str = DEFAULT_STREAM,
        task: int | None = None,
    ) -> tuple[int, ...]:
        """Emit a value and return the ids of the tasks it was delivered to.

        ``anchors`` are the inputs whose trees it joins (law L7); without it, a :class:`Bolt` emits unanchored
        (law L8), a :class:`BasicBolt` anchors to its input and a :class:`BatchBolt` to the whole batch.
        An emit outside a call of the bolt, from a timer or a task of its own, must name its anchors.
        ``task`` chooses the receiver on a stream declared ``DirectStream``.

        Raises :class:`~stormlet.errors.InvalidEmit` for an undeclared stream, a value that does not fit its
        fields, or a wrong ``task``; :class:`~stormlet.errors.AlreadySettled` if an anchor was acked or failed
        before (law L15); :class:`~stormlet.errors.UnroutableKey` for a grouping key without a stable hash.
        """
        ...

    def ack(self, tup: Tuple[object]) -> None:
        """Ack this input: it is done. Raises :class:`~stormlet.errors.AlreadySettled` if it was acked or failed
        before (law L15)."""
        ...

    def fail(
        self,
        tup: Tuple[object],
        reason: str = "",
        *,
        exception: BaseException | None = None,
        permanent: bool = False,
    ) -> None:
        """Fail the trees of this input at once; ``permanent`` skips the replays (law S6).

        Raises :class:`~stormlet.errors.AlreadySettled` if it was acked or failed before (law L15), and
        :class:`TypeError`, before anything has changed, for a reason that is not text or an exception that is none.
        """
        ...

    def reset_timeout(self, tup: Tuple[object]) -> None:
        """Give the trees of this input their full message timeout again (law L12)."""
        ...

    def emit_threadsafe(
        self,
        value: object,
        *,
        anchors: Tuple[object] | Iterable[Tuple[object]] | None = (),
        stream: str = DEFAULT_STREAM,
        task: int | None = None,
    ) -> Future[tuple[int, ...]]:
        """``emit`` from another thread; the future has its result or its error.

        The thread first waits until every queue that this task has filled has room, and while 100 emits of its threads
        are on their way (law F3). On the loop's own thread it never waits. Code there that waits for the thread blocks
        the loop, so that no room is ever made: let it await, as by ``asyncio.to_thread(thread.join)``.

        Raises :class:`~stormlet.errors.TopologyStopping` when the instance has ended.
        """
        ...

    def ack_threadsafe(self, tup: Tuple[object]) -> Future[None]:
        """``ack`` from another thread, which does not wait."""
        ...

    def fail_threadsafe(
        self,
        tup: Tuple[object],
        reason: str = "",
        *,
        exception: BaseException | None = None,
        permanent: bool = False,
    ) -> Future[None]:
        """``fail`` from another thread, which does not wait."""
        ...


class SourceEpoch(Protocol):
    """An epoch that an :class:`EpochSpout` has begun."""

    blamed: object
    """The id of the message for which it was given back, if there is one."""
    ended: bool
    """True once :meth:`end` was called."""

    @property
    def is_told(self) -> bool:
        """True once it is durable, or was given back."""
        ...

    async def told(self) -> Failure | None:
        """Wait for that; return the failure if it was given back. May be cancelled, and called again."""
        ...

    def end(self) -> None:
        """Note that all of it was emitted."""
        ...

    def give_back(self, failure: Failure) -> None:
        """Have all of it forgotten, once nothing of it is under way. The source emits it again, as another one."""
        ...


class SpoutCollector(Protocol[U_contra]):
    """The interface by which a spout emits (Storm's ``SpoutOutputCollector``).

    All methods may be called at any time on the loop's thread. On any other thread use ``emit_threadsafe``; the others
    raise :class:`RuntimeError` there (law F3).
    """

    @overload
    def emit(
        self,
        value: U_contra,
        *,
        message_id: object = None,
        task: int | None = None,
        origin: object = None,
        attempt: int = 1,
    ) -> tuple[int, ...]: ...
    @overload
    def emit(
        self,
        value: object,
        *,
        stream: str,
        message_id: object = None,
        task: int | None = None,
        origin: object = None,
        attempt: int = 1,
    ) -> tuple[int, ...]: ...
    def emit(
        self,
        value: object,
        *,
        message_id: object = None,
        stream: str = DEFAULT_STREAM,
        task: int | None = None,
        origin: object = None,
        attempt: int = 1,
    ) -> tuple[int, ...]:
        """Emit a value and return the ids of the tasks it was delivered to.

        With a ``message_id`` the message is tracked and gets exactly one ``ack`` or ``fail``; without one it is
        not tracked (law L10). ``origin`` is inherited by every tuple of the tree, and so is ``attempt``,
        which a spout that replays by itself counts.

        Raises :class:`~stormlet.errors.InvalidEmit` for an undeclared stream, a value that does not fit its
        fields, a wrong ``task``, or an ``attempt`` that is not an int from 1;
        :class:`~stormlet.errors.TopologyStopping` in ``ack`` or ``fail`` while draining (law C3).
        """
        ...

    def emit_many(
        self,
        values: Sequence[U_contra],
        *,
        message_ids: Sequence[object],
        origins: Sequence[object] | None = None,
        attempt: int | Sequence[int] = 1,
    ) -> None:
        """Emit these values in order, each with its message id, its origin, and its attempt, which may also be one for
        all.

        For sources that get many values at once it costs less than as many calls of :meth:`emit`. Raises the errors
        of :meth:`emit` after the values before the refused one were emitted, and :class:`ValueError` before any is
        emitted, if the numbers of values, ids, origins and attempts differ or a message id is None.
        """
        ...

    def wake(self) -> None:
        """Ask for ``next_tuple`` now instead of after the idle pause (law S4)."""
        ...

    @property
    def pending(self) -> int:
        """Number of tracked messages of this task that have no outcome yet."""
        ...

    def pause_until_settled(self) -> None:
        """Pause the spout until nothing of the topology is under way: no message is pending, every inbox is empty,
        and bolts that hold inputs have been flushed, as when ``max_spout_pending`` is reached (law B8).

        The topology crashes if a bolt still holds inputs then, whose trees are over.
        """
        ...

    def pause_until_own_settled(self) -> None:
        """Pause the spout until the pending messages of this task are settled, whatever other spouts do. Bolts that
        hold inputs are flushed meanwhile (law B8). Of several calls for a pause the last one counts."""
        ...

    def withdraw(self, message_ids: Iterable[object]) -> None:
        """These messages are not this spout's any more, as when a broker has given them to somebody else (law S9).

        Their trees go on, but none is replayed or becomes a dead letter, and neither ``ack`` nor ``fail`` is called for
        it; the statistics count it as ``withdrawn``. Ids are hashable and unique among the pending messages, and those
        of messages whose ``ack`` or ``fail`` was not called; others must not be given. Where messages belong to epochs
        it changes nothing.

        Raises :class:`RuntimeError` for a spout that is no :class:`ReliableSpout`.
        """
        ...

    def end_epoch(self) -> None:
        """End the open epoch as soon as what was emitted in it is settled, and have no more emitted into it (law X1).
        Without effect where this task has emitted nothing in it, or messages belong to no epochs."""
        ...

    def begin_epoch(self, number: int, line: str) -> SourceEpoch:
        """Begin an epoch that the spout has cut, an :class:`EpochSpout`; all that it emits from now on until the end of
        that is done as a whole (law X8). Without ``state=`` committers know it by this number and line.

        To be called in a ``next_tuple`` that has awaited nothing. The next one may begin when this one was told. Raises
        :class:`RuntimeError` where messages belong to no epochs.
        """
        ...

    async def dead_letter(
        self,
        value: object,
        failure: Failure,
        *,
        message_id: object = None,
        attempts: int = 1,
        origin: object = None,
        history: tuple[Failure, ...] = (),
    ) -> None:
        """Hand a message that will not be replayed to the dead letters (law S6); return when they have it.

        Raises :class:`TypeError` for an object that is not a failure, :class:`~stormlet.errors.InvalidEmit` for
        ``attempts`` that are not an int from 1, and the exceptions of ``run(dead_letters=...)``: after one of these the
        message stays with the spout.
        """
        ...

    def emit_threadsafe(
        self,
        value: object,
        *,
        message_id: object = None,
        stream: str = DEFAULT_STREAM,
        task: int | None = None,
        origin: object = None,
        attempt: int = 1,
    ) -> Future[tuple[int, ...]]:
        """``emit`` from another thread; the future has its result or its error.

        The thread first waits as long as ``next_tuple`` would not be called, because ``max_spout_pending`` is
        reached or a queue has no room (law S3), and while 100 emits of its threads are on their way (law F3). On the
        loop's own thread it never waits, with the same caution as for :meth:`Collector.emit_threadsafe`.

        Raises :class:`~stormlet.errors.TopologyStopping` when the topology drains or the instance has ended.
        """
        ...


class Spout(Generic[U]):
    """A source of tuples (Storm's ``ISpout``). ``next_tuple``, ``ack`` and ``fail`` of one task never overlap
    (law S1).

    An instance whose method raises is dead: it is closed, another one is made and opened, and gets ``fail`` with
    TASK_LOST for each message that was pending.
    """

    needs_acks: ClassVar[bool] = False
    """True if it depends on acks, and so refuses to start with ``ackers=0`` (law L9)."""
    single_task: ClassVar[bool] = False
    """True if a second task would emit the same again, so that ``parallelism`` > 1 is refused (law S8)."""
    restartable: bool = True
    """True if another instance can take over where one has died; it then gets the outcomes of the messages that were
    pending. Otherwise an exception crashes the topology."""
    resumes: ClassVar[bool] = False
    """True if another run goes on after the messages acked in this one: bolts below must not keep state (law C6)."""
    resumable: ClassVar[bool] = False
    """True if it can go on after a message that it is given the id of, in ``context.resume``. Durable state needs that,
    or :attr:`redelivers` (law X8)."""
    redelivers: ClassVar[bool] = False
    """True for a broker that gives a message again, under the same id, until :meth:`ack` has returned for it: in epochs
    what comes again is acked without being executed again. An instance that loses its deliveries, as with a
    connection, raises; ``ack`` is called for what its own instance has emitted (law X8)."""
    most_pending: ClassVar[int | None] = None
    """Most messages that may be pending, if they are large: the ``max_spout_pending`` of this spout, unless a smaller
    one holds or one is set (law S3)."""

    def open(self, context: TaskContext, out: SpoutCollector[U]) -> Awaitable[None] | None:
        """Prepare for work: called once, before anything else. An exception fails the start (law C1)."""

    def next_tuple(self, out: SpoutCollector[U]) -> Awaitable[None] | None:
        """Emit the next tuple, or nothing if there is none now.

        Called only while fewer than ``max_spout_pending`` messages are pending (law S3). A synchronous one
        must not block; one that emits nothing is asked again after a pause that grows to ``idle_max`` (law
        S4). An asynchronous one may wait; it is cancelled at its await when an outcome must be delivered, and
        called again (law S7): a read from a network, which may lose a message when it is cancelled, needs a task of
        its own, as ``stormlet/connect/driver`` has one. Raise :class:`~stormlet.errors.EndOfStream` when there will
        be no more.
        """
        raise NotImplementedError(f"{type(self).__name__} must define next_tuple(self, out)")

    def ack(self, message_id: object) -> Awaitable[None] | None:
        """Take note that the message was fully processed."""

    def fail(self, message_id: object, failure: Failure) -> Awaitable[None] | None:
        """Take note that the message failed; emit it again if it is to be replayed."""

    def partition(self, message_id: object) -> Hashable:
        """Return the partition that a message belongs to, if the source has several: each goes on after its own last
        durable message (law X8). By default there is one, None."""
        return None

    def position_of(self, message_id: object) -> object:
        """Return what a spout that is :attr:`resumable` needs to go on after this message, which is kept with its epoch
        (law X8): by default its id. Called for the last one of each partition, in the order of the epochs."""
        return message_id

    def activate(self) -> Awaitable[None] | None:
        """Begin to emit: called after ``open`` and whenever the topology is activated."""

    def deactivate(self) -> Awaitable[None] | None:
        """Stop emitting: called whenever the topology is deactivated, in turn with :meth:`activate`. ``next_tuple`` is
        not called until it is activated again."""

    def drain(self) -> Awaitable[None] | None:
        """Stop taking messages from the source: called once when the topology drains. ``next_tuple`` is not called any
        more, ``ack`` and ``fail`` are until everything is settled (law C3)."""

    def close(self) -> Awaitable[None] | None:
        """Release resources: called at the end, if ``open`` has returned. An exception is logged; where the spout
        :attr:`resumes`, it crashes the topology, too (law C5)."""


class ReliableSpout(Spout[U]):
    """A spout whose messages the engine keeps and replays, as it does those of generators (law S6).

    A message that is emitted with a ``message_id`` is emitted again after a failure, up to ``max_attempts`` times.
    ``ack`` and ``fail`` are called for the final outcome only: ``fail`` when the message has been handed to the
    dead letters, or, with SHUTDOWN, when the topology stops before the message had an outcome.

    Messages that are pending when an instance dies stay pending, and the next instance gets their outcomes.
    """

    buries: bool = True
    """True if messages that are given up go to the dead letters; otherwise ``fail`` is their only trace."""


class EpochSpout(ReliableSpout[U]):
    """A spout that cuts epochs itself: in each run the same messages belong to the same number (law X8). It begins each
    by :meth:`SpoutCollector.begin_epoch`, and goes on in another run after the one that ``context.resume`` names. Its
    ``drain`` ends the epoch that is open, or gives it back."""

    cuts_epochs: ClassVar[bool] = True
    """See :attr:`stormlet.model.traits.SpoutTraits.cuts_epochs`."""


class BoltBase(Generic[T, U]):
    """Common base of all kinds of bolts.

    An instance that raises where no tuple answers for it, as in ``tick``, is dead, as is one that raises in
    ``execute`` with ``on_error="restart"``: its inputs fail with TASK_LOST, it is cleaned up, and another one is made
    and prepared.
    """

    needs_acks: ClassVar[bool] = False
    """True if it depends on acks, and so refuses to start with ``ackers=0`` (law L9)."""
    keeps_state: ClassVar[bool] = False
    """True if inputs live on in it after they were acked, as in a running count. That state is lost with the process
    (law C6), and a source that resumes does not bring it back: it refuses to feed such a bolt, unless the
    engine saves the state."""
    restartable: bool = True
    """True if another instance can take over where one has died; otherwise a death crashes the topology."""
    least_pending: ClassVar[int] = 0
    """Messages that a spout above it should be able to have pending for each task of this bolt: the
    ``max_spout_pending`` there, unless a larger one holds or one is set (law S3)."""

    def prepare(self, context: TaskContext) -> Awaitable[None] | None:
        """Prepare for work: called once, before anything else. An exception fails the start (law C1)."""

    def tick(self, out: Collector[U]) -> Awaitable[None] | None:
        """Act on the passing of time: called every ``tick`` seconds, if the topology asks for it (law B5). Its emits
        are unanchored unless they name anchors."""

    def flush(self, out: Collector[U]) -> Awaitable[None] | None:
        """Settle the inputs that wait for more input: called when nothing moves any more, but this bolt holds some
        (law B8)."""

    def finish(self, out: Collector[U]) -> Awaitable[None] | None:
        """Emit the rest: called when no more input will come, upstream first; again if a replay has brought more
        input since (law C2)."""

    def cleanup(self) -> Awaitable[None] | None:
        """Release resources: called at the end, if ``prepare`` has returned."""


class Bolt(BoltBase[T, U]):
    """A bolt that anchors and acks by itself and may hold inputs across calls (law B2; Storm's
    ``IRichBolt``)."""

    def execute(self, tup: Tuple[T], out: Collector[U]) -> Awaitable[None] | None:
        """Process one input. It must be acked or failed, now or later: until then it is kept, without ackers
        too."""
        raise NotImplementedError(f"{type(self).__name__} must define execute(self, tup, out)")


class BasicBolt(BoltBase[T, U]):
    """A bolt whose outputs are anchored to its input, which is acked on return and failed on an exception
    (law B1; Storm's ``IBasicBolt``)."""

    def execute(self, tup: Tuple[T], out: Collector[U]) -> Awaitable[None] | None:
        """Process one input."""
        raise NotImplementedError(f"{type(self).__name__} must define execute(self, tup, out)")


class BatchBolt(BoltBase[T, U]):
    """A bolt that works on batches of inputs.

    A batch is executed when it has ``size`` members, when its first member is ``within`` seconds old, or when
    nothing else can come (``flush`` and ``finish``), so that no batch is ever stuck.
    """

    size: int = 100
    """Members of a full batch; see :meth:`weight`."""
    within: float = 1.0
    """Seconds that the first member of a batch waits at most."""
    resets_timeouts: bool = False
    """True if inputs that are queued, collected or executed here never time out: for batches that take longer
    than ``message_timeout`` to fill or to execute (law B8)."""
    at_once: int = 1
    """Batches that may be executed at a time. With 1 further inputs wait for the end of each batch; with more they are
    collected meanwhile, until so many batches are under way. Those in threads are executed one at a time."""

    def key(self, value: T) -> Hashable:
        """Return the key of the batch that a value belongs to; by default there is one batch."""
        return None

    def weight(self, value: T) -> int:
        """Return the share of a value in ``size``, by default 1; more, where one value is many rows.

        The last value may take a batch beyond its size. A value for which this returns no number from 0 fails, and
        joins no batch.
        """
        return 1

    def execute_batch(self, tups: Sequence[Tuple[T]], out: Collector[U]) -> Awaitable[None] | None:
        """Process one batch. Outputs are anchored to all its members; on return every member that was not
        failed is acked, on an exception every member that is not settled is failed."""
        raise NotImplementedError(f"{type(self).__name__} must define execute_batch(self, tups, out)")


def overrides(component: object, base: type, method: str) -> bool:
    """Return True if the component, a class or an instance, overrides this method of ``base``."""
    owner = component if isinstance(component, type) else type(component)
    return getattr(owner, method) is not getattr(base, method)
