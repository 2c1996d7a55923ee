"""Exceptions that are kept for long: without their frames, and otherwise as they were."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from weakref import ref

import pytest

from stormlet.core.tracebacks import MOST, without_traceback


class Large:
    """A local variable of user code."""


class Coded(LookupError):
    """Takes other arguments than it passes on."""

    def __init__(self, code: int, *, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


class Wrapping(Exception):
    """Has another exception as an attribute."""

    def __init__(self, inner: Exception) -> None:
        super().__init__("wraps")
        self.inner = inner


class Demanding(Exception):
    """Cannot be made without a word."""

    def __new__(cls, *, word: str) -> Demanding:
        return super().__new__(cls, word)

    def __init__(self, *, word: str) -> None:
        super().__init__(word)


def raised(make: Callable[[], BaseException]) -> tuple[BaseException, ref[Large]]:
    """What was raised by code with a large local variable, and whether that is there still."""

    def user_code() -> ref[Large]:
        local = Large()
        watched.append(ref(local))
        raise make()

    watched: list[ref[Large]] = []
    try:
        user_code()
    except BaseException as error:
        return error, watched[0]
    raise AssertionError


def looks_of(error: BaseException) -> tuple[object, ...]:
    told = [getattr(error, name, None) for name in ("code", "filename", "name", "object", "pos", "value")]
    return type(error), repr(error), str(error), list(vars(error)), told


def chained() -> BaseException:
    error = KeyError("below")
    error.__cause__ = raised(lambda: OSError(2, "no such file", "a.csv"))[0]
    error.add_note("a note")
    return error


def a_json_error() -> BaseException:
    try:
        json.loads("{")
    except ValueError as error:
        return error
    raise AssertionError


MAKERS: dict[str, Callable[[], BaseException]] = {
    "a usual one": lambda: ValueError("a", 1),
    "with other arguments": lambda: Coded(7, text="seven"),
    "of the system": lambda: OSError(2, "no such file", "a.csv"),
    "of a codec": lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    "of an import": lambda: ImportError("no module", name="here"),
    "of an iterator": lambda: StopAsyncIteration(3),
    "a group": lambda: ExceptionGroup("two", [raised(lambda: ValueError("a"))[0], TypeError("b")]),  # type: ignore[list-item]
    "in an attribute": lambda: Wrapping(ConnectionError(raised(lambda: ValueError("inside"))[0])),
    "with a cause": chained,
    "of a decoder": a_json_error,
    "that cannot be made again": lambda: Demanding(word="yes"),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_nothing_of_the_frames_is_kept(make: Callable[[], BaseException]) -> None:
    """The copy is of the same class, says the same and has the same attributes; what the frames held is free."""
    error, local = raised(make)
    copy = without_traceback(error)
    assert looks_of(copy) == looks_of(error)
    del error
    gc.collect()
    assert local() is None


def test_the_exception_itself_is_left_alone() -> None:
    """Whoever else has it has all of it still."""
    error, local = raised(lambda: ValueError("a"))
    copy = without_traceback(error)
    assert error.__traceback__ is not None
    assert (copy.__traceback__, copy is error, local() is None) == (None, False, False)


def test_what_cannot_be_made_again_loses_its_traceback() -> None:
    """A class that demands arguments of its own is not asked twice."""
    error, _ = raised(lambda: Demanding(word="yes"))
    assert without_traceback(error) is error
    assert error.__traceback__ is None


class Unlike(Exception):
    """No two of them look the same."""

    def __repr__(self) -> str:
        return f"Unlike {id(self)}"


def test_a_copy_that_looks_different_is_not_taken() -> None:
    """Then it is the exception itself that is kept, without its traceback."""
    error, _ = raised(Unlike)
    assert without_traceback(error) is error
    assert error.__traceback__ is None


def test_exceptions_in_tuples_among_the_arguments_are_copies_too() -> None:
    """They would keep frames just the same."""
    inner, _ = raised(lambda: KeyError("x"))
    error, _ = raised(lambda: ValueError(("a", inner)))
    ((text, copy),) = without_traceback(error).args
    assert (text, repr(copy), copy is inner, copy.__traceback__) == ("a", "KeyError('x')", False, None)


def test_the_chain_is_kept() -> None:
    """Cause and context are copies too, with whether the context is shown."""
    error, _ = raised(chained)
    error.__context__, error.__suppress_context__ = raised(lambda: TypeError("context"))[0], True
    copy = without_traceback(error)
    assert repr(copy.__cause__) == repr(error.__cause__)
    assert repr(copy.__context__) == "TypeError('context')"
    assert (copy.__suppress_context__, copy.__notes__) == (True, ["a note"])
    assert copy.__cause__ is not None
    assert copy.__cause__.__traceback__ is None


def test_exceptions_that_refer_to_each_other_come_to_an_end() -> None:
    """Neither a circle nor a long chain is followed for ever."""
    one, other = Wrapping(ValueError()), Wrapping(ValueError())
    one.inner, other.inner = other, one
    copy = without_traceback(one)
    assert isinstance(copy, Wrapping)
    assert isinstance(copy.inner, Wrapping)

    first: Exception = ValueError("0")
    error = first
    for number in range(10 * MOST):
        error.__context__ = TypeError(number)
        error = error.__context__
    length, link = 0, without_traceback(first)
    while link.__context__ is not None:
        length, link = length + 1, link.__context__
    assert length == MOST - 1


def test_an_exception_that_is_its_own_argument_says_so() -> None:
    """The innermost one is its text."""
    error = ValueError("a")
    error.args = (error,)
    assert isinstance(without_traceback(error), ValueError)


def test_a_context_that_is_shown_stays_shown() -> None:
    """To set the cause of a copy hides its context, as ``raise ... from`` does."""
    error, _ = raised(lambda: ValueError("late"))
    error.__context__ = TypeError("early")
    assert not without_traceback(error).__suppress_context__


class Alike(Exception):
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike)

    __hash__ = None  # type: ignore[assignment]


def test_exceptions_that_are_equal_are_not_the_same() -> None:
    """Each has a copy of its own, also one that calls itself equal to its cause."""
    error = Alike("late")
    error.__cause__ = Alike("early")
    cause = without_traceback(error).__cause__
    assert repr(cause) == "Alike('early')"
