"""The table of Storm's configuration names."""

from __future__ import annotations

from math import inf

import pytest

from stormlet.model.configuration import OPTIONS
from stormlet.model.storm_names import MAPPED, NAMES, REFUSED, TIMEOUT_SWITCH, why_ignored


def test_every_name_stands_in_one_place() -> None:
    """No key is listed twice, and none is both mapped or refused and ignored."""
    assert len(set(NAMES)) == len(NAMES)
    assert [name for name in (*MAPPED, *REFUSED, TIMEOUT_SWITCH) if why_ignored(name)] == []


def test_every_name_is_a_topologys() -> None:
    """The table holds keys, not remains of how it is written down."""
    assert [name for name in NAMES if not name.startswith("topology.") or name.endswith(".")] == []


def test_mapped_names_lead_to_options() -> None:
    """Every mapped key leads to an option that exists, and no two to the same."""
    targets = [mapped.option for mapped in MAPPED.values()]
    assert set(targets) <= set(OPTIONS)
    assert len(set(targets)) == len(targets)


@pytest.mark.parametrize("name", ["topology.workers", "topology.kryo.register", "topology.debug"])
def test_ignored_names_have_a_reason(name: str) -> None:
    """What has no effect says why."""
    reason = why_ignored(name)
    assert reason is not None
    assert len(reason.split()) >= 3


@pytest.mark.parametrize(
    "name", ["nimbus.seeds", "storm.zookeeper.servers", "supervisor.slots.ports", "ui.port"]
)
def test_daemons_names_are_known_by_their_beginning(name: str) -> None:
    """Keys of Storm's daemons are ignored as a family."""
    assert why_ignored(name) == "it configures Storm's daemons, and there are none"


@pytest.mark.parametrize("name", ["topology", "topology.nonsense", "nimbus", "message_timeout", ""])
def test_other_names_are_unknown(name: str) -> None:
    """The table claims nothing that is not Storm's."""
    assert name not in NAMES
    assert why_ignored(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "topology.tasks",
        "topology.transactional.id",
        "topology.state.provider",
        "topology.environment",
        "topology.auto.task.hooks",
        "topology.bolts.window.length.count",
        "topology.bolts.late.tuple.stream",
    ],
)
def test_what_would_change_results_is_refused(name: str) -> None:
    """Keys whose loss would change what comes out are not merely ignored."""
    assert REFUSED[name]


def test_a_time_that_no_float_can_hold_is_endless() -> None:
    """The check of the option refuses it by name then."""
    assert MAPPED["topology.sleep.spout.wait.strategy.time.ms"].convert(10**400) == inf
