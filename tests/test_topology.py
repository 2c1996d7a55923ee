"""What the builder refuses at once, and ``connect``: more inputs for a bolt that exists."""

from __future__ import annotations

from typing import Any, cast

import pytest

from stormlet import InvalidConfiguration, InvalidTopology, Spout, Stream, Topology
from tests.cast import ignore
from tests.helpers import run_to_end


def built(name: str = "one") -> tuple[Topology, Stream[int], Stream[None]]:
    topology = Topology(name)
    numbers = topology.spout("numbers", [1])
    return topology, numbers, topology.bolt("bolt", ignore, numbers.shuffle())


def test_a_bolt_keeps_the_inputs_that_it_had() -> None:
    """What it is connected to comes on top."""
    topology, numbers, bolt = built()
    topology.connect(bolt, numbers.fields(), bolt.shuffle())
    inputs = topology.describe().bolts["bolt"].inputs
    assert [each.grouping.name for each in inputs] == ["shuffle", "fields", "shuffle"]


def test_only_a_bolt_of_the_topology_is_connected() -> None:
    """A spout has no inputs, and the bolt of another topology none from here."""
    topology, numbers, bolt = built()
    for wrong in (numbers, built("another")[2]):
        with pytest.raises(InvalidTopology, match=r"belongs to no bolt of topology 'one'; bolts: 'bolt'"):
            topology.connect(wrong, numbers.shuffle())
    with pytest.raises(InvalidTopology, match="connect needs a bolt's stream"):
        topology.connect(cast("Any", "bolt"), numbers.shuffle())
    with pytest.raises(InvalidTopology, match="name the inputs"):
        topology.connect(bolt)


def test_a_bolt_without_inputs_is_refused_when_it_is_added() -> None:
    """Not when the topology runs, far from the line that is wrong."""
    with pytest.raises(InvalidTopology, match="bolt 'bolt' has no input"):
        cast("Any", Topology("one")).bolt("bolt", ignore)


@pytest.mark.simulated_time
async def test_a_factory_makes_bolts_or_spouts() -> None:
    """What it has made instead is shown, with the way out."""
    for source, logic, said in (
        ([1], lambda: 7, "bolt 'bolt': the factory made 7, which is no Bolt, BasicBolt or BatchBolt"),
        (lambda: 7, ignore, "spout 'numbers': the factory made 7, which is no Spout"),
    ):
        topology = Topology("one")
        topology.bolt("bolt", cast("Any", logic), topology.spout("numbers", cast("Any", source)).shuffle())
        with pytest.raises(InvalidTopology, match=said):
            await run_to_end(topology)


class Unfinished(Spout[int]):
    """Lacks what every spout has."""


def test_the_code_of_a_spout_is_checked_when_it_is_added() -> None:
    """Not when the topology runs."""
    with pytest.raises(InvalidTopology, match="spout 'numbers': Unfinished defines no next_tuple"):
        Topology("one").spout("numbers", Unfinished)


@pytest.mark.parametrize("option", ["on_error", "executor"])
def test_an_option_of_a_bolt_is_one_of_its_choices(option: str) -> None:
    """A misspelt one would be taken for the default."""
    topology, numbers, _ = built()
    with pytest.raises(InvalidConfiguration, match=f"bolt 'other': {option} must be one of .*, not 'ignore'"):
        cast("Any", topology).bolt("other", ignore, numbers.shuffle(), **{option: "ignore"})
