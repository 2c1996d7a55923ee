"""The thread that a topology's loop runs in: its collectors may be called in no other one (law F3).

Compiled, every call is checked, in about thirty instructions. Interpreted, to ask for the thread costs a twentieth of
an acked tuple: outside of debug mode only those emits and acks are checked there with which something unsent begins, so
that none waits for somebody to wake the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING

from stormlet.core.directives import is_extension
from stormlet.model.plan import TaskPlan

if not TYPE_CHECKING and is_extension(__file__):
    import cython
else:
    from stormlet.core import directives as cython

if TYPE_CHECKING:  # a function of C: the declarations beside this file have it
    this_thread: Callable[[], int]

WAYS = {
    "emit": "call out.emit_threadsafe there",
    "ack": "call out.ack_threadsafe there",
    "fail": "call out.fail_threadsafe there",
    "dead_letter": "hand it to asyncio.run_coroutine_threadsafe there",
}
"""The right call from another thread, by method."""


class LoopThread:
    """The thread in which it was made, until the loop is run in another one."""

    __slots__ = ("_ident", "_loop", "strict")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ident = 0
        self._arrive()
        self.strict = cython.compiled or loop.get_debug()
        """True where every call is to be checked."""

    def _arrive(self) -> None:
        if cython.compiled:
            self._ident = this_thread()  # noqa: F821
        else:
            self._ident = get_ident()

    def is_elsewhere(self) -> bool:
        """True in any other thread."""
        if (this_thread() == self._ident) if cython.compiled else (get_ident() == self._ident):  # noqa: F821
            return False
        if asyncio._get_running_loop() is not self._loop:  # pyright: ignore[reportPrivateUsage]
            return True
        self._arrive()
        return False


def called_elsewhere(plan: TaskPlan, method: str) -> RuntimeError:
    """The error for this call in another thread."""
    way = WAYS.get(method, "hand it to loop.call_soon_threadsafe there")
    return RuntimeError(
        f"out.{method} of {plan.name} was called in another thread than that of its event "
        f"loop, and has done nothing; {way}"
    )
