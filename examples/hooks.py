"""A hook that tells the input that each bolt took longest for."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from stormlet import BoltExecuteInfo, TaskContext, TaskHook, Topology


class Slowest(TaskHook):
    """Remembers the input that its task took longest for."""

    def prepare(self, context: TaskContext) -> None:
        """Begin with nothing."""
        self.component = context.component
        self.seconds, self.value = 0.0, None

    def bolt_execute(self, info: BoltExecuteInfo) -> None:
        """Compare."""
        if info.execute_latency > self.seconds:
            self.seconds, self.value = info.execute_latency, info.tup.value

    def cleanup(self) -> None:
        """Tell."""
        if self.seconds:
            print(f"{self.component} took longest for {self.value!r}: {self.seconds:.1f} s")


async def look_up(number: int) -> None:
    """Take longer for one number than for others."""
    await asyncio.sleep(0.3 if number == 7 else 0.01)


def numbers() -> Iterator[int]:
    """Some work."""
    yield from range(10)


topology = Topology("slowest")
topology.bolt("look_up", look_up, topology.spout("numbers", numbers).shuffle())


async def main() -> None:
    """Run with the hook."""
    async with topology.run(hooks=[Slowest]) as running:
        await running.finished()


if __name__ == "__main__":
    asyncio.run(main())
