"""The result of a run on Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stormlet.core.outcomes import DeadLetter
from stormlet.model.components import DEFAULT_STREAM
from stormlet.model.streams import Stream
from stormlet.report.failures import RepeatedFailure
from stormlet.report.statistics import Statistics
from stormlet.spark.engine.partition.keyed.carried import EndStates
from stormlet.spark.engine.passage.outputs import stream_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class BatchResult:
    """The result of a batch. Its DataFrames read what the run has kept, and so work as long as the result and the
    session do."""

    def __init__(
        self,
        statistics: Statistics,
        failures: Sequence[RepeatedFailure],
        dead_letters: Sequence[DeadLetter],
        streams: Mapping[str, Callable[[], DataFrame]],
        outcomes: Callable[[], DataFrame],
        letters: Callable[[], DataFrame],
        states: EndStates,
        kept: object,
    ) -> None:
        self.statistics = statistics
        """The counts of all components; those of tasks that Spark has repeated are in it once."""
        self.failures = failures
        """Every distinct failure of a bolt."""
        self.dead_letters = dead_letters
        """The messages that were given up, in the order of their spouts."""
        self._streams = streams
        self._outcomes = outcomes
        self._letters = letters
        self._states = states
        self._kept = kept

    @property
    def messages(self) -> int:
        """The number of messages of all spouts."""
        return sum(each.messages for each in self.statistics.components.values())

    @property
    def acked(self) -> int:
        """The number of messages that were acked."""
        return self.messages - len(self.dead_letters)

    @property
    def outcomes(self) -> DataFrame:
        """A row for each message. ``spout``, ``partition`` and ``row`` name it: of a DataFrame, they are those of its
        :class:`~stormlet.spark.Origin`; of what the driver reads, ``partition`` is null, and ``row`` the message's
        number in its source, from 0. ``status`` is ``acked`` or ``dead letter``, after so many ``attempts``.
        ``component`` and ``reason`` are those of the last failure of a dead letter, and null for the others. Spark
        makes the rows when they are used."""
        return self._outcomes()

    @property
    def dead_letter_frame(self) -> DataFrame:
        """A row for each of the :attr:`dead_letters`, in the columns of a line of a file of them. ``value``,
        ``message_id`` and ``origin`` are JSON."""
        return self._letters()

    def stream(self, stream: Stream[Any] | str, name: str = DEFAULT_STREAM) -> DataFrame:
        """Return what was emitted on a stream that ``streams=`` has named: a stream as ``topology.bolt(...)`` returns
        it, or the component's id and the stream's name. Raise :class:`KeyError` naming the streams there are."""
        component, of = (stream.component, stream.name) if isinstance(stream, Stream) else (stream, name)
        wanted = stream_name(component, of)
        if wanted not in self._streams:
            raise KeyError(
                f"no stream {wanted!r} is kept; there are {_listed(self._streams)}: add it to streams="
            )
        return self._streams[wanted]()

    def state(self, bolt: Stream[Any] | str, name: str | None = None) -> dict[Any, Any]:
        """Return the keyed state of a bolt at the end, by its keys: of the bolt whose stream or id this is, and under
        this name, which a bolt with a single state need not be given. It is read into this process. Raise
        :class:`KeyError` naming the states there are."""
        return self._states.values(bolt.component if isinstance(bolt, Stream) else bolt, name)

    def save_state(self, path: str | os.PathLike[str], *, merge: bool = False) -> None:
        """Write all keyed state into a state file, in the place of what it has, as one more epoch of it: a run in
        process goes on with that by ``state=``, another one on Spark by ``initial_state=``. With ``merge=True`` it is
        merged with what the file has, by the ``merge`` of each bolt (law K10), as where both have counted apart.

        Raises :class:`~stormlet.errors.StateUnusable`, naming the file, if it is not the topology's, or is in use, and
        :class:`~stormlet.errors.InvalidTopology` for a bolt without a ``merge``.
        """
        self._states.save(path, merge=merge)

    def __repr__(self) -> str:
        return f"<BatchResult: {self.acked:,} acked, {len(self.dead_letters):,} given up>"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "none"
