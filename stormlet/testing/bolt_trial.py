"""A topology around one bolt: spouts that the trial feeds by hand, and nobody below."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, cast

from stormlet.core.outcomes import FailureKind
from stormlet.model.components import DEFAULT_STREAM
from stormlet.model.description import Stream
from stormlet.model.number_checks import check_seconds
from stormlet.runtime.tree import Tree
from stormlet.testing.bolt_results import BoltResult, InputResult
from stormlet.testing.completing import observed_by
from stormlet.testing.leaks import AllowLeaks, Leaked, kinds_allowed, not_allowed
from stormlet.testing.recorded_run import Emission, RecordedRun
from stormlet.topology import Topology

T = TypeVar("T")

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
    """What its source said of it."""
    after: float = 0.0
    """How many seconds after the input before it."""

    def __post_init__(self) -> None:
        check_seconds("Input", "after", self.after)


async def try_bolt(
    bolt: Callable[..., object],
    values: Iterable[object],
    *,
    schema: object = None,
    seconds: float = 0.0,
    time_limit: float = ONE_HOUR,
    seed: int | None = None,
    allow_leaks: AllowLeaks = False,
    **options: Any,
) -> BoltResult[Any, Any]:
    """See :func:`stormlet.testing.run_bolt`."""
    allowed = {"inputs", "trees", *kinds_allowed(allow_leaks)}  # what it holds is told in the result
    check_seconds("run_bolt", "seconds", seconds)
    inputs = [cast("Input[object]", each) if isinstance(each, Input) else Input(each) for each in values]
    trial = _Trial(bolt, inputs, schema, options, time_limit)
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
        options: dict[str, Any],
        time_limit: float,
    ) -> None:
        self.recorded = RecordedRun()
        self._inputs = inputs
        self._trees: list[Tree[object]] = []
        # Without timeouts: they belong to whole trees, and a slow bolt is no failure here.
        self._topology = Topology(
            "one bolt", message_timeout=None, max_spout_pending=None, drain_timeout=time_limit
        )
        self._streams = dict(self._feeds(schema))
        self._topology.bolt(BOLT, bolt, *(each.shuffle() for each in self._streams.values()), **options)

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
        """What has come of it."""
        emissions = self.recorded.emissions
        fed = [each for each in emissions if each.component != BOLT]
        made = [each for each in emissions if each.component == BOLT]
        inputs = [_input_result(one, tree, made) for one, tree in zip(fed, self._trees, strict=True)]
        return BoltResult(inputs, made)


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
