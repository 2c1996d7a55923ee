"""The wrapper of an outlet, for hooks that hear of what is emitted."""

from __future__ import annotations

from collections.abc import Sequence

from stormlet.model.hooks import EmitInfo
from stormlet.runtime.hooks.calls import TaskHooks
from stormlet.runtime.wire.outlets import Outlet, WrappedOutlet


class HookedOutlet(WrappedOutlet):
    """An outlet of whose values hooks hear."""

    __slots__ = ("_hooks",)

    def __init__(self, hooks: TaskHooks, inner: Outlet) -> None:
        super().__init__(inner)
        self._hooks = hooks

    def after(self, value: object, roots: Sequence[int]) -> None:
        self._hooks.call("emit", EmitInfo(value, self.source.stream, self.source.task, self.reached))

    def wrapping(self, inner: Outlet) -> Outlet:
        return HookedOutlet(self._hooks, inner)
