"""What a completed topology has done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar, overload

from stormlet.core.outcomes import DeadLetter
from stormlet.model.components import DEFAULT_STREAM
from stormlet.model.description import Description, Stream
from stormlet.report.statistics import Statistics
from stormlet.testing.recorded_run import Emission, Outcome

T = TypeVar("T")


class Completed:
    """The result of :func:`~stormlet.testing.complete`."""

    def __init__(
        self,
        description: Description,
        emissions: Sequence[Emission],
        outcomes: Sequence[Outcome],
        dead_letters: Sequence[DeadLetter],
        statistics: Statistics,
        seconds: float,
    ) -> None:
        self._streams = [
            (id, stream) for id, spec in description.components.items() for stream in spec.outputs
        ]
        self.emissions = emissions
        """Every emission of every component, in the order in which they happened."""
        self.outcomes = outcomes
        """What became of each message, in the order in which they were emitted."""
        self.dead_letters = dead_letters
        """All messages that were given up."""
        self.statistics = statistics
        """The counts at the end."""
        self.seconds = seconds
        """How long it took, on simulated time where it ran on that."""

    @overload
    def emitted(self, stream: Stream[T]) -> list[T]: ...
    @overload
    def emitted(self, stream: str, name: str = DEFAULT_STREAM) -> list[Any]: ...
    def emitted(self, stream: Stream[Any] | str, name: str = DEFAULT_STREAM) -> list[Any]:
        """The values that were emitted on a stream, in their order, those of replays included: a stream as
        ``topology.bolt(...)`` returns it, or the component's id and the stream's name.

        Raises :class:`KeyError` naming the streams there are.
        """
        wanted = (stream.component, stream.name) if isinstance(stream, Stream) else (stream, name)
        if wanted not in self._streams:
            streams = ", ".join(f"{name!r} of {component!r}" for component, name in self._streams)
            raise KeyError(f"no stream {wanted[1]!r} of {wanted[0]!r}; there are {streams}")
        return [each.value for each in self.emissions if (each.component, each.stream) == wanted]

    @overload
    def __getitem__(self, stream: Stream[T]) -> list[T]: ...
    @overload
    def __getitem__(self, stream: str) -> list[Any]: ...
    def __getitem__(self, stream: Stream[Any] | str) -> list[Any]:
        """As :meth:`emitted`, for a stream or for the default stream of a component."""
        return self.emitted(stream)

    @property
    def acked(self) -> list[Any]:
        """The values of the messages that were acked in the end."""
        return [each.value for each in self.outcomes if each.acked]

    @property
    def failed(self) -> list[Any]:
        """The values of the messages that were not."""
        return [each.value for each in self.outcomes if not each.acked]

    def outcome(self, value: object) -> Outcome:
        """What became of the message with this value; of the first one, if there are several.

        Raises :class:`KeyError` if there is none.
        """
        for each in self.outcomes:
            if each.value == value:
                return each
        raise KeyError(f"no message had the value {value!r}")

    def __repr__(self) -> str:
        counts = Counter(f"{each.component}/{each.stream}" for each in self.emissions)
        emitted = ", ".join(f"{stream}: {count}" for stream, count in counts.items())
        return f"<Completed emitted {{{emitted}}}, acked {len(self.acked)}, failed {len(self.failed)}>"
