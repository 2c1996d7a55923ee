"""The values that a topology has emitted, and which of them were changed afterwards (law B10)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from stormlet.core.shortened import shortened
from stormlet.model.plan import TaskPlan
from stormlet.testing.images import can_change, image

MOST: Final = 10_000
"""Values that are looked after in one run; the first ones, as they are kept until its end."""


@dataclass(frozen=True, slots=True)
class _Emitted:
    task: TaskPlan
    stream: str
    value: object
    image: object
    text: str


class EmittedValues:
    """Notes each value that can be changed, as it was when it was emitted."""

    def __init__(self) -> None:
        self._noted: list[_Emitted] = []

    def note(self, task: TaskPlan, stream: str, value: object) -> None:
        """This task emits this value now."""
        if len(self._noted) < MOST and can_change(value):
            self._noted.append(_Emitted(task, stream, value, image(value), shortened(value)))

    def changes(self) -> Iterator[str]:
        """A line for each value that is not what it was."""
        for each in self._noted:
            if image(each.value) != each.image:
                yield (
                    f"{each.task.component!r} (task {each.task.task}) emitted {each.text} on stream "
                    f"{each.stream!r}, and it was changed afterwards to {shortened(each.value)}; emit a copy (law B10)"
                )
