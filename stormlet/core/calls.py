"""Frames of user code, as explanations name them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import PurePath
from types import CodeType
from typing import Final

import msgspec

PACKAGE: Final = PurePath(__file__).parents[1]
"""Where stormlet's own files are."""


class Call(msgspec.Struct, frozen=True):
    """One frame of a call stack."""

    function: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.function} ({PurePath(self.file).name}:{self.line})"


def call_of(code: CodeType, line: int) -> Call:
    """The call that runs this code and has come to this line."""
    return Call(code.co_qualname.rpartition("<locals>.")[2], code.co_filename, line)


def is_ours(code: CodeType) -> bool:
    """Whether it is stormlet's own. The compiled modules name their files as seen from where they were built."""
    return _is_file_of_ours(code.co_filename)


@lru_cache(maxsize=1024)  # each failure asks for each frame that it came through
def _is_file_of_ours(name: str) -> bool:
    file = PurePath(name)
    return file.is_relative_to(PACKAGE) or file.parts[:1] == (PACKAGE.name,)


def stack_line(stack: Iterable[Call]) -> str:
    """The calls on one line, outermost first: ``save (app.py:3) > Queue.get (queues.py:158)``."""
    return " > ".join(map(str, stack))


def raised_in(error: BaseException) -> Call | None:
    """Where it was raised: in the last frame that is not stormlet's, which may only have passed it on; in the last one
    if all are. None if it was never raised."""
    place = None
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if place is None or not is_ours(code):
            place = call_of(code, traceback.tb_lineno)
        traceback = traceback.tb_next
    return place


def forget_earlier_raises(error: BaseException) -> None:
    """Leave an exception that was caught now with the frames of this raise alone. Python adds those of each raise to
    the ones before, so that an exception which user code keeps, or a future that many await, would have ever more."""
    entry = caught = error.__traceback__
    while entry is not None and caught is not None:
        following = entry.tb_next
        if following is not None and following.tb_frame.f_code is caught.tb_frame.f_code:
            entry.tb_next = None
            return
        entry = following
