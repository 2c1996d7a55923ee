"""A topology that lives several times: killed at any step, started again with the same store, until it has ended:
``python -m tests.epochs.lives --seeds 0:50000``.

Its words fail at random: beside the bolt with state, where they may have reached it or not, and after it, some always.
Sources are silent for a while, a broker gives messages again, the clock jumps, writes fail before they are done and
after it, committers raise before they have committed and after it. In the end state, tables and sinks must be those of
a direct computation, whatever happened on the way.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from random import Random
from typing import Any, cast

import msgspec

from stormlet import (
    Collector,
    Committer,
    Epoch,
    EpochBolt,
    KeyedBolt,
    Reject,
    Topology,
    TopologyCrashed,
    Tuple,
    Value,
)
from stormlet.core.state.commits import Column, Commit, StateId, Store, Table
from stormlet.core.state.states import State
from stormlet.errors import StateUnusable
from stormlet.model.state.committers import TableFactory
from stormlet.model.state.keyed import states_of
from stormlet.state.memory import MemoryStore
from stormlet.testing import SimulatedLoop
from tests.epochs.brokers import Broker, Consumer

MOST_ROUNDS = 100_000
"""Rounds of the loop after which a last life counts as one without an end; they take some thousand."""


class Killed(BaseException):
    """The process has been killed: nothing of it runs any more."""


class MortalLoop(SimulatedLoop):
    """A loop with simulated time that is killed at one of its rounds, and whose clock jumps now and then."""

    def __init__(self, seed: int, rounds: int, jumps: float = 0.0) -> None:
        super().__init__(seed)
        self.left = rounds
        self._chance = Random(seed)
        self._jumps = jumps

    def _run_once(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed
        if self._jumps and self._chance.random() < self._jumps:
            self._clock.now += self._chance.uniform(0.0, 20.0)
        super()._run_once()  # type: ignore[misc]


class Word(msgspec.Struct, frozen=True):
    """One word of the source."""

    number: int
    text: str


class Count(KeyedBolt[str, Word, Word]):
    """Counts words, and sums their numbers, each in a state of its own."""

    total = Value(int, 0)
    sums = Value(int, 0)

    def execute(self, tup: Tuple[Word], out: Collector[Word]) -> None:
        self.total += 1
        self.sums += tup.value.number
        out.emit(tup.value)


class Size(EpochBolt[Word, int]):
    """Emits how many words its task has had in the epoch."""

    def __init__(self) -> None:
        self.words = 0

    def execute(self, tup: Tuple[Word], out: Collector[int]) -> None:
        self.words += 1

    def end_epoch(self, epoch: Epoch, out: Collector[int]) -> None:
        out.emit(self.words)


class Hold:
    """One life's hold on a store: the death ends it, whatever runs afterwards. Some writes fail."""

    def __init__(self, store: Store, fails: Callable[[], bool] = bool) -> None:
        """``fails`` says if a write fails before it is done, and is asked again after it."""
        self._store: Store | None = store
        self._fails = fails
        self.has_failed = False

    @property
    def is_over(self) -> bool:
        return self._store is None

    def end(self) -> None:
        self._store = None

    def commit(self, commit: Commit) -> None:
        if self._store is not None:
            self._may_fail()
            self._store.commit(commit)
            self._may_fail()

    def _may_fail(self) -> None:
        if self._fails():
            self.has_failed = True
            raise StateUnusable("the disk has failed")

    def note_delivered(self, rows: Sequence[tuple[str, int]], letters: int) -> None:
        if self._store is not None:
            self._store.note_delivered(rows, letters)

    def close(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Chance:
    """Failures at random, by a seed."""

    def __init__(self, seed: int, rate: float, always: Sequence[int] = ()) -> None:
        self._random = Random(seed)
        self._rate = rate
        self._always = always

    def strike(self, word: Word) -> None:
        if word.number in self._always:
            raise Reject("never")
        if self._random.random() < self._rate:
            raise ValueError("by chance")


class Sink:
    """A store of somebody else's, which notes the last epoch that it has had in one step with its rows."""

    def __init__(self) -> None:
        self.last: Epoch | None = None
        self.rows: list[Word] = []

    def take(self, epoch: Epoch, rows: Sequence[Word]) -> None:
        if epoch.follows(self.last):
            self.rows += rows
            self.last = epoch


class Write(Committer[Word]):
    """Brings words to a sink, and raises now and then: before that, or after."""

    def __init__(self, lives: Lives, sink: Sink) -> None:
        self.lives = lives
        self.hold = lives.hold
        self.sink = sink

    async def commit(self, epoch: Epoch, rows: Sequence[Word]) -> None:
        random = self.lives.random
        await asyncio.sleep(random.choice([0, 0.001, 0.02]))
        if random.random() < 0.1:
            raise OSError("not there now")
        if not self.hold.is_over:
            self.sink.take(epoch, rows)
        await asyncio.sleep(random.choice([0, 0.001]))
        if random.random() < 0.1:
            raise OSError("gone after it had them")


class WriteSizes(Committer[int]):
    """Brings the sizes of epochs to a sink."""

    def __init__(self, lives: Lives) -> None:
        self.hold = lives.hold
        self.sizes = lives.sizes

    def commit(self, epoch: Epoch, rows: Sequence[int]) -> None:
        if not self.hold.is_over:
            self.sizes[epoch.number] = sum(rows)  # by number: what comes again takes its own place


class WordTable(TableFactory[Word]):
    """A table of the state's own."""

    kind = Word
    table = Table("words", [("number", "INTEGER"), ("text", "TEXT")])
    in_state = True

    def __call__(self) -> Committer[Word]:
        return Unused()

    def columns_of(self, row: Word) -> Sequence[Column]:
        return row.number, row.text


class Unused(Committer[Word]):
    """Never called, as the store writes its rows."""

    def commit(self, epoch: Epoch, rows: Sequence[Word]) -> None:
        raise AssertionError("the store writes these rows")


class Lives:
    """One topology over several lives."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.seed = seed
        self.words = [Word(number, random.choice("abcdef")) for number in range(random.randrange(1, 120))]
        self.rejected = [each.number for each in self.words if random.random() < 0.03]
        self.before = Chance(seed, random.choice([0.0, 0.05, 0.2]))
        self.after = Chance(seed + 1, random.choice([0.0, 0.02, 0.1]), self.rejected)
        self.store: Store = MemoryStore("line")
        self.hold = Hold(self.store)
        self.kills = 0
        self.letters: Counter[int] = Counter()
        self.sinks = Sink(), Sink()
        self.sizes: dict[int, int] = {}
        self.silence = random.choice([0.0, 0.05, 0.3])
        self.jumps = random.choice([0.0, 0.0, 0.002])
        self.write_fails = random.choice([0.0, 0.0, 0.03])
        self.broker: Broker[Word] | None = None
        if random.random() < 0.5:
            self.broker = Broker([(each.number, each) for each in self.words[1::2]])

    def topology(self) -> Topology:
        random = self.random
        topology = Topology(
            "lives",
            epoch_messages=random.choice([1, 3, 10, 40]),
            max_attempts=30,
            replay_delay=0.01,
            max_restarts=1000,
        )
        halves = [self.words[::2], self.words[1::2]]
        sources = [
            topology.spout("words 0", self._given(halves[0])),
            topology.spout("words 1", _listed(halves[1]))
            if self.broker is None
            else topology.spout("words 1", self._consumer(self.broker), parallelism=random.randrange(1, 3)),
        ]
        slow = topology.bolt(
            "slow",
            self._waited,
            sources[0].shuffle(),
            sources[1].shuffle(),
            concurrency=random.randrange(1, 9),
        )
        counted = topology.bolt("count", Count, slow.fields("text"), parallelism=random.randrange(1, 4))
        topology.bolt("beside", self._struck_before, sources[0].shuffle(), sources[1].shuffle())
        passed = topology.bolt("after", self._struck_after, counted.shuffle())
        for number, sink in enumerate(self.sinks):
            topology.bolt(f"write {number}", partial(Write, self, sink), passed.shuffle())
        topology.bolt("keep", WordTable(), passed.shuffle())
        sized = topology.bolt("size", Size, passed.shuffle(), parallelism=random.randrange(1, 3))
        topology.bolt("write sizes", partial(WriteSizes, self), sized.shuffle())
        return topology

    def _given(self, words: Sequence[Word]) -> Any:
        async def generate() -> AsyncIterator[Word]:
            for word in words:
                if self.random.random() < self.silence:
                    await asyncio.sleep(self.random.choice([0.0005, 0.002, 0.02, 3.0]))
                yield word

        return generate

    def _consumer(self, broker: Broker[Word]) -> Any:
        hold = self.hold
        broker.lose()  # what the last life had
        return partial(Consumer[Word], broker, self.random, lambda: hold.is_over)

    async def _waited(self, word: Word) -> Word:
        await asyncio.sleep(self.random.choice([0, 0.001, 0.02]))
        return word

    def _struck_before(self, word: Word) -> None:
        self.before.strike(word)

    def _struck_after(self, word: Word) -> Word:
        self.after.strike(word)
        return word

    def live(self, rounds: int | None) -> bool:
        """Live once more, for so many rounds of the loop at most. Returns True if it has come to its end."""
        loop = MortalLoop(self.seed + self.kills, MOST_ROUNDS if rounds is None else rounds, self.jumps)
        fails = (lambda: self.random.random() < self.write_fails) if rounds is not None else bool
        self.hold = hold = Hold(self.store, fails)
        try:
            loop.run_until_complete(self._run(hold))
        except Killed:
            self.kills += 1
            return False
        except TopologyCrashed:
            if not hold.has_failed:
                raise
            self.kills += 1
            return False
        else:
            return True
        finally:
            hold.end()
            _drop(loop)

    async def _run(self, hold: Hold) -> None:
        async with self.topology().run(state=cast("Store", hold), dead_letters=self._bury) as running:
            await running.finished()

    async def _bury(self, letter: Any) -> None:
        hold = self.hold
        await asyncio.sleep(self.random.choice([0, 0.01]))
        if hold.is_over:
            return
        number = letter.value.number if isinstance(letter.value, Word) else letter.value["number"]
        self.letters[number] += 1

    def run(self, most_kills: int = 5) -> None:
        while self.kills < most_kills:
            if self.live(self.random.randrange(10, 300)):
                return
        if not self.live(None):
            raise AssertionError(
                f"seed {self.seed} has not ended after {MOST_ROUNDS} rounds of its last life"
            )

    def found(self) -> dict[str, tuple[int, int]]:
        """What the store has."""
        totals, sums = _kept(self.store, "total"), _kept(self.store, "sums")
        return {key: (total, sums[key]) for key, total in totals.items()}

    def table(self) -> list[int]:
        """The numbers in the table of the store, sorted."""
        tables = cast("MemoryStore", self.store).tables
        return sorted(cast("int", number) for number, _ in tables.get("words", {}).values())

    def differences(self) -> list[str]:
        """What is other than in a direct computation."""
        numbers = self.passed()
        rows = [sorted(each.number for each in sink.rows) == numbers for sink in self.sinks]
        letters = self.letters.total() <= len(self.rejected) * (1 + self.kills)
        right = {
            "the state": self.found() == self.expected(),
            "the table": self.table() == numbers,
            **{f"sink {number}": each for number, each in enumerate(rows)},
            "the sizes of epochs": sum(self.sizes.values()) == len(numbers),
            "the dead letters": sorted(self.letters) == self.rejected and letters,
            "rows that were not delivered": not self.store.load().outbox,
            "the broker": self.broker is None or not self.broker.left,
        }
        return [name for name, is_right in right.items() if not is_right]

    def passed(self) -> list[int]:
        """Those that must be there, and in each sink."""
        return [each.number for each in self.words if each.number not in self.rejected]

    def expected(self) -> dict[str, tuple[int, int]]:
        """Direct computation."""
        found: dict[str, tuple[int, int]] = {}
        for each in self.words:
            if each.number not in self.rejected:
                count, total = found.get(each.text, (0, 0))
                found[each.text] = count + 1, total + each.number
        return found


def _listed(words: Sequence[Word]) -> Callable[[], Iterator[Word]]:
    def generate() -> Iterator[Word]:
        yield from words

    return generate


def _kept(store: Store, name: str) -> dict[str, int]:
    state = State(StateId("count", name), states_of(Count)[name])
    state.load(store.load().states.get(state.id, ()))
    return dict(state.tables[0].committed_items())


def _drop(loop: MortalLoop) -> None:
    """Let go of a loop and all that runs on it. What its tasks do on the way finds no store, and changes nothing."""
    loop.left = MOST_ROUNDS
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks))
    for task in tasks:
        task.cancelled() or task.exception()  # else the loop would complain that nobody has looked
    loop.close()


def main() -> None:
    """Live with one seed after another; say which ones end with something wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:1000", help="from and to, as 0:1000")
    first, last = map(int, parser.parse_args().seeds.split(":"))
    logging.disable(logging.CRITICAL)
    kills, wrong = 0, 0
    for seed in range(first, last):
        lives = Lives(seed)
        lives.run()
        kills += lives.kills
        if found := lives.differences():
            wrong += 1
            print(f"seed {seed}, after {lives.kills} kills: {', '.join(found)}", flush=True)
        if (seed + 1) % 500 == 0:
            print(f"{seed + 1 - first} seeds, {kills} kills, {wrong} wrong", flush=True)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
