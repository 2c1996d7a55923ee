"""Warns of user code that holds the event loop, where the loop is in asyncio's debug mode."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

R = TypeVar("R")


class Watched(Coroutine[Any, Any, R]):
    """A coroutine whose every step is timed; ``held`` gets the seconds of those that took too long."""

    __slots__ = ("_coroutine", "_held", "_longest", "_time")

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, R],
        time: Callable[[], float],
        longest: float,
        held: Callable[[float], None],
    ) -> None:
        self._coroutine = coroutine
        self._time = time
        self._longest = longest
        self._held = held

    def send(self, value: Any, /) -> Any:
        """As a coroutine does."""
        began = self._time()
        try:
            return self._coroutine.send(value)
        finally:
            self._took(self._time() - began)

    def throw(self, *error: Any) -> Any:
        """As a coroutine does."""
        began = self._time()
        try:
            return self._coroutine.throw(*error)
        finally:
            self._took(self._time() - began)

    def close(self) -> None:
        """As a coroutine does."""
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, R]:
        return self._coroutine.__await__()

    def __getattr__(self, name: str) -> Any:
        # What asyncio shows of a task (cr_frame, cr_code, ...) is that of the coroutine.
        return getattr(self._coroutine, name)

    def _took(self, seconds: float) -> None:
        if seconds > self._longest:
            self._held(seconds)
