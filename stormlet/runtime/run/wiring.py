"""The wires between tasks: for each stream of a task an outlet, which delivers into the inboxes of its consumers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from stormlet.core.groupings import AnyRoutes, Chooser, One
from stormlet.core.ids import IdSource
from stormlet.core.tuples import Source
from stormlet.errors import StartFailed, StormletError
from stormlet.model.plan import TaskPlan
from stormlet.model.planning import Link
from stormlet.model.streams import Output, StreamId
from stormlet.runtime.context import Engine
from stormlet.runtime.run.kit import Kit
from stormlet.runtime.usercode import as_exception
from stormlet.runtime.wire.inbox import Inbox
from stormlet.runtime.wire.outbox import Outbox
from stormlet.runtime.wire.outlets import (
    CheckedOutlet,
    DirectOutlet,
    FanOutlet,
    FixedOutlet,
    Outlet,
    SingleOutlet,
    Target,
)
from stormlet.runtime.wire.room_waits import RoomWaits


class Junction(msgspec.Struct, frozen=True):
    """A link, and what all tasks of its producer share of it."""

    link: Link
    label: str
    """The name of the link in error messages."""
    targets: list[Target]
    routes: AnyRoutes | None


class Producer(msgspec.Struct, frozen=True):
    """One task that emits."""

    plan: TaskPlan
    outbox: Outbox
    outlets: dict[str, Outlet]
    """By stream; they are put here."""


class Wires:
    """Makes the outlets of one run."""

    def __init__(
        self, engine: Engine, kit: Kit, links: Mapping[StreamId, Sequence[Link]], inboxes: Mapping[int, Inbox]
    ) -> None:
        """``inboxes`` are those of all consumers, by task id."""
        self._engine = engine
        self._kit = kit
        self._links = links
        self._inboxes = inboxes

    def lay(self, producers: Sequence[Producer], id: str, outputs: Mapping[str, Output]) -> None:
        """Make the outlets for the tasks of one component."""
        junctions = {
            stream: [self._junction(id, link) for link in self._links[StreamId(id, stream)]]
            for stream in outputs
        }
        targets = (target for each in junctions.values() for junction in each for target in junction.targets)
        # One list for all tasks of the component, which only look at it.
        consumers = list({target.ids[0]: target.inbox for target in targets}.values())
        waits = self._waits(junction for each in junctions.values() for junction in each)
        for producer in producers:
            ids = self._engine.ids(producer.plan)
            for stream, output in outputs.items():
                source = Source(id, stream, producer.plan.task, output.schema)
                outlet = self._outlet(producer, source, ids, junctions[stream], direct=output.direct)
                producer.outlets[stream] = CheckedOutlet(outlet) if output.schema.enforced else outlet
            producer.outbox.consumers = consumers
            producer.outbox.waits = waits

    def _waits(self, junctions: Iterable[Junction]) -> Mapping[Inbox, RoomWaits]:
        """The counts of waits in each queue, of which the queues of one consumer have one together."""
        of_consumers: dict[str, RoomWaits] = {}
        return {
            target.inbox: of_consumers.setdefault(each.link.consumer, RoomWaits(self._engine.clock))
            for each in junctions
            for target in each.targets
        }

    def _junction(self, producer: str, link: Link) -> Junction:
        label = f"{producer!r} -> {link.consumer!r}"
        targets = [Target(task, self._inboxes[task], link.waits) for task in link.targets]
        return Junction(link, label, targets, link.grouping.routes(len(targets), label))

    def _outlet(
        self,
        producer: Producer,
        source: Source,
        ids: IdSource,
        junctions: Sequence[Junction],
        *,
        direct: bool,
    ) -> Outlet:
        outbox = producer.outbox
        if direct:
            receivers = [target for junction in junctions for target in junction.targets]
            return DirectOutlet(
                source, {each.ids[0]: FixedOutlet(source, ids, outbox, each) for each in receivers}
            )
        if not junctions:
            return Outlet(source)
        choosers = [(self._chooser(producer, junction), junction.targets) for junction in junctions]
        first, targets = choosers[0]
        # The shape is decided now, so that no emit has to ask for it.
        if len(choosers) == 1 and isinstance(first, One):
            return SingleOutlet(source, ids, outbox, first, targets)
        return FanOutlet(source, ids, outbox, choosers)

    def _chooser(self, producer: Producer, junction: Junction) -> Chooser:
        link = junction.link
        grouping = self._kit.grouping(producer.plan, link.grouping)
        random = self._engine.random(producer.plan, f"to {link.consumer}")
        try:
            return grouping.chooser(link.targets, random, junction.label, junction.routes)
        except StormletError:
            raise
        except (Exception, asyncio.CancelledError) as error:  # of the user's own grouping
            name = self._engine.plan.description.name
            raise StartFailed(name, grouping.title(junction.label), "prepare") from as_exception(error)
