"""Copies of exceptions without tracebacks, to be kept for long: a traceback's frames keep alive every local variable.

A copy is kept, never the exception itself with its traceback removed. All members of a batch fail of one exception, as
do all inputs of a task that dies, and user code may keep it too: some of them are replayed, others are letters that
must have the traceback. Its text is not enough: readers of a letter ask for the class. And ``copy.copy`` would call the
user's ``__init__``, which often takes other arguments than it passes on.

Exceptions are objects of the user's and may refuse anything: a frozen dataclass lets no attribute be set, others raise
in ``__repr__`` or ``__reduce__``, or cannot be constructed again. Steps that must not fail therefore use no method of
theirs, but the descriptors of ``BaseException``.
"""

from __future__ import annotations

from typing import Any, Final, cast

from stormlet.core.shortened import shown

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
