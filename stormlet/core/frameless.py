"""Exceptions that are kept for long, without their frames: these keep alive every local variable of user code.

A copy of the exception is kept, never the exception itself with its traceback removed. All members of a batch fail of
one exception, as do all inputs of a task that dies, and user code may keep it too: some of them are replayed, others
are letters that must have the traceback. Nor is its text enough: whoever looks at a letter asks for the class. And
``copy.copy`` would call the user's ``__init__``, which often takes other arguments than it passes on.

Exceptions are objects of users, and may refuse anything: a frozen dataclass lets no attribute be set, others raise in
``__repr__`` or ``__reduce__``, or cannot be made again. So what must not fail goes by no method of theirs: it is read
and set by the descriptors of ``BaseException``.
"""

from __future__ import annotations

from typing import Any, Final, cast

from stormlet.core.shortened import shown

_CAUSE, _CONTEXT, _SUPPRESS = (
    BaseException.__dict__[name] for name in ("__cause__", "__context__", "__suppress_context__")
)

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
        return BaseException.with_traceback(error, None)

    def _new(self, error: BaseException) -> BaseException:
        kind, base = type(error), _builtin(type(error))
        _, arguments, *state = cast("tuple[Any, ...]", base.__reduce__(error))
        arguments = [self._plain(each) for each in arguments]
        twin = kind.__new__(kind, *arguments)
        base.__init__(twin, *arguments)
        for name, value in state[0].items() if state and state[0] else ():
            object.__setattr__(twin, name, self._plain(value))
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
        suppressed = _SUPPRESS.__get__(error)
        _CAUSE.__set__(twin, self.of(_CAUSE.__get__(error)))
        _CONTEXT.__set__(twin, self.of(_CONTEXT.__get__(error)))
        _SUPPRESS.__set__(twin, suppressed)


def _builtin(kind: type[BaseException]) -> type[BaseException]:
    """The class of Python's own that it inherits from, which may keep more of its arguments than ``args``."""
    return next(base for base in kind.__mro__ if base.__module__ == "builtins")
