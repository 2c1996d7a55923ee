"""Topologies that are killed and started again, and what must be left of them in the end (law X1, X6 to X9, X12).

Each gives words, counts them in a file and brings them to tables and to sinks of its own. They differ in what makes
that hard: failures after state was reached, two committers, a source of several partitions, a DataFrame, a broker,
another parallelism in each life. In the end every word is there once, but for those that are rejected, which are dead
letters.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, cast

import msgspec

from stormlet import (
    Collector,
    Committer,
    DeadLetter,
    EndOfStream,
    Epoch,
    Failure,
    KeyedBolt,
    Reject,
    Spout,
    SpoutCollector,
    SqliteTable,
    TaskContext,
    Topology,
    Tuple,
    Value,
)
from stormlet.core.state.commits import StateId
from stormlet.core.state.states import State
from stormlet.model.state.keyed import states_of
from stormlet.state.places import is_rocksdb
from stormlet.state.stores import reader
from tests.epochs.frames import source_of

WORDS = 4_000
PARTITIONS = 3


class Word(msgspec.Struct, frozen=True):
    """One word of the source."""

    number: int
    text: str


def words(seed: int) -> Sequence[Word]:
    """All of the source's."""
    random = Random(seed)
    return [Word(number, f"word {random.randrange(300)}") for number in range(WORDS)]


class Count(KeyedBolt[str, Word, Word]):
    """Counts words, and sums up their numbers."""

    total = Value(int, 0)
    sums = Value(int, 0)

    def execute(self, tup: Tuple[Word], out: Collector[Word]) -> None:
        self.total += 1
        self.sums += tup.value.number
        out.emit(tup.value)


class Shelves(Spout[Word]):
    """Gives words of several partitions in turn, each from its last durable one on."""

    resumable = True

    def __init__(self, words: Sequence[Word], passage: Callable[[str], None]) -> None:
        self._shelves = [words[each::PARTITIONS] for each in range(PARTITIONS)]
        self._passage = passage

    def open(self, context: TaskContext, out: SpoutCollector[Word]) -> None:
        last = (cast("tuple[int, int] | None", context.resume.get(each)) for each in range(PARTITIONS))
        self._next = [0 if each is None else each[1] + 1 for each in last]

    def next_tuple(self, out: SpoutCollector[Word]) -> None:
        left = [each for each in range(PARTITIONS) if self._next[each] < len(self._shelves[each])]
        if not left:
            raise EndOfStream
        for shelf in left:
            place = self._next[shelf]
            self._next[shelf] = place + 1
            out.emit(self._shelves[shelf][place], message_id=(shelf, place))

    def partition(self, message_id: object) -> int:
        return cast("tuple[int, int]", message_id)[0]

    def ack(self, message_id: object) -> None:
        self._passage("ack")


class Queue:
    """A broker in a file: it has what was not acked."""

    def __init__(self, path: str, words: Sequence[Word]) -> None:
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.execute("PRAGMA synchronous=OFF")
        self._database.execute("BEGIN IMMEDIATE")
        self._database.execute("CREATE TABLE IF NOT EXISTS words (number INTEGER PRIMARY KEY, text TEXT)")
        self._database.execute("CREATE TABLE IF NOT EXISTS filled (yes INTEGER)")
        if not self._database.execute("SELECT * FROM filled").fetchall():
            rows = [(each.number, each.text) for each in words]
            self._database.executemany("INSERT INTO words VALUES (?, ?)", rows)
            self._database.execute("INSERT INTO filled VALUES (1)")
        self._database.execute("COMMIT")

    def left(self) -> Iterator[Word]:
        """All that was not acked."""
        rows = self._database.execute("SELECT number, text FROM words ORDER BY number").fetchall()
        return (Word(number, text) for number, text in rows)

    def ack(self, number: int) -> None:
        """Forget one."""
        self._database.execute("DELETE FROM words WHERE number = ?", (number,))


