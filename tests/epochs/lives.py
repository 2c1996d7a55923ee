"""A topology that lives several times: killed at any step, started again with the same store, until it has ended.

Its words fail before and after they have reached state, at random, and some of them always. In the end the state must be
that of a direct computation, whatever happened on the way.
"""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import msgspec

from stormlet import BasicBolt, Collector, KeyedBolt, Reject, Topology, Tuple, Value
from stormlet.core.commits import Store
from stormlet.state.memory import MemoryStore
from stormlet.testing import SimulatedLoop


class Killed(BaseException):
    """The process has been killed: nothing of it runs any more."""


class MortalLoop(SimulatedLoop):
    """A loop with simulated time that is killed at one of its rounds."""

    def __init__(self, seed: int, rounds: int | None) -> None:
        super().__init__(seed)
        self._left = rounds

    def _run_once(self) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
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
        self.kills = 0
        self.letters: Counter[int] = Counter()

    def topology(self) -> Topology:
        random = self.random
        topology = Topology(
            "lives", epoch_messages=random.choice([1, 3, 10, 40]), max_attempts=30, replay_delay=0.01
        )
        halves = [self.words[::2], self.words[1::2]]
        sources = [topology.spout(f"words {number}", _listed(half)) for number, half in enumerate(halves)]
        before = topology.bolt(
            "before", self._struck_before, sources[0].shuffle(), sources[1].shuffle(), parallelism=random.randrange(1, 3)
        )
        counted = topology.bolt("count", Count, before.fields("text"), parallelism=random.randrange(1, 4))
        topology.bolt("after", self._struck_after, counted.shuffle())
        return topology

    def _struck_before(self, word: Word) -> Word:
        self.before.strike(word)
        return word

    def _struck_after(self, word: Word) -> None:
        self.after.strike(word)

    def live(self, rounds: int | None) -> bool:
        """Live once more, for so many rounds of the loop at most. Returns True if it has come to its end."""
        loop = MortalLoop(self.seed + self.kills, rounds)
        try:
            loop.run_until_complete(self._run())
        except Killed:
            self.kills += 1
            return False
        else:
            return True
        finally:
            _drop(loop)

    async def _run(self) -> None:
        async with self.topology().run(state=self.store, dead_letters=self._bury) as running:
            await running.finished()

    def _bury(self, letter: Any) -> None:
        number = letter.value.number if isinstance(letter.value, Word) else letter.value["number"]
        self.letters[number] += 1

    def run(self, most_kills: int = 5) -> None:
        while not self.live(self.random.randrange(20, 600) if self.kills < most_kills else None):
            pass

    def expected(self) -> dict[str, tuple[int, int]]:
        """Direct computation."""
        found: dict[str, tuple[int, int]] = {}
        for each in self.words:
            if each.number not in self.rejected:
                count, total = found.get(each.text, (0, 0))
                found[each.text] = count + 1, total + each.number
        return found


def _listed(words: Sequence[Word]) -> Any:
    def generate() -> Iterator[Word]:
        yield from words

    return generate


def _drop(loop: SimulatedLoop) -> None:
    """Let go of a loop and all that runs on it, as a kill does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loop.set_exception_handler(lambda loop, context: None)
        for task in asyncio.all_tasks(loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        loop.close()
        gc.collect()


del BasicBolt
