"""Bolts for tests: one that follows a script, written down for each value beforehand, and one that keeps its inputs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar, cast, get_args

from stormlet.core.shortened import shortened
from stormlet.core.tuples import Tuple
from stormlet.errors import InvalidConfiguration
from stormlet.model.checks.numbers import check_seconds
from stormlet.model.components import BasicBolt, Bolt, Collector

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ack:
    """Emit these values anchored to the input, then ack it."""

    emits: Sequence[object] = ()


@dataclass(frozen=True, slots=True)
class Fail:
    """Fail the input."""

    reason: str = ""
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class Raise:
    """Raise this."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Hold:
    """Neither ack nor fail the input: the test may do that with ``bolt.ack(value)`` or ``bolt.fail(value)``."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Take so many seconds, then do something else."""

    seconds: float
    then: Ack | Fail | Raise | Hold = field(default_factory=Ack)

    def __post_init__(self) -> None:
        check_seconds("Delay", "seconds", self.seconds)
        _check_step("Delay: then is", self.then)


Step: TypeAlias = Ack | Fail | Raise | Hold | Delay
Script: TypeAlias = Mapping[T, Step | Sequence[Step]]


def _check_step(what: str, step: object) -> None:
    if not isinstance(step, Step):
        known = ", ".join(each.__name__ for each in get_args(Step))
        raise InvalidConfiguration(
            f"{what} {shortened(step)}, which is no step; steps are {known}, such as Ack()"
        )


class ScriptedBolt(Generic[T]):
    """The logic of a bolt: ``topology.bolt("write", ScriptedBolt({"bad": [Fail("once"), Ack()]}), rows.shuffle())``.

    The script has a step for a value, or several: one for each time that the value comes, the last one for all times
    after. Or it is a function that gives the step for a value. ``default`` is for values that are not in the script.

    Raises :class:`~stormlet.errors.InvalidConfiguration` for what is no script and no step; a function that returns no
    step has its input fail with that.
    """

    def __init__(
        self, script: Script[T] | Callable[[T], Step] | None = None, default: Step | None = None
    ) -> None:
        self.executed: list[T] = []
        """The value of every input, in the order of execution, those of all tasks together."""
        self._step = script if callable(script) else _ByValue(_checked(script), default or Ack()).step
        self._held: list[tuple[Tuple[T], Collector[Any]]] = []

    def __call__(self) -> Bolt[T, Any]:
        """A bolt for one task."""
        return _Follows(self.executed, self._held, self._step)

    @property
    def held(self) -> list[T]:
        """The values of the inputs that are held."""
        return [tup.value for tup, _ in self._held]

    def ack(self, value: T) -> None:
        """Ack the input with this value that is held longest; raises :class:`KeyError` if there is none."""
        tup, out = self._take(value)
        out.ack(tup)

    def fail(self, value: T, reason: str = "") -> None:
        """Fail the input with this value that is held longest; raises :class:`KeyError` if there is none."""
        tup, out = self._take(value)
        out.fail(tup, reason)

    def _take(self, value: T) -> tuple[Tuple[T], Collector[Any]]:
        if value not in self.held:
            raise KeyError(f"{value!r} is not held; held are {self.held}")
        return self._held.pop(self.held.index(value))


def _checked(script: Any) -> Script[Any]:
    if script is None:
        return {}
    if not isinstance(script, Mapping):
        raise InvalidConfiguration(
            f"ScriptedBolt: a script is a dict from values to steps, or a function, not {shortened(script)}"
        )
    return cast("Script[Any]", script)


def _steps(value: object, steps: Step | Sequence[Step]) -> Iterator[Step]:
    several: Sequence[object] = (steps,)
    if isinstance(steps, Sequence) and not isinstance(steps, str | bytes):
        several = steps
    for each in several:
        _check_step(f"ScriptedBolt: for {shortened(value)} the script has", each)
    return iter(cast("Sequence[Step]", several))


class _ByValue(Generic[T]):
    """Looks the steps up, and counts how often a value has come. Values need not be hashable."""

    def __init__(self, script: Script[T], default: Step) -> None:
        self._values = list(script)
        self._steps = [_steps(value, steps) for value, steps in script.items()]
        _check_step("ScriptedBolt: default is", default)
        self._last = [default] * len(self._values)
        self._default = default

    def step(self, value: T) -> Step:
        if value not in self._values:
            return self._default
        place = self._values.index(value)
        self._last[place] = next(self._steps[place], self._last[place])
        return self._last[place]


class _Follows(Bolt[T, Any]):
    def __init__(
        self,
        executed: list[T],
        held: list[tuple[Tuple[T], Collector[Any]]],
        step: Callable[[T], Step],
    ) -> None:
        self._executed = executed
        self._held = held
        self._step = step

    def execute(self, tup: Tuple[T], out: Collector[Any]) -> Awaitable[None] | None:
        self._executed.append(tup.value)
        step = self._step(tup.value)
        _check_step(f"ScriptedBolt: for {shortened(tup.value)} the function has returned", step)
        return self._do(step, tup, out)

    def _do(self, step: Step, tup: Tuple[T], out: Collector[Any]) -> Awaitable[None] | None:
        match step:
            case Ack():
                for value in step.emits:
                    out.emit(value, anchors=tup)
                out.ack(tup)
            case Fail():
                out.fail(tup, step.reason, permanent=step.permanent)
            case Raise():
                raise step.error
            case Hold():
                self._held.append((tup, out))
            case Delay():
                return self._delay(step, tup, out)
        return None

    async def _delay(self, step: Delay, tup: Tuple[T], out: Collector[Any]) -> None:
        await asyncio.sleep(step.seconds)
        self._do(step.then, tup, out)


class CollectingBolt(Generic[T]):
    """The logic of a bolt: ``topology.bolt("seen", seen, counts.shuffle())`` acks each input and keeps it, in
    the order of execution, those of all tasks together."""

    def __init__(self) -> None:
        self.tuples: list[Tuple[T]] = []
        """Every input."""

    @property
    def values(self) -> list[T]:
        """The value of every input."""
        return [each.value for each in self.tuples]

    def __call__(self) -> BasicBolt[T, None]:
        """A bolt for one task."""
        return _Keeps(self.tuples)


class _Keeps(BasicBolt[T, None]):
    def __init__(self, tuples: list[Tuple[T]]) -> None:
        self._tuples = tuples

    def execute(self, tup: Tuple[T], out: Collector[None]) -> None:
        self._tuples.append(tup)
