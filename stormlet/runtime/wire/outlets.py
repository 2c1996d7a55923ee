"""One producer task's end of one stream: chooses the receivers of a value and delivers it.

An outlet is chosen by shape when the plan is built, so that nothing on the way of a tuple asks what kind of
stream it is on. ``deliver`` returns the XOR of the edge ids it drew, each copy having one of its own (law
L1); the ids of the tasks it reached are in ``reached`` until the next call. It chooses all receivers before
it delivers to the first, so that an exception in a grouping delivers nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from stormlet.core.groupings import Many, One
from stormlet.core.ids import IdSource, next_id
from stormlet.core.tuples import Lineage, Source, Tuple, joined_tuple, plain_tuple
from stormlet.errors import InvalidEmit
from stormlet.runtime.wire.inbox import Inbox
from stormlet.runtime.wire.outbox import Outbox

Anchors = Sequence[Tuple[Any]]


class Target:
    """One receiving task, as one producer sees it."""

    __slots__ = ("capacity", "ids", "inbox")

    def __init__(self, task: int, inbox: Inbox, waits: bool) -> None:
        self.inbox = inbox
        self.ids = (task,)
        self.capacity = inbox.capacity if waits else sys.maxsize
        """Edges inside a cycle never wait (law B6)."""


class Outlet:
    """A stream without subscribers; the base of the others."""

    __slots__ = ("_emitted", "reached", "source")

    def __init__(self, source: Source) -> None:
        self.source = source
        self.reached: tuple[int, ...] = ()
        self._emitted: int = 0

    @property
    def emitted(self) -> int:
        """The number of values it has taken; those that were refused are not among them."""
        return self._emitted

    @property
    def transferred(self) -> int:
        """The number of tuples it has delivered."""
        return 0

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        """Deliver to tasks as members of the tree ``root``, or untracked if it is 0; return the XOR of the
        new edges."""
        self._emitted += 1
        return 0

    def deliver_joined(self, value: object, anchors: Anchors, lineage: Lineage) -> None:
        """Deliver as members of the trees of all anchors, and note the new edges in the anchors (law L7)."""
        self._emitted += 1

    def delivered(self, links: Sequence[Sequence[int]]) -> Sequence[int]:
        """Return the number of tuples delivered to each of the subscriptions, of which each is given as the ids of its
        tasks."""
        return [self.transferred] * len(links)

    def count(self, values: int, tuples: int) -> None:
        """Count values that went to their consumers in another way, as so many tuples."""
        self._emitted += values

    def at(self, task: int) -> Outlet:
        """The outlet to one task that the producer names."""
        raise InvalidEmit(
            f"{self.source.component!r} emits to task {task} on stream {self.source.stream!r}, which is not "
            f"declared direct; leave out task=, or declare the stream with outputs=DirectStream(...)"
        )


class Delivery(Outlet):
    """The base of the outlets with receivers."""

    __slots__ = ("_ids", "_outbox")

    def __init__(self, source: Source, ids: IdSource, outbox: Outbox) -> None:
        super().__init__(source)
        self._ids = iter(ids)
        self._outbox = outbox

    def deliver_one(self, target: Target, value: object, root: int, lineage: Lineage) -> int:
        """Deliver one copy."""
        edge = next_id(self._ids) if root else 0
        self._append(target, plain_tuple(value, self.source, lineage, root, edge))
        return edge

    def join_one(self, target: Target, value: object, anchors: Anchors, lineage: Lineage) -> None:
        """Deliver one copy anchored to several inputs: a fresh edge per anchor; a root that several anchors
        share gets the XOR of their edges (law L7)."""
        # An edge for each anchor, and not one for all: an anchor whose edge were XORed with that of another would be
        # complete when the other is.
        edges: dict[int, int] = {}
        for anchor in anchors:
            edge = next_id(self._ids)
            anchor.edge ^= edge
            if anchor.root:  # as nearly all have: one
                edges[anchor.root] = edges.get(anchor.root, 0) ^ edge
            else:
                for root in anchor.roots:
                    edges[root] = edges.get(root, 0) ^ edge
        # One root, as most joins have: the tuple needs no table of roots.
        if len(edges) == 1:
            ((root, edge),) = edges.items()
            self._append(target, plain_tuple(value, self.source, lineage, root, edge))
        else:
            self._append(target, joined_tuple(value, self.source, lineage, edges))

    def _append(self, target: Target, tup: Tuple[object]) -> None:
        items = target.inbox.items
        queued = len(items)
        if not queued:  # first, as a tuple that nobody wakes its consumer for would stop the others too
            self._outbox.found_empty.append(target.inbox)
        items.append(tup)
        if queued + 1 >= target.capacity:
            self._crowd(target.inbox)

    def _crowd(self, inbox: Inbox) -> None:
        # A task fills few inboxes at a time, so a list is fast enough, and it keeps the order.
        if inbox not in self._outbox.crowded:
            self._outbox.crowded.append(inbox)


class SingleOutlet(Delivery):
    """One subscription whose grouping sends each value to one task: nearly every stream there is."""

    __slots__ = ("_chooser", "_targets")

    def __init__(
        self, source: Source, ids: IdSource, outbox: Outbox, chooser: One, targets: list[Target]
    ) -> None:
        super().__init__(source, ids, outbox)
        self._chooser = chooser
        self._targets = targets

    @property
    def transferred(self) -> int:
        return self._emitted

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        # Written out, not by deliver_one: nearly every tuple goes this way, and calls are most of its price.
        # The grouping comes first, as an exception of the user's key function must leave nothing counted.
        target = self._targets[self._chooser.pick(value)]
        self._emitted += 1
        self.reached = target.ids
        edge = next_id(self._ids) if root else 0
        items = target.inbox.items
        queued = len(items)
        if not queued:
            self._outbox.found_empty.append(target.inbox)
        items.append(plain_tuple(value, self.source, lineage, root, edge))
        if queued + 1 >= target.capacity:
            self._crowd(target.inbox)
        return edge

    def deliver_joined(self, value: object, anchors: Anchors, lineage: Lineage) -> None:
        target = self._targets[self._chooser.pick(value)]
        self._emitted += 1
        self.reached = target.ids
        self.join_one(target, value, anchors, lineage)


class FanOutlet(Delivery):
    """Several subscriptions, or one that sends a value to any number of tasks."""

    __slots__ = ("_delivered", "_elsewhere", "_links")

    def __init__(
        self,
        source: Source,
        ids: IdSource,
        outbox: Outbox,
        links: Sequence[tuple[One | Many, Sequence[Target]]],
    ) -> None:
        super().__init__(source, ids, outbox)
        self._links = links
        self._delivered = [0] * len(links)
        self._elsewhere = 0

    @property
    def transferred(self) -> int:
        return sum(self._delivered) + self._elsewhere

    def delivered(self, links: Sequence[Sequence[int]]) -> Sequence[int]:
        return self._delivered.copy()

    def count(self, values: int, tuples: int) -> None:
        super().count(values, tuples)
        self._elsewhere += tuples

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        checksum = 0
        for target in self._choose(value):
            checksum ^= self.deliver_one(target, value, root, lineage)
        return checksum

    def deliver_joined(self, value: object, anchors: Anchors, lineage: Lineage) -> None:
        for target in self._choose(value):
            self.join_one(target, value, anchors, lineage)

    def _choose(self, value: object) -> Sequence[Target]:
        # All are chosen before any is reached: a replay after half of a delivery would double the other half.
        chosen: list[Target] = []
        ends: list[int] = []
        for chooser, targets in self._links:
            if isinstance(chooser, One):
                chosen.append(targets[chooser.pick(value)])
            else:
                chosen.extend(targets[index] for index in chooser.choose(value))
            ends.append(len(chosen))
        self._emitted += 1
        self._count_delivered(ends)
        self.reached = tuple(target.ids[0] for target in chosen)
        return chosen

    def _count_delivered(self, ends: list[int]) -> None:
        # When nothing can raise any more: a key function of the second subscription may.
        before = 0
        for link, end in enumerate(ends):
            self._delivered[link] += end - before
            before = end


class FixedOutlet(Delivery):
    """One receiver that the producer has named."""

    __slots__ = ("_target",)

    def __init__(self, source: Source, ids: IdSource, outbox: Outbox, target: Target) -> None:
        super().__init__(source, ids, outbox)
        self._target = target

    @property
    def transferred(self) -> int:
        return self._emitted

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        self._emitted += 1
        self.reached = self._target.ids
        return self.deliver_one(self._target, value, root, lineage)

    def deliver_joined(self, value: object, anchors: Anchors, lineage: Lineage) -> None:
        self._emitted += 1
        self.reached = self._target.ids
        self.join_one(self._target, value, anchors, lineage)


class DirectOutlet(Outlet):
    """A stream declared direct: every emit must name the receiver (Storm's ``emitDirect``)."""

    __slots__ = ("_outlets",)

    def __init__(self, source: Source, outlets: Mapping[int, FixedOutlet]) -> None:
        super().__init__(source)
        self._outlets = outlets

    @property
    def emitted(self) -> int:
        return sum(each.emitted for each in self._outlets.values())

    @property
    def transferred(self) -> int:
        return self.emitted

    def delivered(self, links: Sequence[Sequence[int]]) -> Sequence[int]:
        return [sum(self._outlets[task].emitted for task in tasks) for tasks in links]

    def deliver(self, value: object, root: int, lineage: Lineage) -> int:
        raise self._unnamed()

    def deliver_joined(self, value: object, anchors: Anchors, lineage: Lineage) -> None:
        raise self._unnamed()

    def at(self, task: int) -> Outlet:
        outlet = self._outlets.get(task)
        if outlet is None:
            raise InvalidEmit(
                f"{self.source.component!r} emits to task {task} on stream {self.source.stream!r}, which does "
                f"not subscribe to it; those that do: {sorted(self._outlets)}"
            )
        return outlet

    def _unnamed(self) -> InvalidEmit:
        return InvalidEmit(
            f"{self.source.component!r} emits on stream {self.source.stream!r}, which is declared direct; "
            f"name the receiver with task=, one of {sorted(self._outlets)}"
        )


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

    def delivered(self, links: Sequence[Sequence[int]]) -> Sequence[int]:
        return self.inner.delivered(links)

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
        # Asked here again, so that a value that fits costs one call.
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
        # A joined tuple may name a root for several anchors; its value is collected once.
        for root in dict.fromkeys(roots):
            values = self._collected.get(root)
            if values is not None:
                values.append(value)

    def wrapping(self, inner: Outlet) -> Outlet:
        return TappedOutlet(inner, self._collected)