class Consumer(Spout[Word]):
    """Gives what a broker has, and acks what is durable."""

    redelivers = True

    def __init__(self, queue: Queue, passage: Callable[[str], None]) -> None:
        self._queue = queue
        self._passage = passage
        self._left = queue.left()

    def next_tuple(self, out: SpoutCollector[Word]) -> None:
        word = next(self._left, None)
        if word is None:
            raise EndOfStream
        out.emit(word, message_id=word.number)

    def ack(self, message_id: object) -> None:
        self._passage("before the ack")
        self._queue.ack(cast("int", message_id))
        self._passage("after the ack")

    def fail(self, message_id: object, failure: Failure) -> None:
        self.ack(message_id)


class Sink:
    """A database of somebody else's, which notes the last epoch that it has had in one transaction with its rows."""

    def __init__(self, path: str) -> None:
        self._path = path

    def last(self) -> Epoch | None:
        with closing(self._open()) as database:
            found = database.execute("SELECT number, line FROM last").fetchone()
        return None if found is None else Epoch(*found)

    def take(self, epoch: Epoch, rows: Sequence[Word]) -> None:
        if not epoch.follows(self.last()):
            return
        with closing(self._open()) as database:
            database.execute("BEGIN IMMEDIATE")
            database.executemany("INSERT INTO rows VALUES (?, ?)", [(row.number, row.text) for row in rows])
            database.execute("DELETE FROM last")
            database.execute("INSERT INTO last VALUES (?, ?)", (epoch.number, epoch.line))
            database.execute("COMMIT")

    def numbers(self) -> list[int]:
        """The numbers of all rows, sorted."""
        with closing(self._open()) as database:
            return [number for (number,) in database.execute("SELECT number FROM rows ORDER BY number")]

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, isolation_level=None)
        database.execute("PRAGMA synchronous=OFF")  # kill -9 takes nothing from the system's memory
        database.execute("CREATE TABLE IF NOT EXISTS rows (number INTEGER, text TEXT)")
        database.execute("CREATE TABLE IF NOT EXISTS last (number INTEGER, line TEXT)")
        return database


class Write(Committer[Word]):
    """Brings words to a sink; the second one waits a moment for the first."""

    def __init__(self, sinks: Sequence[Sink], number: int, passage: Callable[[str], None]) -> None:
        self._sinks = sinks
        self._number = number
        self._passage = passage

    async def commit(self, epoch: Epoch, rows: Sequence[Word]) -> None:
        if self._number:
            await self._wait_for_the_first(epoch)
            self._passage("between two committers")
        self._sinks[self._number].take(epoch, rows)

    async def _wait_for_the_first(self, epoch: Epoch) -> None:
        for _ in range(20):
            last = self._sinks[0].last()
            if last is not None and last.number >= epoch.number:
                return
            await asyncio.sleep(0.001)


@dataclass(frozen=True)
class Kind:
    """What makes it hard."""

    failures: float = 0.0
    """The share of words that fail after they were counted, by chance."""
    rejected: int = WORDS
    """Each so-manieth word is rejected after it was counted, always."""
    committers: int = 0
    partitions: bool = False
    frame: bool = False
    """The source is a DataFrame of Spark."""
    broker: bool = False
    """The source is a broker that gives again what it has no ack for."""
    other_parallelism: bool = False


TOPOLOGIES = {
    "word-count": Kind(),
    "failures": Kind(failures=0.002, rejected=41),
    "fan-out": Kind(committers=2, failures=0.001),
    "partitions": Kind(partitions=True, failures=0.001, rejected=801),
    "parallelism": Kind(other_parallelism=True, committers=1, failures=0.001),
    "broker": Kind(broker=True, failures=0.001, rejected=801),
    "dataframe": Kind(frame=True, failures=0.001, rejected=801, committers=1),
}


