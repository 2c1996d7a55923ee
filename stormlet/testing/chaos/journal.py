"""The events of a simulation or soak, for people to read, without the log of the engine."""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager

from stormlet.core.shortened import shortened


class Journal:
    """Lines with their time, all of them or the last ``most``. They are written when they are read: nearly no journal
    ever is."""

    def __init__(self, time: Callable[[], float], most: int | None = None) -> None:
        self.is_over = False
        """True once nothing more is to be noted."""
        self._time = time
        self._entries = deque[tuple[float, str, tuple[object, ...]]](maxlen=most)
        self._roots: dict[int, int] = {}

    def note(self, text: str, *values: object) -> None:
        """Something has happened; ``text`` has a ``{}`` for each of the values."""
        if not self.is_over:
            self._entries.append((self._time(), text, values))

    def begin(self, time: Callable[[], float]) -> None:
        """Another life begins, whose time this function gives."""
        self.is_over = False
        self._time = time

    def tree(self, root: int) -> Tree:
        """The name of a tree: by the order in which they were seen."""
        return Tree(self._roots.setdefault(root, len(self._roots) + 1))

    def lines(self) -> list[str]:
        """All of it."""
        return [f"{time:10.3f}  {text.format(*map(_shown, values))}" for time, text, values in self._entries]


class Tree(int):
    """The number of a tree."""

    def __str__(self) -> str:
        return f"tree {int(self)}"


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""The address of an object without a ``repr`` of its own: in every process another one (law L16)."""


def _shown(value: object) -> str:
    return str(value) if isinstance(value, str | int | float) else described(value)


def described(value: object) -> str:
    """A value, in the same words in every process."""
    return _ADDRESS.sub("", shortened(value))


@contextmanager
def silence() -> Generator[None]:
    """Disable the log, in which the engine would report every injected failure."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("stormlet")]
    loggers = [(logger, logger.disabled) for logger in map(logging.getLogger, names)]
    try:
        for logger, _ in loggers:
            logger.disabled = True
        yield
    finally:
        for logger, disabled in loggers:
            logger.disabled = disabled
