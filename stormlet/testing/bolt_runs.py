"""One bolt on given values, without a topology around it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any, TypeVar, Unpack, overload

from stormlet.model.builder_types import BoltFactory, BoltOptions
from stormlet.model.components import BoltBase, To
from stormlet.testing.bolt_results import BoltResult
from stormlet.testing.bolt_trial import Input, try_bolt
from stormlet.testing.completing import refuse_in_a_loop
from stormlet.testing.leaks import AllowLeaks
from stormlet.testing.loop import run_simulated

T = TypeVar("T")
U = TypeVar("U")


class BoltRunOptions(BoltOptions, total=False):
    """What may be said to :func:`run_bolt`, beside what :meth:`Topology.bolt
    <stormlet.topology.Topology.bolt>` takes."""

    schema: object
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
    ``concurrency`` and its other options. A value may be an :class:`Input`. ``schema`` says what fields the
    values have, as ``outputs`` of a spout does. The bolt has ``seconds`` for ticks after the last input; then
    ``flush`` and ``finish`` are called, and what it still holds after another ``time_limit`` seconds, an hour,
    counts as held. In a running loop, await :func:`run_bolt_async`.

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
