"""Exceptions that are kept for long, without their frames: these keep alive every local variable of user code."""

from __future__ import annotations

from typing import Any, Final, cast

from stormlet.core.shortened import shown

MOST: Final = 50
"""How many exceptions of one chain are kept."""


def frameless(error: BaseException) -> BaseException:
    """A twin of the exception that has no traceback: of the same class, with its arguments, attributes and notes, and
    with twins of its cause and context. ``__init__`` of the user's is not called again.

    Where no twin can be made that looks the same, it is the exception itself, whose traceback is dropped.
    """
    return _Twins().of(error) or error


class _Twins:
    """The twins of exceptions that refer to each other."""

    def __init__(self) -> None:
        self._seen: list[BaseException] = []
        self._twins: list[BaseException | None] = []

    def of(self, error: BaseException | None) -> BaseException | None:
        """None beyond the most that are kept, and in arguments that lead back to their own exception."""
        if error is None:
            return None
        for seen, twin in zip(self._seen, self._twins, strict=True):  # they may be equal, and need no hash
            if seen is error:
                return twin
        return None if len(self._seen) == MOST else self._made(error)

    def _made(self, error: BaseException) -> BaseException:
        place = len(self._seen)
        self._seen.append(error)
        self._twins.append(None)
        twin = self._twins[place] = self._twin(error)
        self._chain(twin, error)
        return twin

    def _twin(self, error: BaseException) -> BaseException:
        try:
            twin = self._new(error)
            if (repr(twin), str(twin)) == (repr(error), str(error)):
                return twin
        except Exception:
            pass
        error.__traceback__ = None
        return error

    def _new(self, error: BaseException) -> BaseException:
        kind, base = type(error), _builtin(type(error))
        _, arguments, *state = cast("tuple[Any, ...]", base.__reduce__(error))
        arguments = [self._plain(each) for each in arguments]
        twin = kind.__new__(kind, *arguments)
        base.__init__(twin, *arguments)
        for name, value in state[0].items() if state and state[0] else ():
            setattr(twin, name, self._plain(value))
        return twin

    def _plain(self, value: object) -> object:
        if isinstance(value, BaseException):
            return self.of(value) or shown(value)
        if type(value) is list:  # the members of a group
            return [self._plain(each) for each in cast("list[object]", value)]
        if type(value) is tuple:
            return tuple(self._plain(each) for each in cast("tuple[object, ...]", value))
        return value

    def _chain(self, twin: BaseException, error: BaseException) -> None:
        suppressed = error.__suppress_context__
        twin.__cause__, twin.__context__ = self.of(error.__cause__), self.of(error.__context__)
        twin.__suppress_context__ = suppressed


def _builtin(kind: type[BaseException]) -> type[BaseException]:
    """The class of Python's own that it inherits from, which may keep more of its arguments than ``args``."""
    return next(base for base in kind.__mro__ if base.__module__ == "builtins")
