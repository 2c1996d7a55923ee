"""What one bolt has made of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from stormlet.core.outcomes import Failure
from stormlet.model.components import DEFAULT_STREAM
from stormlet.testing.recorded_run import Emission

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True, slots=True)
class InputResult(Generic[T]):
    """What the bolt has done with one input. Neither acked nor failed: it still held it at the end."""

    value: T
    acked: bool
    failure: Failure | None
    """Why it failed; None if it did not."""
    emissions: Sequence[Emission]
    """What is anchored to it."""

    @property
    def held(self) -> bool:
        """Whether it was neither acked nor failed."""
        return not self.acked and self.failure is None

    @property
    def emitted(self) -> list[Any]:
        """The values that are anchored to it, whatever their stream."""
        return [each.value for each in self.emissions]


class BoltResult(Generic[T, U]):
    """The result of :func:`~stormlet.testing.run_bolt`."""

    def __init__(self, inputs: Sequence[InputResult[T]], emissions: Sequence[Emission]) -> None:
        self.inputs = inputs
        """One for each input, in the order given."""
        self.emissions = emissions
        """Everything that the bolt has emitted, in its order."""

    @overload
    def emitted(self) -> list[U]: ...
    @overload
    def emitted(self, stream: str) -> list[Any]: ...
    def emitted(self, stream: str = DEFAULT_STREAM) -> list[Any]:
        """The values that it has emitted on a stream, in their order."""
        return [each.value for each in self.emissions if each.stream == stream]

    @property
    def unanchored(self) -> list[Any]:
        """The values that it has emitted without anchors, whatever their stream."""
        return [each.value for each in self.emissions if not each.roots]

    @property
    def acked(self) -> list[T]:
        """The inputs that it has acked."""
        return [each.value for each in self.inputs if each.acked]

    @property
    def failed(self) -> list[T]:
        """The inputs that it has failed, by ``out.fail`` or by an exception."""
        return [each.value for each in self.inputs if each.failure is not None]

    @property
    def held(self) -> list[T]:
        """The inputs that it still held at the end."""
        return [each.value for each in self.inputs if each.held]

    def __repr__(self) -> str:
        counts = f"emitted {len(self.emissions)}, acked {len(self.acked)}"
        return f"<BoltResult {counts}, failed {len(self.failed)}, held {len(self.held)}>"
