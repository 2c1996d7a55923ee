"""Keys by which a service knows what has come twice, and the answers that it remembers by them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import Generic, TypeVar

A = TypeVar("A")


def key_of(origin: object, body: bytes) -> str | None:
    """Return the key of an output: the same in every attempt at its message, another for each other body; None for one
    that has no origin."""
    if origin is None:
        return None
    return blake2b(repr(origin).encode() + b"\0" + body, digest_size=16).hexdigest()


class KeyReused(ValueError):
    """A key came with another body than before."""


class Remembered(Generic[A]):
    """Answers by the keys of their requests; those under way are waited for, and never begun twice."""

    def __init__(self, most: int, lasts: Callable[[A], bool]) -> None:
        """The oldest beyond ``most`` are forgotten, and at once those that do not last."""
        self._most = most
        self._lasts = lasts
        self._known: dict[str, tuple[bytes, asyncio.Task[A]]] = {}

    def __len__(self) -> int:
        return len(self._known)

    async def answer(self, key: str, body: bytes, work: Callable[[], Awaitable[A]]) -> A:
        """Return the answer to this key, by this work if it is new. Raises :class:`KeyReused`. A caller that is
        cancelled leaves the work to others with its key."""
        digest = blake2b(body, digest_size=16).digest()
        known = self._known.get(key)
        if known is None:
            task = asyncio.get_running_loop().create_task(_awaited(work), name="stormlet http request")
            known = self._known[key] = (digest, task)
            task.add_done_callback(lambda done: self._settle(key, done))
        if known[0] != digest:
            raise KeyReused("this Idempotency-Key was used for another body")
        return await asyncio.shield(known[1])

    def _settle(self, key: str, task: asyncio.Task[A]) -> None:
        if task.cancelled() or task.exception() is not None or not self._lasts(task.result()):
            del self._known[key]
        done = [each for each, (_, one) in self._known.items() if one.done()]
        for each in done[: max(0, len(done) - self._most)]:
            del self._known[each]


async def _awaited(work: Callable[[], Awaitable[A]]) -> A:
    return await work()
