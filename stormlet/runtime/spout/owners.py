"""The spout task, as those see it who keep its messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from stormlet.model.plan import TaskPlan
from stormlet.runtime.context import Engine
from stormlet.runtime.wire.outbox import Outbox
from stormlet.runtime.wire.outlets import Outlet


class Owner(Protocol):
    """A spout task."""

    plan: TaskPlan
    doing: str
    engine: Engine
    outbox: Outbox
    outlets: dict[str, Outlet]
    stopping: bool

    def crashed(self, error: BaseException) -> None:
        """Crash the topology, as user code raised where no tuple answers for it."""
        ...

    def blame(self, error: BaseException) -> None:
        """Note that user code raised this."""
        ...

    def guarded(self, step: Callable[..., object], *arguments: object) -> None:
        """Take a step of the engine where nobody hears what it raises."""
        ...

    def attend_soon(self) -> None:
        """Have its tracker's ``attend`` called soon."""
        ...

    def released(self) -> None:
        """A message was settled for good: there is room for another one."""
        ...
