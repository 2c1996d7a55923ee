"""The account of rows that are done."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from stormlet.spark.source.checkpoint import DoneRows
from stormlet.spark.source.reading import ALL


def test_only_a_prefix_without_gaps_counts() -> None:
    """A row that is done counts when all rows before it are done, too."""
    done = DoneRows({})
    for row in range(3):
        done.emitted(0, row, 1)
    done.settled(0, 1)
    assert done.prefixes(0) == {}
    done.settled(0, 0)
    assert done.prefixes(0) == {0: 2}
    done.settled(0, 2)
    assert done.prefixes(0) == {0: 3}


def test_batches_count_with_all_their_rows() -> None:
    """A message of many rows is done as a whole."""
    done = DoneRows({0: 50})
    done.emitted(0, 50, 100)
    assert done.prefixes(0) == {0: 50}
    done.settled(0, 50)
    assert done.prefixes(0) == {0: 150}


def test_partitions_that_were_read_are_all_done_when_none_of_their_rows_is_open() -> None:
    """Of the partitions that reading has left behind, one with an open row keeps its prefix."""
    done = DoneRows({1: 7})
    for partition in (1, 2):
        done.emitted(partition, 7, 1)
        done.emitted(partition, 8, 1)
    done.settled(2, 7)
    done.settled(1, 7)
    done.settled(1, 8)
    assert done.prefixes(3) == {0: ALL, 1: ALL, 2: 8}


def test_what_is_kept_is_what_is_open() -> None:
    """One message that is held for hours keeps nothing of the many that were settled after it."""
    done = DoneRows({})
    for row in range(10_000):
        done.emitted(0, row, 1)
        if row:
            done.settled(0, row)
    assert done._open == {0: {0: None}}  # pyright: ignore[reportPrivateUsage] - memory has no public face
    assert done.prefixes(0) == {}
    done.settled(0, 0)
    assert done.prefixes(0) == {0: 10_000}
    assert done.prefixes(1) == {0: ALL}
    assert done._open == {}  # pyright: ignore[reportPrivateUsage]


@given(
    sizes=st.lists(st.lists(st.integers(1, 3), max_size=6), max_size=4),
    order=st.randoms(use_true_random=False),
    count=st.integers(0, 30),
)
def test_the_prefixes_are_those_of_the_model(sizes: list[list[int]], order: Random, count: int) -> None:
    """Whatever is settled in whatever order, a prefix ends before the first row that is not done."""
    done = DoneRows({})
    messages: list[tuple[int, int, int]] = []
    for partition, of_partition in enumerate(sizes):
        for place, rows in enumerate(of_partition):
            messages.append((partition, sum(of_partition[:place]), rows))
            done.emitted(*messages[-1])
    shuffled = order.sample(messages, len(messages))
    settled = set(shuffled[:count])
    for partition, row, _ in shuffled[:count]:
        done.settled(partition, row)
    for partition, of_partition in enumerate(sizes):
        of_it = [message for message in messages if message[0] == partition]
        missing = [row for _, row, _ in (message for message in of_it if message not in settled)]
        expected = min(missing, default=sum(of_partition))
        assert done.prefixes(0).get(partition, 0) == expected
    read = done.prefixes(len(sizes))
    assert {partition for partition, rows in read.items() if rows == ALL} == {
        partition
        for partition in range(len(sizes))
        if all(message in settled for message in messages if message[0] == partition)
    }
