"""Options, and where each value comes from. No option is a secret: those of connections are kept apart."""

from __future__ import annotations

import msgspec

from stormlet.model.configuration import OPTIONS, Configuration, Setting
from stormlet.ui.watched import Watched

DEFAULTS = Configuration()


class OptionRow(msgspec.Struct, frozen=True):
    """One option of the topology or of a component."""

    component: str
    """Empty for the topology."""
    option: str
    value: Setting
    origin: str


def settings_of(watched: Watched) -> list[OptionRow]:
    """Return all options of the topology, and those of components that differ from them."""
    description = watched.running.plan.description
    rows = [
        OptionRow("", option, getattr(description.configuration, option), _origin(watched, option))
        for option in OPTIONS
    ]
    for id, configuration in watched.running.configurations.items():
        own = description.components[id].options
        rows += [OptionRow(id, option, getattr(configuration, option), f"of {id!r} itself") for option in own]
    return rows


def _origin(watched: Watched, option: str) -> str:
    """Return the place that has set it last."""
    description = watched.running.plan.description
    value = getattr(description.configuration, option)
    if option in watched.origins:
        return watched.origins[option]
    if option in description.options and description.options[option] == value:
        return "the topology"
    return "default" if value == getattr(DEFAULTS, option) else "topology.run(), or a source of it"
