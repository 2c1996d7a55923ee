"""Tells work from waiting, in a call that is suspended, as far as its source code shows it.

A call may have to wait when its work is done: at the end of an ``async with`` block, in a ``finally``, or in a last
pause that nothing follows.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from textwrap import dedent
from types import CodeType, FrameType
from typing import NamedTuple

from stormlet.core.calls import Call, call_of

ENDS = frozenset({"__aexit__", "aclose"})
"""Methods that end something."""


class Position(NamedTuple):
    """The place of a line in its function."""

    ends: bool = False
    """In a ``finally``."""
    last: bool = False
    """Nothing of the function follows it."""
    repeated: bool = False
    """In a loop."""


def work_in(frames: Sequence[FrameType], acked_in: CodeType) -> Call | None:
    """The line in which a call works that is suspended in these frames, outermost first, after an ack in this code.
    None if it only ends or pauses, or if there is no source code to tell by."""
    own = _own(frames, acked_in)
    positions = [position_of(frame.f_code, frame.f_lineno) for frame in own]
    seen = [each for each in positions if each is not None]
    called = [frame.f_code for frame in frames[: len(own) + 1]]
    if not seen or len(seen) < len(own) or any(each.ends for each in seen):
        return None
    if not ENDS.isdisjoint(code.co_name for code in called):
        return None
    if called[-1] is asyncio.sleep.__code__ and (all(each.last for each in seen) or seen[-1].repeated):
        return None
    return call_of(own[-1].f_code, own[-1].f_lineno)


def _own(frames: Sequence[FrameType], acked_in: CodeType) -> Sequence[FrameType]:
    """Those down to the one that has acked; if that has returned, those in the same file as the first one."""
    for number, frame in enumerate(frames, 1):
        if frame.f_code is acked_in:
            return frames[:number]
    return list(takewhile(lambda frame: frame.f_code.co_filename == frames[0].f_code.co_filename, frames))


@lru_cache(maxsize=1024)
def position_of(code: CodeType, line: int) -> Position | None:
    """The place of this line; None if that cannot be seen."""
    try:
        lines, first = inspect.getsourcelines(code)
        (function,) = ast.parse(dedent("".join(lines))).body
    except (OSError, TypeError, ValueError, SyntaxError):
        return None
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    return _find(function.body, line - max(first, 1) + 1, Position(last=True))


def _find(body: Sequence[ast.stmt], line: int, around: Position) -> Position | None:
    while body and _does_nothing(body[-1]):
        around = around._replace(last=around.last or isinstance(body[-1], ast.Return))
        body = body[:-1]
    for statement in body:
        if statement.lineno <= line <= (statement.end_lineno or statement.lineno):
            here = around._replace(last=around.last and statement is body[-1])
            found = (_find(block, line, within) for block, within in _blocks(statement, here))
            return next((each for each in found if each is not None), here)
    return None


def _does_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Pass) or (isinstance(statement, ast.Return) and statement.value is None)


def _blocks(statement: ast.stmt, here: Position) -> Iterator[tuple[Sequence[ast.stmt], Position]]:
    """The blocks of a statement, and where each of them is."""
    loops = isinstance(statement, ast.For | ast.AsyncFor | ast.While)
    yield (
        getattr(statement, "body", ()),
        here._replace(last=here.last and not loops, repeated=here.repeated or loops),
    )
    for each in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield each.body, here
    yield getattr(statement, "orelse", ()), here
    yield getattr(statement, "finalbody", ()), here._replace(ends=True)
