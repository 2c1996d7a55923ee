"""The thread that pulls, its queue, its retries and its end; a fake stands for Spark."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from stormlet.spark import Origin, SparkFailed
from stormlet.spark.source.puller import MOST_CHUNKS, MOST_ROWS, Puller, Retries, Rows, rows_per_call
from stormlet.spark.source.reading import ALL, Chunk, Done

LOST = "Job aborted: TaskResultLost (result lost from block manager)\n\tat org.apache"


class Context:
    """The part of a SparkContext that a puller uses."""

    def __init__(self) -> None:
        self.tags: list[str] = []
        self.cancelled: list[str] = []
        self.on_cancel: Callable[[], None] = lambda: None

    def addJobTag(self, tag: str) -> None:  # noqa: N802 Spark's name
        self.tags.append(tag)

    def setJobDescription(self, text: str) -> None:  # noqa: N802 Spark's name
        """Not of interest."""

    def cancelJobsWithTag(self, tag: str) -> None:  # noqa: N802 Spark's name
        self.cancelled.append(tag)
        self.on_cancel()


class Frame:
    """Two partitions of chunks, whose reading fails as told: at which chunk of all that are read, with what."""

    def __init__(self, *failures: tuple[int, Exception]) -> None:
        self.failures = list(failures)
        self.asked: list[dict[int, int]] = []
        self.begun = 0

    def read(self, done: Done) -> Iterator[Chunk]:
        self.asked.append(dict(done))
        for partition, first in ((0, 0), (0, 10), (1, 0), (1, 10)):
            skipped = done.get(partition, 0)
            if skipped == ALL or first < skipped:
                continue
            if self.failures and self.failures[0][0] == self.begun:
                raise self.failures.pop(0)[1]
            self.begun += 1
            yield Chunk(partition, first, 10, [f"{partition}.{first}"])


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain thread in the place of PySpark's, which copies properties of a JVM's."""
    monkeypatch.setattr("pyspark.InheritableThread", threading.Thread)


class Pulling:
    """A puller, and what a loop does with it."""

    def __init__(self, frame: Any, *, fixed_order: bool = True, most: int = 3) -> None:
        self.context = Context()
        self._woken = threading.Event()
        self.puller = Puller(
            frame.read,
            self.context,  # type: ignore[arg-type]
            self._woken.set,
            name="test",
            done={},
            may_resume=lambda: fixed_order,
            retries=Retries(most, 0.001),
        )
        self.puller.start()

    def values(self) -> list[object]:
        """Everything until the end; raises what ended it."""
        values: list[object] = []
        while True:
            ended = self.puller.ended
            while (chunk := self.puller.take()) is not None:
                values += chunk.values
            if ended:
                break
            assert self._woken.wait(60)
            self._woken.clear()
        if self.puller.error is not None:
            raise self.puller.error
        return values


ALL_VALUES = ["0.0", "0.10", "1.0", "1.10"]


def test_all_chunks_come_in_order() -> None:
    """What is read is what comes, under a tag of its own, and then the thread ends."""
    pulling = Pulling(Frame())
    assert pulling.values() == ALL_VALUES
    assert len(pulling.context.tags) == 1
    pulling.puller.close()
    assert not pulling.puller.running
    assert pulling.context.cancelled == []


def test_it_reads_ahead_no_further_than_its_queue() -> None:
    """Chunks that nobody takes keep the thread from reading more."""
    frame = Frame()
    pulling = Pulling(frame)
    try:
        while frame.begun < MOST_CHUNKS + 1:
            assert pulling.puller.running
        pulling.puller._thread.join(0.05)
        assert frame.begun == MOST_CHUNKS + 1
    finally:
        pulling.puller.close()


@pytest.mark.parametrize(
    ("at", "asked"),
    [(0, {}), (1, {0: 10}), (2, {0: 20}), (3, {0: ALL, 1: 10})],
)
def test_a_lost_result_is_read_again(
    caplog: pytest.LogCaptureFixture, at: int, asked: dict[int, int]
) -> None:
    """After a loss reading goes on with the row reached, nothing comes twice, and the log says so."""
    frame = Frame((at, RuntimeError(LOST)))
    with caplog.at_level(logging.WARNING, "stormlet.spark"):
        assert Pulling(frame).values() == ALL_VALUES
    assert frame.asked == [{}, asked]
    (record,) = caplog.records
    assert record.getMessage() == (
        "test: a result was lost and is read again in 0.001 s: RuntimeError: Job aborted: TaskResultLost "
        "(result lost from block manager)"
    )


