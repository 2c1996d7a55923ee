"""State files that tests look into, and the topology that they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from stormlet.core.state.commits import Append, Commit, Rows, Shape, StateId
from stormlet.state.stores import owned
from tests.cli.flows import write

TOTAL = StateId("count", "total")
FILE = Path("counts.state")
SHAPES = {TOTAL: Shape("value", "str", "int")}
BEGUN = 1_700_000_000.0
"""The time of epoch 0; each epoch takes a second."""

FLOW = """
from stormlet import KeyedBolt, Value
class Count(KeyedBolt[str, str, None]):
    total = Value(int, 0)
    def execute(self, tup, out):
        self.total += 1
topology = Topology("count", state="counts.state")
topology.bolt("count", Count, topology.spout("words", list("abcab")).fields())
"""


def flow(text: str = FLOW) -> None:
    """Write ``flow.py``: it counts letters."""
    write(text)


def blob(entries: Mapping[Any, Any]) -> bytes:
    return msgspec.msgpack.encode(dict(entries))


def keep(
    *epochs: Mapping[Any, Any], path: Path = FILE, state: StateId = TOTAL, shape: Shape = SHAPES[TOTAL]
) -> None:
    """Commit what each epoch changes; after it the source ``words`` has given as many values as there were epochs."""
    with closing(owned(path, "count")) as file:
        file.declare({state: shape})
        last = file.load().epoch
        for epoch, changes in enumerate(epochs, last + 1):
            position = {"words[0] of 1": msgspec.msgpack.encode([epoch, None])}
            file.commit(Commit(epoch, BEGUN + epoch, position, [Append(state, blob(changes))]))


def leave_undelivered(path: Path = FILE) -> None:
    """One more epoch, with rows and a dead letter that nobody has had."""
    with closing(owned(path, "count")) as file:
        epoch = file.load().epoch + 1
        file.commit(Commit(epoch, BEGUN + epoch, {}, outbox=[Rows("mail", epoch, b"\x90")], letters=[b"{}"]))
