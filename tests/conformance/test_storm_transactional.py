"""The cases of Storm's transactional topologies (TX): a batch is an epoch, its number the transaction id."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import pytest

from stormlet import Collector, Epoch, EpochBolt, Topology, Tuple
from stormlet.core.state.commits import Commit
from stormlet.core.state.epochs import EpochAccount
from stormlet.errors import StateUnusable
from stormlet.state.memory import MemoryStore
from tests.conformance.epochs import (
    Batches,
    Committed,
    EpochCount,
    Note,
    committed,
    summed,
    whole_run,
)

pytestmark = pytest.mark.simulated_time

FIRST = {
    0: [("dog", 3), ("cat", 4), ("apple", 1), ("dog", 3)],
    1: [("cat", 1), ("mango", 4)],
    2: [("happy", 11), ("mango", 2), ("zebra", 1)],
}
REST = {
    0: [("a", 1), ("b", 2), ("c", 3)],
    1: [("d", 4), ("c", 1)],
    2: [("a", 2), ("e", 7), ("c", 11)],
    3: [("a", 2)],
}
SUMS = {
    1: {"dog": 3, "cat": 5, "mango": 6, "happy": 11},
    2: {"apple": 1, "dog": 3, "zebra": 1},
    3: {"a": 5, "b": 2, "d": 4, "c": 1, "e": 7},
    4: {"c": 14},
}
SIZES = {1: 6, 2: 3, 3: 7, 4: 2}


def test_TX1_a_number_for_each_epoch_and_one_for_each_attempt() -> None:
    """An attempt that fails keeps the number; a commit begins the next one, and only that."""
    account = EpochAccount[str](2)
    seen = [(account.number, account.attempt)]
    account.messages.append("a")
    account.spoil("a")
    account.repeat()
    seen.append((account.number, account.attempt))
    account.close()
    seen.append((account.number, account.attempt))
    account.messages.append("b")
    account.spoil_by_itself()  # as in its commit
    account.repeat()
    seen.append((account.number, account.attempt))
    assert seen == [(1, 1), (1, 2), (2, 1), (2, 2)]


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_TX1_epochs_are_committed_in_their_order() -> None:
    """A failure in the second one has those before it committed first, and those after it come later."""
    topology = Topology("order", epoch_messages=2, replay_delay=0.01)
    attempts: list[int] = []
    fails = [1]

    class Failing(EpochCount):
        def end_epoch(self, epoch: Epoch, out: Collector[int]) -> None:
            attempts.append(epoch.number)
            super().end_epoch(epoch, out)
            if epoch.number == 2 and fails:
                fails.pop()
                raise ValueError("in its commit")

    counts = committed(
        topology, topology.bolt("count", Failing, topology.spout("numbers", range(8)).shuffle())
    )
    await whole_run(topology)
    assert attempts == [1, 2, 2, 3, 4]
    assert counts == [(1, 2), (2, 2), (3, 2), (4, 2)]


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_TX2_attempts_have_nothing_of_each_other() -> None:
    """An attempt at the first epoch has had three tuples, the next one of it and the second epoch count their own."""
    topology = Topology("attempts", epoch_messages=3, replay_delay=0.01)
    ends: list[tuple[int, int]] = []
    fails = [1]

    class Noting(EpochCount):
        def end_epoch(self, epoch: Epoch, out: Collector[int]) -> None:
            ends.append((epoch.number, self.count))
            if fails:
                fails.pop()
                raise ValueError("once")
            super().end_epoch(epoch, out)

    topology.bolt("count", Noting, topology.spout("numbers", range(4)).shuffle())
    await whole_run(topology)
    assert ends == [(1, 3), (1, 3), (2, 1)]


def test_TX3_positions_by_epoch() -> None:
    """They are kept in strict order, can be read by number, and what is old goes."""
    store = MemoryStore("line")
    for epoch in (1, 2, 3):
        store.commit(Commit(epoch, float(epoch), {"source[0] of 1": b"%d" % epoch}))
    assert [store.at(epoch).positions["source[0] of 1"] for epoch in (1, 2, 3)] == [b"1", b"2", b"3"]
    with pytest.raises(StateUnusable):
        store.commit(Commit(5, 5.0, {}))
    with pytest.raises(StateUnusable):
        store.commit(Commit(3, 5.0, {}))


def by_epoch(rows: Committed) -> dict[int, Counter[Any]]:
    """Rows of words and numbers as sums."""
    found: dict[int, Counter[Any]] = {}
    for epoch, (word, number) in rows:
        found.setdefault(epoch, Counter())[word] += number
    return found


async def batches_of(store: MemoryStore, data: Any, fails: dict[str, int] | None = None) -> tuple[Any, Any]:
    """Sums and sizes of all batches of two a partition, and two empty ones."""
    topology = Topology("batches", epoch_seconds=1.0, replay_delay=0.01)
    sums, sizes = summed(topology, partial(Batches, data, size=2, times=4), fails)
    await whole_run(topology, store)
    return by_epoch(sums), dict(sizes)


@pytest.mark.simulated_time
async def test_TX4_sums_of_batches() -> None:
    """By word, and the number of tuples; an empty batch is no epoch, and counts nothing."""
    store = MemoryStore("line")
    assert await batches_of(store, FIRST) == (
        {epoch: SUMS[epoch] for epoch in (1, 2)},
        {epoch: SIZES[epoch] for epoch in (1, 2)},
    )
    more = {each: [*FIRST.get(each, []), *REST[each]] for each in REST}
    assert await batches_of(store, more) == (
        {epoch: SUMS[epoch] for epoch in (3, 4)},
        {epoch: SIZES[epoch] for epoch in (3, 4)},
    )


@pytest.mark.simulated_time(allow_leaks=["errors"])
@pytest.mark.parametrize("where", ["end", "commit"])
async def test_TX4_a_batch_that_fails_comes_again(where: str) -> None:
    """At its end, or in its commit: with the same sums, and nothing twice."""
    assert await batches_of(MemoryStore("line"), FIRST, {where: 2}) == (
        {epoch: SUMS[epoch] for epoch in (1, 2)},
        {epoch: SIZES[epoch] for epoch in (1, 2)},
    )


@pytest.mark.simulated_time
async def test_TX5_a_restart_counts_what_is_new() -> None:
    """Five and one are counted; another run with two more words counts these two."""
    store = MemoryStore("line")
    words = ["dog", "cat", "apple", "dog", "cat", "apple"]

    async def counts() -> Committed:
        topology = Topology("restarted", epoch_messages=5)
        counted = topology.bolt("count", EpochCount, topology.spout("words", words).shuffle())
        rows = committed(topology, counted)
        await whole_run(topology, store)
        return rows

    assert await counts() == [(1, 5), (2, 1)]
    words += ["happy", "mango"]
    assert await counts() == [(3, 2)]


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_TX6_an_attempt_may_have_other_messages() -> None:
    """The batch of an opaque source changes when it is tried again; each word is committed in one of them."""
    topology = Topology("opaque", epoch_messages=2, replay_delay=0.01)
    attempts: list[tuple[int, list[str]]] = []
    fails = [1]

    class Words(EpochBolt[str, str]):
        def __init__(self) -> None:
            self.words: list[str] = []

        def execute(self, tup: Tuple[str], out: Collector[str]) -> None:
            self.words.append(tup.value)
            if tup.value == "cat" and fails:
                fails.pop()
                raise ValueError("once")

        def end_epoch(self, epoch: Epoch, out: Collector[str]) -> None:
            attempts.append((epoch.number, self.words))
            for word in self.words:
                out.emit(word)

    words = topology.bolt("batch", Words, topology.spout("words", ["dog", "cat", "apple", "dog"]).shuffle())
    rows: Committed = []
    topology.bolt("note", partial(Note, rows), words.shuffle())
    await whole_run(topology)
    assert attempts[0] == (1, ["dog"])
    assert [word for _, word in rows] == ["dog", "cat", "apple", "dog"]


def test_TX4_the_sums_are_those_of_the_list() -> None:
    """The numbers above are of these data."""
    assert sum(SIZES.values()) == sum(map(len, [*FIRST.values(), *REST.values()]))
    totals: Counter[str] = Counter()
    for each in SUMS.values():
        totals.update(each)
    direct: Counter[str] = Counter()
    for pairs in (*FIRST.values(), *REST.values()):
        for word, number in pairs:
            direct[word] += number
    assert totals == direct