def test_losses_are_limited() -> None:
    """A result that is lost again and again ends it, with Spark's error as the cause."""
    lost = RuntimeError(LOST)
    frame = Frame(*[(1, lost)] * 4)
    with pytest.raises(SparkFailed, match="test: lost 4 times in a row: RuntimeError: Job aborted") as caught:
        Pulling(frame, most=3).values()
    assert caught.value.__cause__ is lost
    assert len(frame.asked) == 4


def test_losses_with_progress_between_are_not_in_a_row() -> None:
    """A chunk that came sets the count of losses back."""
    frame = Frame(*[(at, RuntimeError(LOST)) for at in (0, 1, 2, 3)])
    assert Pulling(frame, most=1).values() == ALL_VALUES


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[DIVIDE_BY_ZERO] Division by zero.", "test: RuntimeError: [DIVIDE_BY_ZERO] Division by zero."),
        ("is bigger than spark.driver.maxResultSize (1 KiB)", "test: a partition is larger than"),
    ],
)
def test_other_errors_end_it_at_once(text: str, said: str) -> None:
    """An error that would come again is reported, and not tried again."""
    frame = Frame((1, RuntimeError(text)))
    with pytest.raises(SparkFailed) as caught:
        Pulling(frame).values()
    assert str(caught.value).startswith(said)
    assert len(frame.asked) == 1


def test_rows_without_a_fixed_order_are_not_read_again() -> None:
    """Where Spark may give rows in another order, going on could lose some, so it fails and says the way out."""
    frame = Frame((1, RuntimeError(LOST)))
    with pytest.raises(
        SparkFailed, match="rows have no fixed order to go on from; give order_by= a unique key"
    ):
        Pulling(frame, fixed_order=False).values()


def test_before_the_first_row_any_order_will_do() -> None:
    """A loss before anything came is a fresh start."""
    assert Pulling(Frame((0, RuntimeError(LOST))), fixed_order=False).values() == ALL_VALUES


class Endless:
    """Blocks as a job does, until it is cancelled."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.cancelled = threading.Event()

    def read(self, done: Done) -> Iterator[Chunk]:
        self.begun.set()
        assert self.cancelled.wait(60)
        raise RuntimeError("Job 7 cancelled part of cancelled job tags")
        yield


def test_closing_cancels_the_job_until_the_thread_ends() -> None:
    """A blocked thread is freed by cancelling its tag, as often as it takes, and its error is nobody's."""
    endless = Endless()
    pulling = Pulling(endless)
    cancels = iter([lambda: None, endless.cancelled.set, *[lambda: None] * 9])
    pulling.context.on_cancel = lambda: next(cancels)()
    assert endless.begun.wait(60)
    pulling.puller.close()
    assert not pulling.puller.running
    assert pulling.puller.error is None
    assert set(pulling.context.cancelled) == set(pulling.context.tags)
    assert len(pulling.context.cancelled) == 2


def test_closing_ends_the_pause_after_a_loss() -> None:
    """Nobody waits for a pause to pass when the source is closed."""
    frame = Frame((0, RuntimeError(LOST)))
    pulling = Pulling.__new__(Pulling)
    pulling.context = Context()
    pulling.puller = Puller(
        frame.read,
        pulling.context,  # type: ignore[arg-type]
        lambda: None,
        name="test",
        done={},
        may_resume=lambda: True,
        retries=Retries(3, 60.0),
    )
    pulling.puller.start()
    while frame.failures:
        assert pulling.puller.running
    pulling.puller.close()
    assert not pulling.puller.running
    assert frame.asked == [{}]


def test_rows_are_given_with_their_places() -> None:
    """A call gives rows of one chunk, each with its partition, its row and its epoch; none if no chunk has come."""
    chunks = iter([Chunk(2, 5, 3, ["a", "b", "c"]), None, Chunk(3, 0, 1, ["d"])])
    rows = Rows(lambda: next(chunks))
    assert rows.next(2, 7) == (["a", "b"], [Origin(2, 5, 7), Origin(2, 6, 7)])
    assert rows.next(2, 7) == (["c"], [Origin(2, 7, 7)])
    assert rows.next(2, 7) == ([], [])
    assert rows.next(2) == (["d"], [Origin(3, 0)])
    assert rows.partition == 3


@pytest.mark.parametrize(("most", "rows"), [(None, MOST_ROWS), (MOST_ROWS + 9, MOST_ROWS), (5, 2), (3, 0)])
def test_a_call_emits_no_more_than_may_be_pending(most: int | None, rows: int) -> None:
    """A call of a source emits several rows, but keeps max_spout_pending."""
    out: Any = SimpleNamespace(pending=3)
    assert rows_per_call(out, most) == rows
