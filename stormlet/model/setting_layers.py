"""Settings from several places, laid over each other, with the origin of each value.

A layer holds the settings of one place: a file, the environment, the command line. Later layers win. Options that are
in no layer have the topology's own value, or else the default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from stormlet.model.configuration import Setting, read_options


class Layer(msgspec.Struct, frozen=True):
    """The settings of one place, under our names or Storm's."""

    origin: str
    """Name of the place in messages: ``settings.toml``, ``--set``."""
    options: Mapping[str, object]


class Layered(msgspec.Struct, frozen=True):
    """The settings of all layers together."""

    values: Mapping[str, Setting]
    """By option, under our names: the value of the last layer that has one."""
    origins: Mapping[str, str]
    """By option: the origin of its value."""
    ignored: Mapping[str, tuple[str, str]]
    """By Storm's name as given: the origin, and the reason why the name has no effect here."""


def lay(layers: Iterable[Layer]) -> Layered:
    """Check each layer by itself and lay it over those before it.

    Raises :class:`~stormlet.errors.InvalidConfiguration` naming the layer.
    """
    values: dict[str, Setting] = {}
    origins: dict[str, str] = {}
    ignored: dict[str, tuple[str, str]] = {}
    for layer in layers:
        options = read_options(layer.options, layer.origin, none="none")
        values.update(options.values)
        origins.update(dict.fromkeys(options.values, layer.origin))
        ignored.update({name: (layer.origin, reason) for name, reason in options.ignored.items()})
    return Layered(values, origins, ignored)
