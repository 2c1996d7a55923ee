"""A message that the engine keeps until it is acked: a value of a generator or iterable, or one that the host
emitted."""

from __future__ import annotations

from contextvars import Context
from typing import Any

from stormlet.core.components import DEFAULT_STREAM
from stormlet.core.outcomes import Failure
from stormlet.core.tuples import PLAIN, Lineage
from stormlet.runtime.trees import Tree


class Message:
    """One value and what became of it so far."""

    __slots__ = (
        "attempts",
        "context",
        "history",
        "message_id",
        "origin",
        "root",
        "stream",
        "task",
        "tree",
        "value",
    )

    def __init__(
        self,
        value: object,
        message_id: object,
        stream: str = DEFAULT_STREAM,
        task: int | None = None,
        origin: object = None,
        context: Context | None = None,
        tree: HostTree | None = None,
    ) -> None:
        self.value = value
        self.message_id = message_id
        self.stream = stream
        self.task = task
        self.origin = origin
        self.context = context
        self.tree = tree
        self.attempts = 0
        """Failed attempts that count (law S6)."""
        self.history: tuple[Failure, ...] = ()
        """Why each attempt failed so far."""
        self.root = 0
        """The root of the running attempt, if values are collected for it."""

    def lineage(self) -> Lineage:
        """What the tuples of the next attempt inherit."""
        if self.attempts or self.origin is not None or self.context is not None:
            return Lineage(self.attempts + 1, self.origin, self.context)
        return PLAIN


class HostTree:
    """What the host wants of its message: the tree, how many attempts, and whether values are collected."""

    __slots__ = ("attempts", "collects", "tree")

    def __init__(self, tree: Tree[Any], attempts: int, collects: bool) -> None:
        self.tree = tree
        self.attempts = attempts
        self.collects = collects
