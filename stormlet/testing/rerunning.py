"""One epoch of a state again: from the state before it, with the messages that it had, on simulated time.

Theory of operation
-------------------
Sources go on where the state before the epoch says, as in any run, and are silent once they have given what the state
after it says (law X8); they do not end, as that would have bolts finish. The first epoch of such a run is then the one
that is wanted. It is written to a store that keeps nothing, and with its commit the run is cut short. Committers gather
their rows, and are not called; other bolts do what they do (law X11).

The time is that at which the epoch was committed: timers that fired in it are due.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Hashable,
    Iterable,
    Mapping,
    Sequence,
)
from functools import partial
from typing import Any, Final, cast

import msgspec

from stormlet.core.state.commits import Commit, Shape, StateId, Stored
from stormlet.errors import InvalidTopology
from stormlet.model.components import BoltBase, Spout, SpoutCollector, TaskContext
from stormlet.model.description import SpoutSpec
from stormlet.model.logic import SourceKind
from stormlet.model.plan import TaskPlan
from stormlet.model.signatures import signature_of
from stormlet.model.state.committers import Committer
from stormlet.model.traits import spout_traits
from stormlet.runtime.epochs.states import position_name
from stormlet.runtime.run.kit import Kit
from stormlet.runtime.spout.positions import Position, decoded, encoded
from stormlet.testing.loop import SimulatedLoop
from stormlet.topology import Topology

LONGEST: Final = 3_600.0
"""Simulated seconds after which an epoch that has not ended is given up."""


class Rerun(msgspec.Struct, frozen=True):
    """An epoch that was run again."""

    messages: int
    commit: Commit | None
    """All that would have become durable; None if nothing has happened."""
    after: Stored
    """The state after it."""


def rerun(
    topology: Topology, before: Stored, after: Stored | None, *, time: float, **configuration: Any
) -> Rerun:
    """Run the epoch that follows ``before``, with the messages that the sources have given until ``after``; without it,
    with what they give now, for one epoch. ``time`` is in seconds since 1970; ``configuration`` is as for
    :meth:`Topology.run <stormlet.topology.Topology.run>`.

    Raises :class:`~stormlet.errors.InvalidTopology` for a source over a broker or one that cuts epochs, and what a run
    raises, above all :class:`~stormlet.errors.TopologyCrashed`.
    """
    description = topology.describe()
    letting_go = (id for id, spec in description.spouts.items() if spout_traits(spec.source).lets_go)
    for spout in (*description.redelivering, *letting_go):
        raise InvalidTopology(
            f"spout {spout!r} takes its messages from a broker, which has not those of an earlier epoch and would lose "
            f"others; give it the messages by a source of your own"
        )
    for id, spec in description.spouts.items():
        if spout_traits(spec.source).cuts_epochs:
            raise InvalidTopology(
                f"spout {id!r} takes its epochs from a source that cuts them, which gives none a second time and would "
                f"note the next one as done; give it the messages by a source of your own"
            )
    limits = Limits(before, after)
    store = _Store(before, limits)
    sources = {
        id: limits.source(spec)
        for id, spec in description.spouts.items()
        if spec.kind in (SourceKind.GENERATOR, SourceKind.ITERABLE)
    }
    run = partial(topology.run, state=store, sources=sources, dead_letters=_nobody, active=True)
    with asyncio.Runner(loop_factory=partial(_Loop, limits, time)) as runner:
        runner.run(_until_committed(partial(run, **configuration), store))
    return Rerun(limits.messages, store.committed, store.after)


class _Enough(Exception):
    """The epoch is over, and the run with it."""


async def _until_committed(run: Callable[[], Any], store: _Store) -> None:
    try:
        async with run() as running:
            ends = [asyncio.ensure_future(store.is_over.wait()), asyncio.ensure_future(running.finished())]
            try:
                await asyncio.wait(ends, timeout=LONGEST, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in ends:
                    each.cancel()
            raise _Enough
    except _Enough:
        pass


def _nobody(letter: object) -> None:
    """Take what is in the commit, too."""


class _Loop(SimulatedLoop):
    """A loop whose time begins at that of the epoch, and whose runs have these limits."""

    def __init__(self, limits: Limits, time: float) -> None:
        self.kit = _Kit(limits)
        super().__init__()
        self._clock.now = time


class _Store:
    """Takes one epoch, and keeps it for whoever looks."""

    def __init__(self, before: Stored, limits: Limits) -> None:
        # What was not delivered by then is no part of the epoch.
        self._before = msgspec.structs.replace(before.in_memory(), outbox=(), letters=())
        self._limits = limits
        self.committed: Commit | None = None
        self.is_over = asyncio.Event()

    def load(self) -> Stored:
        return self._before

    def declare(self, shapes: Mapping[StateId, Shape]) -> None:
        self._before = msgspec.structs.replace(self._before, shapes={**self._before.shapes, **shapes})

    def commit(self, commit: Commit) -> None:
        if self.committed is None:
            self.committed = commit
            self._limits.is_over = True
            self.is_over.set()

    @property
    def after(self) -> Stored:
        """The state that is durable then."""
        commit, states = self.committed, {id: list(blobs) for id, blobs in self._before.states.items()}
        for each in () if commit is None else commit.appends:
            states.setdefault(each.state, []).append(each.blob)
        return msgspec.structs.replace(self._before, states=states)

    def note_delivered(self, rows: Sequence[tuple[str, int]], letters: int) -> None:
        """Nothing is delivered."""

    def at(self, epoch: int) -> Stored:
        return self._before

    def backup(self, path: str) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is to be let go."""


