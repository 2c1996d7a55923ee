"""Frames of user code, as explanations name them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import PurePath
from types import CodeType
from typing import Final

import msgspec

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
    return _is_file_of_ours(code.co_filename)


@lru_cache(maxsize=1024)  # each failure asks for each frame that it came through
def _is_file_of_ours(name: str) -> bool:
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
