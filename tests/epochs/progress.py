"""Counts how often messages are executed where some fail after state was reached:
``python -m tests.epochs.progress --messages 200000``."""

from __future__ import annotations

import argparse
import logging
from contextlib import closing
from random import Random

from stormlet import Collector, KeyedBolt, Stream, Topology, Tuple, Value
from stormlet.state.memory import MemoryStore
from stormlet.testing import SimulatedLoop

RATES = (1e-5, 1e-4, 1e-3, 1e-2)


class Progress:
    """A run of so many messages, of which some fail by chance in any attempt, after they were counted."""

    def __init__(self, messages: int, rate: float, epoch_messages: int = 10_000, seed: int = 1) -> None:
        self.messages = messages
        self.executions = 0
        self.failures = 0
        self.store = MemoryStore("line")
        self._rate = rate
        self._random = Random(seed)
        self._epoch_messages = epoch_messages
        with closing(SimulatedLoop(seed)) as loop:
            loop.run_until_complete(self._run())

    @property
    def executions_a_message(self) -> float:
        """Of the bolt with state."""
        return self.executions / self.messages

    async def _run(self) -> None:
        # Never given up: with a failure in a hundred messages one of a million fails three times.
        topology = Topology(
            "progress", epoch_messages=self._epoch_messages, max_attempts=100, replay_delay=0.001
        )
        numbers = topology.spout("numbers", range(self.messages))
        counted: Stream[int] = topology.bolt(
            "count", self._counting(), numbers.fields(_shelf_of), parallelism=2
        )
        topology.bolt("after", self._struck, counted.shuffle())
        async with topology.run(state=self.store) as running:
            await running.finished()
        assert running.statistics().components["numbers"].acked == self.messages

    def _counting(self) -> type[KeyedBolt[int, int, int]]:
        progress = self

        class Count(KeyedBolt[int, int, int]):
            total = Value(int, 0)

            def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
                progress.executions += 1
                self.total += 1
                out.emit(tup.value)

        return Count

    def _struck(self, number: int) -> None:
        if self._random.random() < self._rate:
            self.failures += 1
            raise ValueError("by chance")


def _shelf_of(number: int) -> int:
    return number % 100


def main() -> None:
    """Go over the rates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=200_000)
    messages = parser.parse_args().messages
    logging.disable(logging.CRITICAL)
    for rate in RATES:
        found = Progress(messages, rate)
        print(
            f"{rate:g}: {found.executions_a_message:.2f} executions a message, {found.failures} failures, "
            f"{found.store.load().epoch} epochs",
            flush=True,
        )


if __name__ == "__main__":
    main()
