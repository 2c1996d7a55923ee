"""The components of a topology so far: their ids, their default streams, and the options that they are given."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from stormlet.errors import InvalidTopology
from stormlet.model.checks.components import check_at_least_one, check_id
from stormlet.model.components import DEFAULT_STREAM
from stormlet.model.configuration import Configuration, component_options, configure, read_options
from stormlet.model.description import BoltSpec, SpoutSpec
from stormlet.model.streams import Output, Stream, StreamId
from stormlet.report.failures import log_fields

logger = logging.getLogger(__package__)


class Builder:
    """The part that spouts and bolts have in common."""

    def __init__(self, name: str, configuration: Configuration) -> None:
        self.name = name
        self._configuration = configuration
        self._spouts: dict[str, SpoutSpec] = {}
        self._bolts: dict[str, BoltSpec] = {}

    @property
    def configuration(self) -> Configuration:
        """The configuration of the topology."""
        return self._configuration

    def _check_new(self, where: str, id: str, parallelism: int) -> None:
        check_id(where, id)
        if id in self._spouts or id in self._bolts:
            raise InvalidTopology(
                f"{where}: topology {self.name!r} has a component of this id already; choose another one"
            )
        check_at_least_one(where, "parallelism", parallelism)

    def _default_stream(self, id: str, streams: Mapping[str, Output]) -> Stream[Any]:
        name = DEFAULT_STREAM if DEFAULT_STREAM in streams else next(iter(streams))
        return Stream(StreamId(id, name), streams[name], streams, self)

    def _options(self, kind: Any, id: str, where: str, given: Mapping[str, object]) -> Mapping[str, object]:
        options = component_options(kind, given, where, keywords=("parallelism", "outputs"))
        warn_of_ignored(where, options.ignored, log_fields(self.name, id))
        return options.values


def configured(
    base: Configuration, options: Mapping[str, object], where: str, topology: str
) -> Configuration:
    """Return a configuration with options laid over; log those of Storm's that have no effect."""
    warn_of_ignored(where, read_options(options, where).ignored, log_fields(topology))
    return configure(base, options, where)


def warn_of_ignored(where: str, ignored: Mapping[str, str], extra: Mapping[str, object]) -> None:
    """Log each of Storm's names that has no effect here, with the reason."""
    for name, reason in ignored.items():
        logger.warning("%s: %s has no effect: %s", where, name, reason, extra=extra)


def listed(components: Mapping[str, object]) -> str:
    """Return the ids of components for a message."""
    return ", ".join(map(repr, components)) or "none"