class Limits:
    """The messages that each source gives, and no more."""

    def __init__(self, before: Stored, after: Stored | None) -> None:
        self._before = before.positions
        self._after = None if after is None else after.positions
        self.is_over = False
        """True once the epoch is committed."""
        self.messages = 0
        self._reached: dict[str, dict[Hashable, object]] = {}

    def source(self, spec: SpoutSpec) -> object:
        """Return a generator function or an iterable with its limits."""
        made: Any = spec.source if spec.kind is SourceKind.GENERATOR else lambda: spec.source

        async def values(*arguments: Any, **resume: Any) -> AsyncIterator[object]:
            last = resume.get("resume")
            number = 0 if last is None else last + 1
            begin, end = self._counts(spec, arguments)
            source = _each(made(*arguments, **resume))
            while True:
                if self.is_over or number == end:
                    await asyncio.get_running_loop().create_future()
                try:
                    value = await anext(source)
                except StopAsyncIteration:
                    return
                self.messages += number >= begin
                number += 1
                yield value

        # By which it is told that it takes a context, or resume=.
        cast("Any", values).__signature__ = signature_of(made)
        return values

    def _counts(self, spec: SpoutSpec, arguments: Sequence[object]) -> tuple[int, int | None]:
        """The values that a task has given before the epoch, and up to its end."""
        index = next((each.task_index for each in arguments if isinstance(each, TaskContext)), 0)
        task = f"{spec.id}[{index}] of {spec.parallelism}"
        begin = _count(self._before.get(task))
        return begin, None if self._after is None else _count(self._after.get(task))

    def limit(self, plan: TaskPlan, spout: Spout[Any]) -> None:
        """Have an instance of a ``Spout`` class keep to its limits."""
        task = position_name(plan)
        # Kept for the next instance, which goes on where this one dies.
        reached = self._reached.setdefault(task, _last(self._before.get(task)))
        _Limited(self, spout, reached, None if self._after is None else _last(self._after.get(task)))


def _count(position: bytes | None) -> int:
    return 0 if position is None else msgspec.msgpack.decode(position, type=Position).count


def _last(position: bytes | None) -> dict[Hashable, object]:
    return {} if position is None else dict(decoded(position))


async def _each(values: object) -> AsyncIterator[object]:
    if isinstance(values, AsyncIterable):
        async for value in cast("AsyncIterable[object]", values):
            yield value
    else:
        for value in cast("Iterable[object]", values):
            yield value


class _Limited:
    """A ``Spout`` that emits nothing beyond the last message of each partition; it is also the collector that its
    instance emits by."""

    def __init__(
        self,
        limits: Limits,
        spout: Spout[Any],
        reached: dict[Hashable, object],
        ends: Mapping[Hashable, object] | None,
    ) -> None:
        self._limits = limits
        self._spout = spout
        self._reached = reached
        self._ends = ends
        self._out: Any = None
        for name in ("open", "next_tuple"):
            setattr(spout, name, partial(getattr(self, f"_{name}"), getattr(spout, name)))

    def _open(
        self, method: Callable[..., Awaitable[None] | None], context: TaskContext, out: SpoutCollector[Any]
    ) -> Awaitable[None] | None:
        self._out = out
        return method(context, self)

    def _next_tuple(
        self, method: Callable[..., Awaitable[None] | None], out: SpoutCollector[Any]
    ) -> Awaitable[None] | None:
        self._out = out
        is_done = self._ends is not None and all(map(self._is_at_end, self._ends))
        return None if is_done or self._limits.is_over else method(self)

    def _is_at_end(self, partition: Hashable) -> bool:
        ends = self._ends
        return ends is not None and self._reached.get(partition) == ends.get(partition)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)

    def emit(self, value: object, *, message_id: object = None, **options: Any) -> tuple[int, ...]:
        """Emit a value that belongs to the epoch."""
        if self._limits.is_over or (message_id is not None and not self._take(message_id)):
            return ()
        reached: tuple[int, ...] = self._out.emit(value, message_id=message_id, **options)
        return reached

    def emit_many(self, values: Sequence[object], *, message_ids: Sequence[object], **options: Any) -> None:
        """Emit values that belong to the epoch, one by one."""
        many = {name: options.pop(name) for name in ("origins", "attempt") if name in options}
        origins, attempt = many.get("origins") or [None] * len(values), many.get("attempt", 1)
        attempts = [attempt] * len(values) if isinstance(attempt, int) else attempt
        for value, message_id, origin, each in zip(values, message_ids, origins, attempts, strict=True):
            self.emit(value, message_id=message_id, origin=origin, attempt=each, **options)

    def _take(self, message_id: object) -> bool:
        partition = self._spout.partition(message_id)
        if self._is_at_end(partition):
            return False
        # As they come back from the store: lists have become tuples.
        self._reached |= decoded(encoded({partition: self._spout.position_of(message_id)}))
        self._limits.messages += 1
        return True


class _Kit(Kit):
    """Limits sources, and has no committer called."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def instance(self, plan: TaskPlan, instance: BoltBase[Any, Any] | Spout[Any]) -> None:
        if isinstance(instance, Spout):
            self._limits.limit(plan, instance)
        elif isinstance(instance, Committer):
            for name in ("prepare", "commit", "cleanup"):
                setattr(instance, name, _ignored)


def _ignored(*arguments: object) -> None:
    """Nothing goes out, and nothing is opened for it."""
