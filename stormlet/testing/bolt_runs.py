"""One bolt on given values.

The topology around it is the trial's: spouts that it feeds by hand, and nobody below.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar, Unpack, cast, overload

from stormlet.core.outcomes import Failure, FailureKind
from stormlet.model.builder_types import BoltFactory, BoltOptions
from stormlet.model.checks.numbers import check_seconds
from stormlet.model.components import DEFAULT_STREAM, BoltBase, To
from stormlet.model.logic import component_class
from stormlet.model.state.keyed import KeyedBolt
from stormlet.model.streams import Stream, Subscription
from stormlet.runtime.tree import Tree
from stormlet.testing.arguments import refuse_in_a_loop
from stormlet.testing.completing import observed_by
from stormlet.testing.leaks import AllowLeaks, Leaked, kinds_allowed, not_allowed
from stormlet.testing.loop import run_simulated
from stormlet.testing.watched_run import Emission, RecordedRun
from stormlet.topology import Topology

T = TypeVar("T")
U = TypeVar("U")


class BoltRunOptions(BoltOptions, total=False):
    """Options of :func:`run_bolt`, beside those that :meth:`Topology.bolt
    <stormlet.topology.Topology.bolt>` takes."""

    schema: object
    key: str | Callable[[Any], object] | None
    seconds: float
    time_limit: float
    seed: int
    allow_leaks: AllowLeaks


@overload
def run_bolt(
    bolt: BoltFactory[T, U], values: Iterable[T | Input[T]], **options: Unpack[BoltRunOptions]
) -> BoltResult[T, U]: ...
@overload
def run_bolt(  # pyright: ignore[reportOverlappingOverload] it forgets partial(Class, …) in a protocol
    bolt: Callable[[], BoltBase[T, U]], values: Iterable[T | Input[T]], **options: Unpack[BoltRunOptions]
) -> BoltResult[T, U]: ...
@overload
def run_bolt(
    bolt: Callable[[T], Iterator[U | To[object]] | AsyncIterator[U | To[object]]],
    values: Iterable[T | Input[T]],
    **options: Unpack[BoltRunOptions],
) -> BoltResult[T, U]: ...
@overload
def run_bolt(
    bolt: Callable[[T], Awaitable[U | To[object] | None]],
    values: Iterable[T | Input[T]],
    **options: Unpack[BoltRunOptions],
) -> BoltResult[T, U]: ...
@overload
def run_bolt(
    bolt: Callable[[T], U | To[object] | None],
    values: Iterable[T | Input[T]],
    **options: Unpack[BoltRunOptions],
) -> BoltResult[T, U]: ...
def run_bolt(
    bolt: Callable[..., object], values: Iterable[object], *, seed: int = 0, **options: Any
) -> BoltResult[Any, Any]:
    """Run one task of a bolt on these values, on simulated time, and return what it has emitted, anchored, acked
    and failed.

    ``bolt`` is what :meth:`Topology.bolt <stormlet.topology.Topology.bolt>` takes, and so are ``outputs``, ``tick``,
    ``concurrency`` and its other options. A value may be an :class:`Input`. ``schema`` says what fields the values
    have, as ``outputs`` of a spout does. A bolt with state gets its inputs by ``key``, a field or a function of the
    value; without it the value itself is the key. Each of its inputs is an epoch. The bolt has ``seconds`` for ticks
    after the last input; then ``flush`` and ``finish`` are called, and what it still holds after another
    ``time_limit`` seconds, an hour, counts as held. In a running loop, await :func:`run_bolt_async`.

    Raises what building and running a topology raises, :class:`~stormlet.testing.Leaked` for values that were
    changed after they were emitted and exceptions for which no input answers, unless ``allow_leaks`` names them, and
    :class:`RuntimeError` in a running loop.
    """
    refuse_in_a_loop("run_bolt")
    return run_simulated(try_bolt(bolt, values, seed=seed, **options), seed)


@overload
async def run_bolt_async(
    bolt: BoltFactory[T, U], values: Iterable[T | Input[T]], **options: Unpack[BoltRunOptions]
) -> BoltResult[T, U]: ...
@overload
async def run_bolt_async(  # pyright: ignore[reportOverlappingOverload] as above
    bolt: Callable[[], BoltBase[T, U]], values: Iterable[T | Input[T]], **options: Unpack[BoltRunOptions]
) -> BoltResult[T, U]: ...
@overload
async def run_bolt_async(
    bolt: Callable[[T], Iterator[U | To[object]] | AsyncIterator[U | To[object]]],
    values: Iterable[T | Input[T]],
    **options: Unpack[BoltRunOptions],
) -> BoltResult[T, U]: ...
@overload
async def run_bolt_async(
    bolt: Callable[[T], Awaitable[U | To[object] | None]],
    values: Iterable[T | Input[T]],
    **options: Unpack[BoltRunOptions],
) -> BoltResult[T, U]: ...
@overload
async def run_bolt_async(
    bolt: Callable[[T], U | To[object] | None],
    values: Iterable[T | Input[T]],
    **options: Unpack[BoltRunOptions],
) -> BoltResult[T, U]: ...
async def run_bolt_async(
    bolt: Callable[..., object], values: Iterable[object], **options: Any
) -> BoltResult[Any, Any]:
    """As :func:`run_bolt`, on the running loop and in its time."""
    return await try_bolt(bolt, values, **options)


@dataclass(frozen=True, slots=True)
class InputResult(Generic[T]):
    """The result of one input. Neither acked nor failed: the bolt still held it at the end."""

    value: T
    acked: bool
    failure: Failure | None
    """The failure; None if there was none."""
    emissions: Sequence[Emission]
    """The emits that are anchored to it."""

    @property
    def held(self) -> bool:
        """True if it was neither acked nor failed."""
        return not self.acked and self.failure is None

    @property
    def emitted(self) -> list[Any]:
        """The values that are anchored to it, whatever their stream."""
        return [each.value for each in self.emissions]


class BoltResult(Generic[T, U]):
    """The result of :func:`~stormlet.testing.run_bolt`."""

    def __init__(self, inputs: Sequence[InputResult[T]], emissions: Sequence[Emission]) -> None:
        self.inputs = inputs
        """One for each input, in the order given."""
        self.emissions = emissions
        """Everything that the bolt has emitted, in its order."""

    @overload
    def emitted(self) -> list[U]: ...
    @overload
    def emitted(self, stream: str) -> list[Any]: ...
    def emitted(self, stream: str = DEFAULT_STREAM) -> list[Any]:
        """The values that it has emitted on a stream, in their order."""
        return [each.value for each in self.emissions if each.stream == stream]

    @property
    def unanchored(self) -> list[Any]:
        """The values that it has emitted without anchors, whatever their stream."""
        return [each.value for each in self.emissions if not each.roots]

    @property
    def acked(self) -> list[T]:
        """The inputs that it has acked."""
        return [each.value for each in self.inputs if each.acked]

    @property
    def failed(self) -> list[T]:
        """The inputs that it has failed, by ``out.fail`` or by an exception."""
        return [each.value for each in self.inputs if each.failure is not None]

    @property
    def held(self) -> list[T]:
        """The inputs that it still held at the end."""
        return [each.value for each in self.inputs if each.held]

    def __repr__(self) -> str:
        counts = f"emitted {len(self.emissions)}, acked {len(self.acked)}"
        return f"<BoltResult {counts}, failed {len(self.failed)}, held {len(self.held)}>"


BOLT: Final = "bolt"
ONE_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Input(Generic[T]):
    """A value for :func:`run_bolt`, and what its tuple says of itself (Storm's ``testTuple``)."""

    value: T
    component: str = "values"
    """The component that it comes from."""
    stream: str = DEFAULT_STREAM
    """The stream that it comes on."""
    origin: object = None
    """The outcome at its source."""
    after: float = 0.0
    """Seconds after the input before it."""

    def __post_init__(self) -> None:
        check_seconds("Input", "after", self.after)


async def try_bolt(
    bolt: Callable[..., object],
    values: Iterable[object],
    *,
    schema: object = None,
    key: str | Callable[[Any], object] | None = None,
    seconds: float = 0.0,
    time_limit: float = ONE_HOUR,
    seed: int | None = None,
    allow_leaks: AllowLeaks = False,
    **options: Any,
) -> BoltResult[Any, Any]:
    """See :func:`stormlet.testing.run_bolt`."""
    allowed = {"inputs", "trees", *kinds_allowed(allow_leaks)}  # what it holds is in the result
    check_seconds("run_bolt", "seconds", seconds)
    inputs = [cast("Input[object]", each) if isinstance(each, Input) else Input(each) for each in values]
    trial = _Trial(bolt, inputs, schema, key, options, time_limit)
    with observed_by(trial.recorded):
        await trial.run(seed, seconds)
    leaks = not_allowed(trial.recorded.leaks, list(allowed))
    if leaks:
        raise Leaked(leaks)
    return trial.result()


class _Trial:
    def __init__(
        self,
        bolt: Callable[..., object],
        inputs: Sequence[Input[object]],
        schema: object,
        key: str | Callable[[Any], object] | None,
        options: dict[str, Any],
        time_limit: float,
    ) -> None:
        self.recorded = RecordedRun()
        self._inputs = inputs
        self._trees: list[Tree[object]] = []
        # Without timeouts: they belong to whole trees, and a slow bolt is no failure here.
        self._topology = Topology(
            "one bolt",
            message_timeout=None,
            max_spout_pending=None,
            drain_timeout=time_limit,
            epoch_messages=1,  # what fails after it has reached state has nothing else done again
        )
        self._streams = dict(self._feeds(schema))
        made = component_class(bolt)
        keyed = "state" in options or (made is not None and issubclass(made, KeyedBolt))
        inputs_of = partial(_by_key, key) if keyed else Stream[Any].shuffle
        self._topology.bolt(BOLT, bolt, *map(inputs_of, self._streams.values()), **options)

    def _feeds(self, schema: object) -> Iterable[tuple[tuple[str, str], Stream[Any]]]:
        names: dict[str, dict[str, object]] = {}
        for each in self._inputs or [Input(None)]:
            names.setdefault(each.component, {})[each.stream] = schema
        for component, outputs in names.items():
            spout = self._topology.spout(component, outputs=outputs)
            for stream in outputs:
                yield (component, stream), spout.named(stream)

    async def run(self, seed: int | None, seconds: float) -> None:
        """Feed the inputs, wait, and drain."""
        async with self._topology.run(seed=seed) as running:
            for each in self._inputs:
                await _pause(each.after)
                stream = self._streams[each.component, each.stream]
                self._trees.append(await running.emit(stream, each.value, origin=each.origin))
            await _pause(seconds)

    def result(self) -> BoltResult[Any, Any]:
        """The result so far."""
        emissions = self.recorded.emissions
        fed = [each for each in emissions if each.component != BOLT]
        made = [each for each in emissions if each.component == BOLT]
        inputs = [_input_result(one, tree, made) for one, tree in zip(fed, self._trees, strict=True)]
        return BoltResult(inputs, made)


def _by_key(key: str | Callable[[Any], object] | None, stream: Stream[Any]) -> Subscription[Any]:
    if key is None:
        return stream.fields()
    return stream.fields(cast("Any", key))


def _input_result(fed: Emission, tree: Tree[object], made: Sequence[Emission]) -> InputResult[object]:
    """The tree of an input is the input: nobody below takes what is anchored to it."""
    (root,) = fed.roots
    left_over = tree.failure is not None and tree.failure.kind is FailureKind.SHUTDOWN
    return InputResult(
        fed.value,
        acked=tree.failure is None,
        failure=None if left_over else tree.failure,
        emissions=[each for each in made if root in each.roots],
    )


async def _pause(seconds: float) -> None:
    if seconds:
        await asyncio.sleep(seconds)
