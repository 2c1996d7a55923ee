"""Wrong arguments of the functions that run topologies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stormlet import Topology
from stormlet.errors import InvalidConfiguration
from stormlet.testing import complete, simulate, soak


def words() -> Topology:
    topology = Topology("words")
    topology.bolt("see", str.upper, topology.spout("lines", ["a"]).shuffle())
    return topology


@pytest.mark.parametrize("call", [complete, simulate, soak])
def test_what_is_no_topology_is_refused(call: Callable[..., object]) -> None:
    """By name."""
    with pytest.raises(InvalidConfiguration, match=rf"^{call.__name__}: 'words' is no Topology$"):
        call("words")


@pytest.mark.parametrize("call", [complete, soak])
def test_a_function_that_makes_a_topology_is_none(call: Callable[..., object]) -> None:
    """For ``simulate`` it is, as that runs many."""
    with pytest.raises(InvalidConfiguration, match=r"is no Topology; call it, and pass what it returns$"):
        call(words)
    assert simulate(words, seeds=range(1)).counts["acked"] == 1


def test_a_function_that_makes_something_else_is_refused() -> None:
    """When it has."""
    with pytest.raises(InvalidConfiguration, match=r"^simulate: None is no Topology$"):
        simulate(lambda: None, seeds=range(1))  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("call", [complete, simulate, soak])
def test_sources_have_names(call: Callable[..., object]) -> None:
    """There may be many spouts."""
    with pytest.raises(InvalidConfiguration, match=r": sources are a dict from spouts .*, not \['a'\]$"):
        call(words(), sources=["a"])


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ({"faults": 5}, "faults are Faults.* not 5"),
        ({"faults": ["kill"]}, r"faults are Faults.* not \['kill'\]"),
        ({"on_seed": 5}, "on_seed is a function of a result, not 5"),
    ],
)
def test_options_of_a_simulation(option: Any, says: str) -> None:
    """Before any seed runs."""
    with pytest.raises(InvalidConfiguration, match=f"^simulate: {says}$"):
        simulate(words(), seeds=range(1), **option)


@pytest.mark.parametrize("option", ["minutes", "burst", "every"])
@pytest.mark.parametrize("given", [-1, 0, float("nan")])
def test_a_soak_takes_time(option: str, given: Any) -> None:
    """Without any it would find that all is well."""
    with pytest.raises(
        InvalidConfiguration, match=rf"^soak: {option} must be a finite number above 0, not {given}$"
    ):
        soak(words(), **{option: given})


@pytest.mark.parametrize("call", [simulate, soak])
@pytest.mark.simulated_time
async def test_they_have_loops_of_their_own(call: Callable[..., object]) -> None:
    """Which cannot run in another one."""
    with pytest.raises(RuntimeError, match="starts an event loop of its own; call it from a plain function"):
        call(words())
