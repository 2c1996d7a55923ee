"""The price of the driver: what it adds to a message, beside an acked generator spout, in microseconds of the CPU.

``python -m tests.connect.price``. The broker is a list, so that all that is measured is the driver: reading, decoding,
receipts or positions, emitting, settling. The time is that of the thread, so that other work on the machine does not
count; ``held`` is the longest time that the loop was busy between two looks at it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar

from stormlet import Topology
from stormlet.connect.address import Address
from stormlet.connect.session import Capabilities, Delivery, Settlement, Settles, SourceContext
from stormlet.connect.source import Source
from stormlet.errors import EndOfStream

KINDS: Mapping[str, Capabilities] = {
    "each": Capabilities(is_finite=True),
    "lease": Capabilities(is_finite=True, lease=60.0, receipts_survive=True),
    "prefix": Capabilities(is_finite=True, settles=Settles.PREFIX),
}
BODY = b"x" * 100


class Listed(Source[bytes]):
    """A source of a list."""

    reads: ClassVar[tuple[str, ...]] = ("list",)  # type: ignore[assignment]

    def __init__(self, kind: str, count: int, **options: Any) -> None:
        super().__init__("list://here", as_=bytes, **options)
        self._kind = kind
        self._count = count

    @property
    def capabilities(self) -> Capabilities:
        return KINDS[self._kind]

    async def begin(self, address: Address, context: SourceContext) -> ListSession:
        return ListSession(self._kind, self._count, context)


class ListSession:
    """Gives what is asked for, at once."""

    def __init__(self, kind: str, count: int, context: SourceContext) -> None:
        self._numbers = iter(range(count))
        self._place = context.assigned("list") if kind == "prefix" else None
        self._has_names = kind != "each"

    async def receive(self, most: int, within: float) -> Sequence[Delivery]:
        numbers = list(islice(self._numbers, min(most, 500)))
        if not numbers:
            raise EndOfStream
        place, named = self._place, self._has_names
        return [
            Delivery(
                body=BODY, receipt=each, name=f"list@{each}" if named else "", place=place, position=each
            )
            for each in numbers
        ]

    def interrupt(self) -> None: ...

    async def settle(self, settlement: Settlement) -> int:
        return 0

    async def renew(self, receipts: Sequence[Any]) -> Sequence[Any]:
        return ()

    async def pause(self, places: Collection[Any]) -> None: ...

    async def resume(self, places: Collection[Any]) -> None: ...

    async def lag(self) -> Mapping[str, int]:
        return {}

    async def close(self) -> None: ...


def ignore(body: bytes) -> None:
    """The bolt."""


def generated(count: int) -> Callable[[], Iterator[bytes]]:
    """As many messages, of a generator."""

    def numbers() -> Iterator[bytes]:
        for _ in range(count):
            yield BODY

    return numbers


async def watched(held: list[float]) -> None:
    """Note how long the loop's thread has worked between two looks."""
    before = time.thread_time()
    while True:
        await asyncio.sleep(0)
        now = time.thread_time()
        held.append(now - before)
        before = now


def measured(source: object, count: int, *, watch: bool = False) -> tuple[float, float]:
    """Microseconds of a message, and milliseconds for which the loop was held at most."""
    held = [0.0]

    async def run() -> float:
        topology: Any = Topology("price", max_spout_pending=1000)
        topology.bolt("ignore", ignore, topology.spout("numbers", source, outputs=bytes).shuffle())
        gc.collect()
        async with topology.run() as running:
            watching = asyncio.create_task(watched(held)) if watch else None
            began = time.thread_time()
            await running.finished()
            took = time.thread_time() - began
            if watching is not None:
                watching.cancel()
            assert running.statistics().components["numbers"].acked == count
        return took

    return asyncio.run(run()) / count * 1e6, max(held) * 1e3


def main() -> None:
    """Print the table: the best of several rounds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--messages", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    count = given.messages
    makes: dict[str, Callable[[], object]] = {"generator": lambda: generated(count)}
    makes |= {kind: lambda kind=kind: Listed(kind, count) for kind in KINDS}
    best = {
        name: min(measured(make(), count)[0] for _ in range(given.rounds)) for name, make in makes.items()
    }
    held = {name: measured(make(), count, watch=True)[1] for name, make in makes.items()}
    for name, each in best.items():
        adds = each - best["generator"]
        print(
            f"{name:10} {each:6.2f} us a message, adds {adds / best['generator']:4.1f} x, held {held[name]:.1f} ms"
        )


if __name__ == "__main__":
    main()