class Mortal:
    """One of these topologies, with its files."""

    def __init__(self, name: str, path: Path, seed: int) -> None:
        self.name = name
        self.kind = TOPOLOGIES[name]
        self._path = path
        self._has_tables = not is_rocksdb(path)
        self._seed = seed
        self._words = words(seed)
        self._sinks = [Sink(f"{path}.sink{number}") for number in range(self.kind.committers)]
        self._letters = Path(f"{path}.letters")
        self._frame: Any = None

    def prepare(self) -> None:
        """Do what takes long, before the life is worth killing."""
        if self.kind.frame:
            self._frame = source_of(self._words, Path(f"{self._path}.parquet"))

    def run(self, life: int, passage: Callable[[str], None]) -> None:
        """Live once more. ``passage`` is told of points that are passed."""
        asyncio.run(self._run(life, passage))

    async def _run(self, life: int, passage: Callable[[str], None]) -> None:
        topology = self._topology(Random(f"{self._seed} {life}"), passage)
        async with topology.run(dead_letters=self._bury) as running:
            await running.finished()

    def _topology(self, random: Random, passage: Callable[[str], None]) -> Topology:
        topology = Topology(
            "mortal",
            state=str(self._path),
            epoch_messages=random.choice([50, 100, 200]),
            replay_delay=0.001,
            max_attempts=20,
        )
        tasks = random.randrange(1, 6) if self.kind.other_parallelism else 2
        source = topology.spout("words", self._source(passage))
        counted = topology.bolt("count", Count, source.fields("text"), parallelism=tasks)
        passed = topology.bolt("after", partial(self._struck, random), counted.shuffle())
        if self._has_tables:
            topology.bolt("own table", SqliteTable("passed", Word), passed.shuffle())
        for number in range(self.kind.committers):
            topology.bolt(f"write {number}", partial(Write, self._sinks, number, passage), passed.shuffle())
        return topology

    def _source(self, passage: Callable[[str], None]) -> Any:
        if self.kind.partitions:
            return partial(Shelves, self._words, passage)
        if self.kind.broker:
            return partial(Consumer, Queue(f"{self._path}.queue", self._words), passage)
        return self._frame or self._generate

    def _generate(self) -> Iterator[Word]:
        yield from self._words

    def _struck(self, random: Random, word: Word) -> Word:
        if self._is_rejected(word):
            raise Reject("never")
        if random.random() < self.kind.failures:
            raise ValueError("by chance")
        return word

    def _is_rejected(self, word: Word) -> bool:
        return word.number % self.kind.rejected == self.kind.rejected - 1

    def _bury(self, letter: DeadLetter) -> None:
        value: Any = letter.value  # of an earlier run it is plain data
        number = value.number if isinstance(value, Word) else value["number"]
        letters = os.open(self._letters, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(letters, b"%d\n" % number)
        os.close(letters)

    def differences(self, kills: int) -> Iterator[str]:
        """What is other than in a direct computation, after a run that has come to its end."""
        passed = [each for each in self._words if not self._is_rejected(each)]
        with closing(reader(self._path)) as found:
            stored = found.load().in_memory()
        if _kept(stored, "total") != Counter(each.text for each in passed):
            yield "the counts"
        if _kept(stored, "sums") != _sums(passed):
            yield "the sums"
        numbers = [each.number for each in passed]
        if self._has_tables and self._rows() != numbers:
            yield "the table in the file"
        for number, sink in enumerate(self._sinks):
            if sink.numbers() != numbers:
                yield f"the sink {number}"
        letters = Counter(map(int, self._letters.read_text().split()) if self._letters.exists() else ())
        rejected = [each.number for each in self._words if self._is_rejected(each)]
        if sorted(letters) != rejected or letters.total() > len(rejected) * (1 + kills):
            yield "the dead letters"
        if stored.outbox:
            yield "rows that were not delivered"
        if self.kind.broker and [*Queue(f"{self._path}.queue", ()).left()]:
            yield "words that were not acked"

    def _rows(self) -> list[int]:
        with closing(sqlite3.connect(self._path)) as database:
            return [row for (row,) in database.execute("SELECT number FROM passed ORDER BY number")]


def _kept(stored: Any, name: str) -> dict[str, int]:
    state = State(StateId("count", name), states_of(Count)[name])
    state.load(stored.states[state.id])
    return dict(state.tables[0].committed_items())


def _sums(words: Sequence[Word]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for each in words:
        sums[each.text] = sums.get(each.text, 0) + each.number
    return sums
