"""Calls of user code: what a task notes of them, their contexts (law B10), stray cancellations (law N3), and the kinds
of results (law B1)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from contextvars import Context
from enum import Enum
from typing import Any, Final, TypeVar, cast

from stormlet.core.shortened import shortened
from stormlet.errors import MistakenFactory, StrayCancellation
from stormlet.model.components import BoltBase, Spout
from stormlet.model.plan import TaskPlan

R = TypeVar("R")


class UserCode:
    """The user code of one task: the method that runs, and the exceptions that it has raised since it was made."""

    __slots__ = ("_logged", "_raised", "method")

    def __init__(self) -> None:
        self.method = "start"
        """The method that runs now, or ran last; a crash is reported with it (law C5)."""
        self._raised: list[BaseException] = []
        self._logged: list[Exception] = []

    def raised(self, error: BaseException) -> None:
        """Note an exception that user code has raised: its task may be restarted. What the engine itself raises crashes
        the topology (law N2)."""
        self._raised.append(error)

    def has_raised(self, error: Exception) -> bool:
        """Return True if user code has raised this."""
        return _is_among(self._raised, error)

    def logged(self, error: Exception) -> None:
        """Note that the log has this exception."""
        self._logged.append(error)

    def is_logged(self, error: Exception) -> bool:
        """Return True if the log has the exception that the instance dies of, or that one of its calls ended with."""
        return _is_among(self._logged, error)

    def forget(self) -> None:
        """Forget the exceptions of an instance that is gone."""
        self._raised.clear()
        self._logged.clear()


def _is_among(errors: Sequence[BaseException], error: Exception) -> bool:
    # Where a StopIteration would leave a coroutine, Python raises a RuntimeError instead.
    cause = error.__cause__ if type(error) is RuntimeError else None
    raised = cause if isinstance(cause, StopIteration) else error
    return any(each is error or each is raised for each in errors)


class Within(Generator[Any, Any, R]):
    """Awaits something so that each of its steps runs in a context. An object rather than a generator, so that
    explanations see what it awaits."""

    __slots__ = ("_awaitable", "_context", "steps")

    steps: Generator[Any, Any, R]
    """The steps of the awaitable."""

    def __init__(self, context: Context, awaitable: Awaitable[R]) -> None:
        self._context = context
        self._awaitable = awaitable

    def __await__(self) -> Generator[Any, Any, R]:
        self.steps = self._awaitable.__await__()
        return self

    def __next__(self) -> Any:
        return self._context.run(next, self.steps)

    def send(self, value: Any, /) -> Any:
        """As a generator does."""
        return self._context.run(self.steps.send, value)

    def throw(self, *error: Any) -> Any:
        """As a generator does."""
        return self._context.run(self.steps.throw, *error)

    def close(self) -> None:
        """As a generator does."""
        self._context.run(self.steps.close)


def check_stray(error: asyncio.CancelledError) -> None:
    """Raise :class:`~stormlet.errors.StrayCancellation` if nobody has cancelled the running task: the error
    came out of something that user code awaited, and is an exception of that code like any other."""
    if is_stray():
        raise stray(error)


async def checked(result: Awaitable[R], check_cancelled: Callable[[Exception | None], None]) -> R:
    """Await user code. A cancellation by the engine comes out whatever that code makes of it, and a stray one as
    :class:`~stormlet.errors.StrayCancellation`.

    ``check_cancelled`` raises :class:`asyncio.CancelledError` if the engine has cancelled the running coroutine, and
    takes what user code has raised instead.
    """
    try:
        value = await result
    except asyncio.CancelledError as error:
        check_cancelled(None)
        check_stray(error)
        raise
    except Exception as error:
        check_cancelled(error)
        raise
    check_cancelled(None)
    return value


def stray(error: asyncio.CancelledError) -> StrayCancellation:
    """The exception that a stray cancellation counts as."""
    # An exception like others: as a CancelledError it would end the task quietly, and its inputs would only time
    # out.
    counted = StrayCancellation("user code awaited something that was cancelled")
    counted.__cause__ = error
    return counted


def as_exception(error: Exception | asyncio.CancelledError) -> Exception:
    """The exception for an error of user code where nothing was awaited: a cancellation is a stray one there."""
    return error if isinstance(error, Exception) else stray(error)


def is_stray() -> bool:
    """True if no other task has cancelled the running one."""
    # Whoever cancels a task raises the count that cancelling() gives; a CancelledError out of a future that was
    # cancelled, or one that user code raises, does not.
    task = asyncio.current_task()
    return task is None or task.cancelling() == 0


async def all_ended(running: Iterable[asyncio.Task[Any]]) -> None:
    """Wait for the end of every task, whoever cancels the one that waits: the end of a run must not be cut short."""
    while left := [each for each in running if not each.done()]:
        # The one that waits may be cancelled again and again, as by a host that is impatient; tasks that are left
        # would run on after their topology.
        with suppress(asyncio.CancelledError):
            await asyncio.wait(left)


COMPONENTS = (BoltBase, Spout)

MOST_TYPES: Final = 1000
"""The number of types remembered before all are forgotten: user code may make one for each value."""


class ResultKind(Enum):
    """The ways to deal with a result that is not None."""

    VALUE = "value"
    """It is one output, lists and tuples too."""
    ITERATOR = "iterator"
    """It is drained: each item is an output."""
    AWAITABLE = "awaitable"
    """It is awaited, and what it gives is the result."""
    ASYNC_ITERATOR = "async iterator"
    """It is drained asynchronously."""
    CLASS = "class"
    """It is one output, unless it is a class of bolts or spouts."""


def kind_of(result: type) -> ResultKind:
    """The kind of result that instances of this type are."""
    # A class of iterators is no iterator, and is an output like other values.
    if issubclass(result, type):
        return ResultKind.CLASS
    if issubclass(result, Awaitable):
        return ResultKind.AWAITABLE
    if issubclass(result, AsyncIterator):
        return ResultKind.ASYNC_ITERATOR
    return ResultKind.ITERATOR if issubclass(result, Iterator) else ResultKind.VALUE


class Kinds(dict[type, ResultKind]):
    """The kind of each type that this bolt has returned; raises :class:`~stormlet.errors.MistakenFactory` for bolts and
    spouts."""

    def __init__(self, bolt: str) -> None:
        super().__init__()
        self._bolt = bolt

    def __missing__(self, result: type) -> ResultKind:
        # A function that makes a class for each value would fill the memory by it.
        if len(self) >= MOST_TYPES:
            self.clear()
        # Instances of bolts are refused as outputs, too: a factory with a default argument looks like a function of
        # the value.
        self.check_class(result)
        kind = self[result] = kind_of(result)
        return kind

    def check_class(self, result: object) -> None:
        """Raises :class:`~stormlet.errors.MistakenFactory` for a class of bolts or spouts."""
        if isinstance(result, type) and issubclass(result, COMPONENTS):
            raise _mistaken_factory(self._bolt, cast("type[object]", result))


def _mistaken_factory(bolt: str, made: type[object]) -> MistakenFactory:
    name = made.__name__
    kind = "spout" if issubclass(made, Spout) else "bolt"
    return MistakenFactory(
        f"bolt {bolt!r} has a parameter and so was called with a value, but it makes a {kind}, {name}: as a factory it "
        f"must take no parameters; bind what it needs by functools.partial({name}, ...)"
    )


EMIT_IT: Final = "emit it with out.emit(...), and return nothing"


def dropped(plan: TaskPlan, method: str, result: object, way_out: str = EMIT_IT) -> TypeError:
    """The error for what a method has returned that nobody takes."""
    return TypeError(f"{method} of {plan.name} returned {shortened(result)}, which nothing takes: {way_out}")
