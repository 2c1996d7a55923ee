"""Dead letters that can be emitted again on the streams of a topology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stormlet.core.schema import Record
from stormlet.errors import StormletError
from stormlet.model.configuration import configure
from stormlet.model.streams import Stream, StreamId
from stormlet.report.letter_records import LetterRecord, NoLetter
from stormlet.report.rebuilding import CannotRebuild
from stormlet.runtime.dead_letters import Line
from stormlet.topology import Topology


@dataclass(frozen=True, slots=True)
class Message:
    """A letter that can be emitted."""

    record: LetterRecord
    stream: Stream[Any]
    value: object
    origin: object
    attempts: int
    """As many as a message of its spout gets."""


class NotReplayable(StormletError):
    """A line cannot be emitted; the message says why."""


class Replayable:
    """Makes messages of lines."""

    def __init__(self, topology: Topology, settings: Mapping[str, object]) -> None:
        where = f"run of topology {topology.name!r}"
        self._configuration = configure(topology.configuration, settings, where)
        self._spouts = topology.describe().spouts
        self._topology = topology
        self._attempts = {
            id: configure(self._configuration, spec.options, where).max_attempts
            for id, spec in self._spouts.items()
        }
        self._records = dict(self._records_of_streams())

    @property
    def tracked(self) -> bool:
        """True if the outcome of a message will be known (law L9)."""
        return self._configuration.ackers > 0

    def message(self, line: Line) -> Message:
        """Raises :class:`NotReplayable`."""
        try:
            record = line.record()
            stream = self._stream(record)
            value, origin = record.rebuilt_value(self._records), record.rebuilt_origin(self._records)
        except (NoLetter, CannotRebuild) as error:
            raise NotReplayable(str(error)) from error
        schema = stream.output.schema
        if schema.enforced and (misfit := schema.misfit(value)) is not None:
            raise NotReplayable(f"its value does not fit {stream.id}: {misfit}")
        return Message(record, stream, value, origin, self._attempts[record.component])

    def _stream(self, record: LetterRecord) -> Stream[Any]:
        spec = self._spouts.get(record.component)
        if spec is None:
            known = ", ".join(map(repr, self._spouts))
            raise NotReplayable(f"the topology has no spout {record.component!r}, only {known}")
        if record.stream not in spec.outputs:
            known = ", ".join(map(repr, spec.outputs))
            raise NotReplayable(f"spout {spec.id!r} has no stream {record.stream!r}, only {known}")
        id, output = StreamId(spec.id, record.stream), spec.outputs[record.stream]
        if output.direct:
            raise NotReplayable(f"{id} is direct, and a letter does not say to which task it went")
        return Stream(id, output, spec.outputs, self._topology)

    def _records_of_streams(self) -> Mapping[str, type]:
        schemas = [output.schema for spec in self._spouts.values() for output in spec.outputs.values()]
        return {each.record.__qualname__: each.record for each in schemas if isinstance(each, Record)}
