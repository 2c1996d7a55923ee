"""A topology as it would run, with the settings of one command line, but not running."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from stormlet.cli.parameters import TargetOptions
from stormlet.core.shortened import printable
from stormlet.model.configuration import Configuration, configure
from stormlet.model.description import Description
from stormlet.model.planning import Plan, plan
from stormlet.model.setting_layers import Layered
from stormlet.topology import StateTarget, Topology


class Inspection(msgspec.Struct, frozen=True):
    """A topology, for the commands that run nothing."""

    settings: Layered
    """The settings of file, environment and command line."""
    declared: Description
    """As the topology has it, without these."""
    description: Description
    """With the configuration of both."""
    components: Mapping[str, Configuration]
    """By component, with its own options laid over."""
    plan: Plan
    place: str | None = None
    """The place of its state; None where it is lost with the process (law K9)."""

    @property
    def state_words(self) -> str:
        """The fate of its state, in one line; empty for a topology without."""
        keepers = [bolt.id for bolt in self.description.bolts.values() if bolt.keyed]
        if self.place is not None:
            return f"state and positions of sources are kept in {printable(self.place)}"
        if keepers:
            names = ", ".join(printable(each) for each in keepers)
            return f"the state of {names} is lost with the process; keep it by state= or run --state FILE"
        return ""

    @property
    def counts(self) -> str:
        """The numbers of spouts, bolts, tasks and ackers."""
        from stormlet.drawing.drawing import counts_of

        return counts_of(self.plan)

    @property
    def headline(self) -> str:
        """The topology in one line."""
        return f"{printable(self.description.name)}: {self.counts}"


def inspect_target(target: str, options: TargetOptions, *, state_survives: bool = False) -> Inspection:
    """Load a topology and lay the settings over its own configuration. No component is made. ``state_survives`` is true
    for an engine on which the state of bolts outlives the process.

    Raises :class:`~stormlet.errors.TargetError`, :class:`~stormlet.errors.InvalidTopology` and
    :class:`~stormlet.errors.InvalidConfiguration`, as ``run`` would.
    """
    layered = options.layered()  # before anything is loaded
    return inspect_topology(options.topology(target), layered, state_survives=state_survives)


def inspect_topology(topology: Topology, settings: Layered, *, state_survives: bool = False) -> Inspection:
    """Lay the settings over a topology's own configuration; raises
    :class:`~stormlet.errors.InvalidConfiguration` where they do not go together."""
    where = f"topology {topology.name!r}"
    configuration = configure(topology.configuration, settings.values, where)
    declared = topology.describe()
    description, components = declared.configured(configuration, where, settings.values)
    state_survives = state_survives or topology.state is not None
    planned = plan(description, components, state_survives=state_survives)
    place = None if topology.state is None else _place(topology.state)
    return Inspection(settings, declared, description, components, planned, place)


def _place(state: StateTarget) -> str:
    return os.fspath(state) if isinstance(state, str | os.PathLike) else f"a {type(state).__name__}"
