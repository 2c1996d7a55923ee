"""A call of ``foreachBatch``: it waits, in Spark's thread, until the topology has decided what became of the
batch."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from stormlet.errors import SparkFailed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOOK = 1.0
"""Seconds after which a waiting call looks whether the loop that would decide is still there."""


class NotDone(Exception):
    """Raised in Spark's thread, so that the query ends and the batch comes again."""


class MicroBatch:
    """One batch of a query, and its verdict."""

    def __init__(self, number: int, frame: DataFrame) -> None:
        self.number = number
        """Spark's number of the batch: the same again after a restart, with the same rows."""
        self.frame = frame
        self.error: Exception | None = None
        """Why it is not done."""
        self._settled = threading.Event()

    @property
    def is_done(self) -> bool:
        """Whether everything in it is settled."""
        return self._settled.is_set() and self.error is None

    def done(self) -> None:
        """Everything in it is settled: Spark may note that."""
        self._settled.set()

    def fail(self, error: Exception) -> None:
        """It is to come again. What was decided before stands."""
        if not self._settled.is_set():
            self.error = error
            self._settled.set()

    def wait(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait in Spark's thread; raises :class:`NotDone`."""
        while not self._settled.wait(LOOK):
            if loop.is_closed():
                self.fail(SparkFailed("the event loop was closed in the middle of the batch"))
        if self.error is not None:
            raise NotDone(str(self.error))
