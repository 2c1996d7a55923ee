"""A topology that lives several times: killed at any step, started again with the same store, until it has ended.

Its words fail at random: beside the bolt with state, where they may have reached it or not, and after it, some always.
In the end the state must be that of a direct computation, whatever happened on the way.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, cast

import msgspec

from stormlet import Collector, KeyedBolt, Reject, Topology, Tuple, Value
from stormlet.core.commits import Commit, StateId, Store
from stormlet.core.states import State
from stormlet.model.keyed import states_of
from stormlet.state.memory import MemoryStore
from stormlet.testing import SimulatedLoop


class Killed(BaseException):
    """The process has been killed: nothing of it runs any more."""


class MortalLoop(SimulatedLoop):
    """A loop with simulated time that is killed at one of its rounds."""

    def __init__(self, seed: int, rounds: int | None) -> None:
        super().__init__(seed)
        self.left = rounds

    def _run_once(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Killed
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


class Hold:
    """One life's hold on a store: the death ends it, whatever runs afterwards."""

    def __init__(self, store: Store) -> None:
        self._store: Store | None = store

    @property
    def is_over(self) -> bool:
        return self._store is None

    def end(self) -> None:
        self._store = None

    def commit(self, commit: Commit) -> None:
        if self._store is not None:
            self._store.commit(commit)

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

    def topology(self) -> Topology:
        random = self.random
        topology = Topology(
            "lives", epoch_messages=random.choice([1, 3, 10, 40]), max_attempts=30, replay_delay=0.01
        )
        halves = [self.words[::2], self.words[1::2]]
        sources = [topology.spout(f"words {number}", _listed(half)) for number, half in enumerate(halves)]
        slow = topology.bolt(
            "slow",
            self._waited,
            sources[0].shuffle(),
            sources[1].shuffle(),
            concurrency=random.randrange(1, 9),
        )
        counted = topology.bolt("count", Count, slow.fields("text"), parallelism=random.randrange(1, 4))
        topology.bolt("beside", self._struck_before, sources[0].shuffle(), sources[1].shuffle())
        topology.bolt("after", self._struck_after, counted.shuffle())
        return topology

    async def _waited(self, word: Word) -> Word:
        await asyncio.sleep(self.random.choice([0, 0.001, 0.02]))
        return word

    def _struck_before(self, word: Word) -> None:
        self.before.strike(word)

    def _struck_after(self, word: Word) -> None:
        self.after.strike(word)

    def live(self, rounds: int | None) -> bool:
        """Live once more, for so many rounds of the loop at most. Returns True if it has come to its end."""
        loop = MortalLoop(self.seed + self.kills, rounds)
        self.hold = hold = Hold(self.store)
        try:
            loop.run_until_complete(self._run(hold))
        except Killed:
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

    def _bury(self, letter: Any) -> None:
        if self.hold.is_over:
            return
        number = letter.value.number if isinstance(letter.value, Word) else letter.value["number"]
        self.letters[number] += 1

    def run(self, most_kills: int = 5) -> None:
        while not self.live(self.random.randrange(10, 300) if self.kills < most_kills else None):
            pass

    def found(self) -> dict[str, tuple[int, int]]:
        """What the store has."""
        totals, sums = _kept(self.store, "total"), _kept(self.store, "sums")
        return {key: (total, sums[key]) for key, total in totals.items()}

    def expected(self) -> dict[str, tuple[int, int]]:
        """Direct computation."""
        found: dict[str, tuple[int, int]] = {}
        for each in self.words:
            if each.number not in self.rejected:
                count, total = found.get(each.text, (0, 0))
                found[each.text] = count + 1, total + each.number
        return found


def _kept(store: Store, name: str) -> dict[str, int]:
    state = State(StateId("count", name), states_of(Count)[name])
    state.load(store.load().states.get(state.id, ()))
    return dict(state.tables[0].committed_items())


def _listed(words: Sequence[Word]) -> Any:
    def generate() -> Iterator[Word]:
        yield from words

    return generate


def _drop(loop: MortalLoop) -> None:
    """Let go of a loop and all that runs on it. What its tasks do on the way finds no store, and changes nothing."""
    loop.left = None
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks))
    for task in tasks:
        task.cancelled() or task.exception()  # else the loop would complain that nobody has looked
    loop.close()
