"""Connectors in packages of their own, and the twins that they register."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from stormlet import DeadLetter, Topology
from stormlet.connect.address import Address
from stormlet.connect.session import (
    Capabilities,
    Item,
    Session,
    SinkContext,
    SinkSession,
    SourceContext,
    Written,
)
from stormlet.connect.sink import Sink
from stormlet.connect.source import Source
from stormlet.testing import Simulation
from stormlet.testing.brokers import twin


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with entry points, as pip leaves it."""
    metadata = tmp_path / "mybroker-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: mybroker\nVersion: 1.0\n")
    points = "mybroker = mybroker_twin:PROFILE\nbroken = mybroker_twin:Capabilities\n"
    (metadata / "entry_points.txt").write_text(f"[stormlet.connectors]\n{points}")
    (tmp_path / "mybroker_twin.py").write_text(
        "from stormlet.connect.session import Capabilities\n"
        "from stormlet.testing.brokers import Profile\n"
        "PROFILE = Profile(name='mybroker-2', schemes=('mybroker',), capabilities=Capabilities(lease=7.0))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


class MyQueue(Source[bytes]):
    """What such a package has."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(lease=7.0)

    @property
    def reads(self) -> tuple[str, ...]:
        return ("orders",)

    async def begin(self, address: Address, context: SourceContext) -> Session:
        raise AssertionError("there is no such broker")


class MySink(Sink[str]):
    """A sink at a broker that says too much; it is its own session."""

    @property
    def writes(self) -> str:
        return "orders"

    async def begin(self, address: Address, context: SinkContext) -> SinkSession:
        return self

    async def write(self, items: Sequence[Item]) -> Sequence[Written]:
        return [Written("not with hunter2", permanent=True)] * len(items)

    async def close(self) -> None:
        """Nothing to do."""


@pytest.mark.simulated_time
async def test_a_reason_has_no_secret(sim: Simulation, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever a broker says of a value (law R9)."""
    letters = list[DeadLetter]()
    topology = Topology("third")
    topology.bolt("tell", MySink("mybroker://ann:hunter2@host"), topology.spout("orders", ["1"]).shuffle())
    async with topology.run(dead_letters=letters.append):
        await sim.advance(seconds=1)
    assert [letter.failure.reason for letter in letters] == ["not with ***"]
    assert "hunter2" not in caplog.text


@pytest.mark.usefixtures("_installed")
@pytest.mark.simulated_time
async def test_a_twin_stands_for_its_broker(sim: Simulation) -> None:
    """By the scheme; its users name no profile."""
    done = list[Any]()
    topology = Topology("third")
    orders = topology.spout("orders", MyQueue("mybroker://host", as_=bytes))
    topology.bolt("work", done.append, orders.shuffle())
    with twin("mybroker://host") as broker:
        assert broker.profile.name == "mybroker-2"
        broker.queue("orders").publish(b"1")
        async with topology.run():
            await sim.advance(seconds=1)
        assert (done, broker.queue("orders").left) == ([b"1"], [])


@pytest.mark.usefixtures("_installed")
def test_what_is_not_there_is_said() -> None:
    """With the schemes that are."""
    with pytest.raises(KeyError, match=r"no profile has the scheme 'other'; there are .*kafka, .*mybroker, "):
        twin("other://host").__enter__()
    with pytest.raises(TypeError, match="leads to mybroker_twin:Capabilities, which is no Profile"):
        twin("broken://host").__enter__()
