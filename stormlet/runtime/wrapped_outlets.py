"""Outlets that do something more about each value before another one delivers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stormlet.core.tuples import Lineage
from stormlet.errors import InvalidEmit
from stormlet.runtime.outlets import Anchors, Outlet


class WrappedOutlet(Outlet):
    """An outlet that does something more about each value."""

    __slots__ = ("inner",)

    def __init__(self, inner: Outlet) -> None:
        super().__init__(inner.source)
        self.inner = inner

    @property
    def emitted(self) -> int:
        return self.inner.emitted

    @property
    def transferred(self) -> int:
        return self.inner.transferred

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        self.before(value)
        edges = self.inner.deliver(value, root, lineage)
        self._delivered(value, (root,))
        return edges

    def deliver_joined(self, value: object, anchors: Anchors, lineage: Lineage) -> None:
        self.before(value)
        self.inner.deliver_joined(value, anchors, lineage)
        self._delivered(value, [root for anchor in anchors for root in anchor.roots])

    def at(self, task: int) -> Outlet:
        return self.wrapping(self.inner.at(task))

    def before(self, value: object) -> None:
        """Called with each value before it is delivered, to refuse it."""

    def after(self, value: object, roots: Sequence[int]) -> None:
        """Called with each value that was delivered, and the roots of its trees."""

    def wrapping(self, inner: Outlet) -> Outlet:
        """The same for the outlet to one task."""
        raise NotImplementedError

    def _delivered(self, value: object, roots: Sequence[int]) -> None:
        self.reached = self.inner.reached
        self.after(value, roots)


class CheckedOutlet(WrappedOutlet):
    """An outlet whose stream has declared fields that every value must fit."""

    __slots__ = ("_misfit",)

    def __init__(self, inner: Outlet) -> None:
        super().__init__(inner)
        self._misfit = inner.source.schema.misfit

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        if self._misfit(value) is not None:
            self.before(value)
        edges = self.inner.deliver(value, root, lineage)
        self.reached = self.inner.reached
        return edges

    def before(self, value: object) -> None:
        misfit = self._misfit(value)
        if misfit is not None:
            raise InvalidEmit(
                f"{self.source.component!r} emits {value!r} on stream {self.source.stream!r}, which does not "
                f"fit its declared fields: {misfit}"
            )

    def wrapping(self, inner: Outlet) -> Outlet:
        return CheckedOutlet(inner)


class TappedOutlet(WrappedOutlet):
    """An outlet whose values are collected for the trees that asked for it (law C4, ``collect``)."""

    __slots__ = ("_collected",)

    def __init__(self, inner: Outlet, collected: Mapping[int, list[object]]) -> None:
        super().__init__(inner)
        self._collected = collected

    def after(self, value: object, roots: Sequence[int]) -> None:
        for root in dict.fromkeys(roots):
            values = self._collected.get(root)
            if values is not None:
                values.append(value)

    def wrapping(self, inner: Outlet) -> Outlet:
        return TappedOutlet(inner, self._collected)
