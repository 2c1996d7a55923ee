"""Calls of user code, as explanations name them, and copies of exceptions without tracebacks, to be kept for long: a
traceback's frames keep alive every local variable.

A copy is kept, never the exception itself with its traceback removed. All members of a batch fail of one exception, as
do all inputs of a task that dies, and user code may keep it too: some of them are replayed, others are letters that
must have the traceback. Its text is not enough: readers of a letter ask for the class. And ``copy.copy`` would call the
user's ``__init__``, which often takes other arguments than it passes on.

Exceptions are objects of the user's and may refuse anything: a frozen dataclass lets no attribute be set, others raise
in ``__repr__`` or ``__reduce__``, or cannot be constructed again. Steps that must not fail therefore use no method of
theirs, but the descriptors of ``BaseException``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import PurePath
from types import CodeType
from typing import Any, Final, cast

import msgspec

from stormlet.core.shortened import shown

PACKAGE: Final = PurePath(__file__).parents[1]
"""The folder of stormlet's own files."""


class Call(msgspec.Struct, frozen=True):
    """One frame of a call stack."""

    function: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.function} ({PurePath(self.file).name}:{self.line})"


def call_of(code: CodeType, line: int) -> Call:
    """The call that runs this code and has come to this line."""
    # The functions around a local one are left out: the file and the line say where it is.
    return Call(code.co_qualname.rpartition("<locals>.")[2], code.co_filename, line)


def is_ours(code: CodeType) -> bool:
    """Return True for code of stormlet's own, compiled or interpreted."""
    return is_file_of_ours(code.co_filename)


@lru_cache(maxsize=1024)  # each failure asks for each frame that it came through
def is_file_of_ours(name: str) -> bool:
    """Return True for a file of stormlet's own, as code or frames name it."""
    file = PurePath(name)
    # A compiled module names its file as seen from the folder where it was built: stormlet/core/tuples.py.
    return file.is_relative_to(PACKAGE) or file.parts[:1] == (PACKAGE.name,)


def stack_line(stack: Iterable[Call]) -> str:
    """The calls on one line, outermost first: ``save (app.py:3) > Queue.get (queues.py:158)``."""
    return " > ".join(map(str, stack))


def raised_in(error: BaseException) -> Call | None:
    """Return the call that raised an exception; None if it was never raised.

    It is the last frame outside stormlet, as stormlet's own may only have passed the exception on. Where all frames are
    stormlet's, it is the last of them.
    """
    place = None
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if place is None or not is_ours(code):
            place = call_of(code, traceback.tb_lineno)
        traceback = traceback.tb_next
    return place


def forget_earlier_raises(error: BaseException) -> None:
    """Leave an exception that was just caught with the frames of this raise alone.

    Python adds the frames of each raise to those before, so that the traceback of an exception that user code keeps, or
    that many receive from one future, would grow without a bound.
    """
    entry = caught = error.__traceback__
    while entry is not None and caught is not None:
        # Each raise begins with the frame that catches it here, so its next occurrence is that of an earlier raise.
        following = entry.tb_next
        if following is not None and following.tb_frame.f_code is caught.tb_frame.f_code:
            entry.tb_next = None
            return
        entry = following


_CAUSE, _CONTEXT, _SUPPRESS = (
    BaseException.__dict__[name] for name in ("__cause__", "__context__", "__suppress_context__")
)

MOST: Final = 50
"""The most exceptions of one chain that are kept."""


def without_traceback(error: BaseException) -> BaseException:
    """Return a copy of the exception that has no traceback.

    It is of the same class and has the same arguments, attributes and notes, and such copies of the cause and the
    context. The user's ``__init__`` is not called again. Where no copy can be made that looks the same, return the
    exception itself and drop its traceback.
    """
    return _Copies().of(error) or error


class _Copies:
    """The copies of exceptions that refer to each other."""

    def __init__(self) -> None:
        self._seen: list[BaseException] = []
        self._copies: list[BaseException | None] = []

    def of(self, error: BaseException | None) -> BaseException | None:
        """Return the copy of an exception; None beyond the most that are kept, and in arguments that lead back to their
        own exception."""
        if error is None:
            return None
        # By identity, in a list: exceptions may be equal, and need not have a hash.
        for seen, copy in zip(self._seen, self._copies, strict=True):
            if seen is error:
                return copy
        return None if len(self._seen) == MOST else self._made(error)

    def _made(self, error: BaseException) -> BaseException:
        # Noted as seen before it is copied, as its arguments, cause and context may lead back to it.
        place = len(self._seen)
        self._seen.append(error)
        self._copies.append(None)
        copy = self._copies[place] = self._copy(error)
        self._chain(copy, error)
        return copy

    def _copy(self, error: BaseException) -> BaseException:
        try:
            copy = self._new(error)
            # A class may keep its words in a place that no copy reaches; a copy that reads otherwise would mislead.
            if (repr(copy), str(copy)) == (repr(error), str(error)):
                return copy
        except Exception:  # raised by the class of the exception, which may do anything
            pass
        return BaseException.with_traceback(error, None)

    def _new(self, error: BaseException) -> BaseException:
        # By the built-in base: the class's own __reduce__ may raise, and its __init__ may have effects.
        kind, base = type(error), _builtin(type(error))
        _, arguments, *state = cast("tuple[Any, ...]", base.__reduce__(error))
        arguments = [self._plain(each) for each in arguments]
        copy = kind.__new__(kind, *arguments)
        base.__init__(copy, *arguments)
        for name, value in state[0].items() if state and state[0] else ():
            object.__setattr__(copy, name, self._plain(value))
        return copy

    def _plain(self, value: object) -> object:
        if isinstance(value, BaseException):
            return self.of(value) or shown(value)
        if type(value) is list:  # the members of a group
            return [self._plain(each) for each in cast("list[object]", value)]
        if type(value) is tuple:
            return tuple(self._plain(each) for each in cast("tuple[object, ...]", value))
        return value

    def _chain(self, copy: BaseException, error: BaseException) -> None:
        # Read first and set last: setting the cause sets it, too, and the copy may be the exception itself.
        suppressed = _SUPPRESS.__get__(error)
        _CAUSE.__set__(copy, self.of(_CAUSE.__get__(error)))
        _CONTEXT.__set__(copy, self.of(_CONTEXT.__get__(error)))
        _SUPPRESS.__set__(copy, suppressed)


def _builtin(kind: type[BaseException]) -> type[BaseException]:
    """Return the built-in class that an exception class inherits from; it may keep more of the arguments than
    ``args``."""
    return next(base for base in kind.__mro__ if base.__module__ == "builtins")
