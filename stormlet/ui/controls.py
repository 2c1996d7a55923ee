"""Changes of a running topology: switching its spouts, its end, and dead letters that are emitted again. All of them
are made on its event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from stormlet.core.outcomes import DeadLetter, TupleFailed
from stormlet.errors import StormletError
from stormlet.ui.answers import NotFound
from stormlet.ui.watched import Watched

AT_ONCE: Final = 100
"""Dead letters that are emitted again by one request at most."""


def activate(watched: Watched) -> None:
    """Have the spouts asked for tuples."""
    watched.running.activate()


def deactivate(watched: Watched) -> None:
    """Ask the spouts for no more tuples."""
    watched.running.deactivate()


def drain(watched: Watched) -> None:
    """End the topology: what is under way is processed. A second one cancels, as a second Ctrl-C does."""
    watched.running.stop()


OPERATIONS: Final[Mapping[str, Callable[[Watched], None]]] = {
    "activate": activate,
    "deactivate": deactivate,
    "drain": drain,
}


class Replays:
    """Dead letters that are emitted again, each once; what becomes of it stands beside the letter."""

    def __init__(self) -> None:
        self._under_way = set[asyncio.Task[None]]()

    def begin(self, watched: Watched, number: int) -> None:
        """Emit the letter of this number again; raise :class:`~stormlet.ui.answers.NotFound` if it is not kept, or was
        emitted again before."""
        letters = dict(watched.numbered_letters())
        if number not in letters:
            raise NotFound(f"dead letter {number} is not among the last ones")
        if number in watched.again:
            raise NotFound(f"dead letter {number} was emitted again already: {watched.again[number]}")
        watched.again[number] = "waits for room"
        task = asyncio.ensure_future(_replay(watched, number, letters[number]))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)


async def _replay(watched: Watched, number: int, letter: DeadLetter) -> None:
    try:
        tree = await watched.running.emit(
            watched.running.stream(letter.component, letter.stream),
            letter.value,
            attempts=watched.running.configurations[letter.component].max_attempts,
            origin=letter.origin,
        )
        watched.again[number] = "is under way"
        await tree
        watched.again[number] = "acked"
    except TupleFailed as error:
        watched.again[number] = f"failed again: {error}"
    except StormletError as error:
        watched.again[number] = f"not emitted: {error}"
