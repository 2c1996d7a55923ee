"""Settings from several places, one laid over the other, and where each value came from.

A layer is what one place says: a file, the environment, the command line. Later layers win. What no layer
says is the topology's own, and what that does not say is the default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from stormlet.model.configuration import Setting, read_options


class Layer(msgspec.Struct, frozen=True):
    """What one place says, under our names or Storm's."""

    origin: str
    """The place, as its messages name it: ``settings.toml``, ``--set``."""
    options: Mapping[str, object]


class Layered(msgspec.Struct, frozen=True):
    """What all layers say together."""

    values: Mapping[str, Setting]
    """By option, under our names: the value of the last layer that has one."""
    origins: Mapping[str, str]
    """By option: the layer that the value is of."""
    ignored: Mapping[str, tuple[str, str]]
    """By Storm's name as given: the layer, and why the name has no effect here."""


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
