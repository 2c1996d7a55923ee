"""A micro-batch that waits for its verdict in a thread of Spark's."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from stormlet.errors import SparkFailed
from stormlet.spark.stream import query
from stormlet.spark.stream.query import MicroBatch, NotDone

NO_FRAME: Any = None


def test_the_first_verdict_stands() -> None:
    """What was done stays done, and what has failed stays so."""
    loop = asyncio.new_event_loop()
    loop.close()
    done, failed = MicroBatch(0, NO_FRAME), MicroBatch(1, NO_FRAME)
    done.done()
    done.fail(SparkFailed("too late"))
    done.wait(loop)
    failed.fail(SparkFailed("first"))
    failed.fail(SparkFailed("second"))
    failed.done()
    with pytest.raises(NotDone, match="first"):
        failed.wait(loop)


def test_a_loop_that_was_closed_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's thread looks now and then whether there is a loop that would give the verdict."""
    monkeypatch.setattr(query, "VERDICT_LOOK", 0.01)
    loop = asyncio.new_event_loop()
    batch = MicroBatch(0, NO_FRAME)
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            batch.wait(loop)
        except NotDone as error:
            caught.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    thread.join(0.05)
    assert thread.is_alive()
    loop.close()
    thread.join(60)
    assert [str(error) for error in caught] == ["the event loop was closed in the middle of the batch"]
