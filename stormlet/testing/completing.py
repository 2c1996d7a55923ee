"""A whole topology on given values, and its result (Storm's ``Testing.completeTopology``)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar, overload

from stormlet.core.outcomes import DeadLetter
from stormlet.errors import StormletError
from stormlet.model.checks.numbers import check_int, check_seconds
from stormlet.model.components import DEFAULT_STREAM
from stormlet.model.description import Description
from stormlet.model.logic import SourceKind
from stormlet.model.streams import Stream
from stormlet.report.statistics import Statistics
from stormlet.runtime.run.handle import Running
from stormlet.runtime.run.observers import OBSERVE, Observer
from stormlet.testing.arguments import check_sources, check_topology, refuse_in_a_loop
from stormlet.testing.leaks import AllowLeaks, Leaked, kinds_allowed, not_allowed
from stormlet.testing.livelock import Livelock
from stormlet.testing.loop import SimulatedLoop
from stormlet.testing.stores import in_memory
from stormlet.testing.watched_run import Emission, Outcome, RecordedRun
from stormlet.topology import Sources, Topology

ONE_DAY: Final = 86_400.0


class NotCompleted(StormletError, AssertionError):
    """A topology was not done with everything when its time was over, most often because a source goes on for
    ever."""


def complete(
    topology: Topology,
    sources: Sources | None = None,
    *,
    seed: int = 0,
    time_limit: float = ONE_DAY,
    allow_leaks: AllowLeaks = False,
    **configuration: object,
) -> Completed:
    """Run a topology on simulated time until it is quiescent, and return what it has done.

    ``sources`` are given values, or any other sources, for spouts by their id or stream; a spout that the host
    feeds has nothing to say unless it is named here. Where all spouts end by themselves, none need be named.
    ``time_limit`` is in simulated seconds; ``configuration`` is as for :meth:`Topology.run
    <stormlet.topology.Topology.run>`. Where the topology names a file of state, the run has a store in memory instead,
    unless ``state`` names another one. In a running loop, await :func:`complete_async`.

    Raises :class:`NotCompleted` when the time is over, :class:`~stormlet.testing.Leaked` for what the run leaves
    behind and ``allow_leaks`` does not name, what :meth:`Topology.run <stormlet.topology.Topology.run>` and its
    block raise, :class:`~stormlet.testing.Deadlock`, :class:`~stormlet.testing.Livelock`, and
    :class:`RuntimeError` in a running loop.
    """
    refuse_in_a_loop("complete")
    check_int("complete", "seed", seed)
    recorded = RecordedRun()
    run = _complete(topology, sources, seed, time_limit, allow_leaks, configuration, recorded)
    with asyncio.Runner(loop_factory=partial(SimulatedLoop, seed)) as runner:
        try:
            return runner.run(run)
        except Livelock as error:
            raise error.knowing(recorded.endless()) from None


async def complete_async(
    topology: Topology,
    sources: Sources | None = None,
    *,
    seed: int | None = None,
    time_limit: float = ONE_DAY,
    allow_leaks: AllowLeaks = False,
    **configuration: object,
) -> Completed:
    """As :func:`complete`, on the running loop and in its time; where that is simulated, with its seed."""
    recorded = RecordedRun()
    return await _complete(topology, sources, seed, time_limit, allow_leaks, configuration, recorded)


async def _complete(
    topology: Topology,
    sources: Sources | None,
    seed: int | None,
    time_limit: float,
    allow_leaks: AllowLeaks,
    configuration: Mapping[str, Any],
    recorded: RecordedRun,
) -> Completed:
    check_topology("complete", topology)
    check_sources("complete", sources)
    kinds_allowed(allow_leaks)
    check_seconds("complete", "time_limit", time_limit)
    loop, dead_letters = asyncio.get_running_loop(), list[DeadLetter]()
    given = _all_sources(topology, sources or {})
    began = loop.time()
    options: Mapping[str, Any] = {"state": in_memory(topology, given), **configuration}
    with observed_by(recorded):
        run = topology.run(seed=seed, active=True, dead_letters=dead_letters.append, sources=given, **options)
        async with run as running:
            await _finished(running, recorded, time_limit)
    leaks = not_allowed(recorded.leaks, allow_leaks)
    if leaks:
        raise Leaked(leaks)
    return Completed(
        topology.describe(),
        recorded.emissions,
        recorded.outcomes,
        dead_letters,
        running.statistics(),
        loop.time() - began,
    )


@contextmanager
def observed_by(observer: Observer) -> Generator[None]:
    """Let it look on at what runs in this block."""
    token = OBSERVE.set(lambda: observer)
    try:
        yield
    finally:
        OBSERVE.reset(token)


def _all_sources(topology: Topology, sources: Sources) -> Sources:
    """These, and silence for the other spouts that only the host feeds."""
    named = {spout.component if isinstance(spout, Stream) else spout for spout in sources}
    spouts = topology.describe().spouts
    fed = [id for id, spec in spouts.items() if spec.kind is SourceKind.FED and id not in named]
    given: dict[Any, object] = dict(sources)
    return given | dict.fromkeys(fed, ())


async def _finished(running: Running, recorded: RecordedRun, time_limit: float) -> None:
    try:
        async with asyncio.timeout(time_limit):
            await running.finished()
    except TimeoutError:
        lines = "".join(f"\n  {line}" for line in recorded.unfinished())
        raise NotCompleted(
            f"topology {recorded.name!r} was not done after {time_limit:g} s:{lines}"
        ) from None


T = TypeVar("T")


class Completed:
    """The result of :func:`~stormlet.testing.complete`."""

    def __init__(
        self,
        description: Description,
        emissions: Sequence[Emission],
        outcomes: Sequence[Outcome],
        dead_letters: Sequence[DeadLetter],
        statistics: Statistics,
        seconds: float,
    ) -> None:
        self._streams = [
            (id, stream) for id, spec in description.components.items() for stream in spec.outputs
        ]
        self.emissions = emissions
        """Every emission of every component, in the order in which they happened."""
        self.outcomes = outcomes
        """The outcome of each message, in the order in which they were emitted."""
        self.dead_letters = dead_letters
        """All messages that were given up."""
        self.statistics = statistics
        """The counts at the end."""
        self.seconds = seconds
        """The seconds that it took, on simulated time where it ran on that."""

    @overload
    def emitted(self, stream: Stream[T]) -> list[T]: ...
    @overload
    def emitted(self, stream: str, name: str = DEFAULT_STREAM) -> list[Any]: ...
    def emitted(self, stream: Stream[Any] | str, name: str = DEFAULT_STREAM) -> list[Any]:
        """The values that were emitted on a stream, in their order, those of replays included: a stream as
        ``topology.bolt(...)`` returns it, or the component's id and the stream's name.

        Raises :class:`KeyError` naming the streams there are.
        """
        wanted = (stream.component, stream.name) if isinstance(stream, Stream) else (stream, name)
        if wanted not in self._streams:
            streams = ", ".join(f"{name!r} of {component!r}" for component, name in self._streams)
            raise KeyError(f"no stream {wanted[1]!r} of {wanted[0]!r}; there are {streams}")
        return [each.value for each in self.emissions if (each.component, each.stream) == wanted]

    @overload
    def __getitem__(self, stream: Stream[T]) -> list[T]: ...
    @overload
    def __getitem__(self, stream: str) -> list[Any]: ...
    def __getitem__(self, stream: Stream[Any] | str) -> list[Any]:
        """As :meth:`emitted`, for a stream or for the default stream of a component."""
        return self.emitted(stream)

    @property
    def acked(self) -> list[Any]:
        """The values of the messages that were acked in the end."""
        return [each.value for each in self.outcomes if each.acked]

    @property
    def failed(self) -> list[Any]:
        """The values of the messages that were not."""
        return [each.value for each in self.outcomes if not each.acked]

    def outcome(self, value: object) -> Outcome:
        """The outcome of the message with this value; of the first one, if there are several.

        Raises :class:`KeyError` if there is none.
        """
        for each in self.outcomes:
            if each.value == value:
                return each
        raise KeyError(f"no message had the value {value!r}")

    def __repr__(self) -> str:
        counts = Counter(f"{each.component}/{each.stream}" for each in self.emissions)
        emitted = ", ".join(f"{stream}: {count}" for stream, count in counts.items())
        return f"<Completed emitted {{{emitted}}}, acked {len(self.acked)}, failed {len(self.failed)}>"
