"""Rules for topologies whose state outlives the process, checked before a run (law X8, K4)."""

from __future__ import annotations

from stormlet.errors import InvalidTopology
from stormlet.model.checks.committers import check_alone
from stormlet.model.components import Spout, overrides
from stormlet.model.description import BoltSpec, Description, SpoutSpec
from stormlet.model.logic import SourceKind, component_class
from stormlet.model.traits import bolt_traits, spout_traits


def check_durable(description: Description) -> None:
    """Raise :class:`InvalidTopology` for a source that could not go on where the state ends, and for a bolt whose state
    would be missing then."""
    for spout in description.spouts.values():
        _check_source(spout)
    for bolt in description.bolts.values():
        _check_bolt(bolt)


def check_place(description: Description) -> None:
    """Raise :class:`InvalidTopology` for a source that names a place for the state of a topology which has one."""
    for spout in description.spouts.values():
        if spout_traits(spout.source).state_place:
            raise InvalidTopology(_with_checkpoint(spout))


def check_volatile(description: Description) -> None:
    """Raise :class:`InvalidTopology` for a table that would be part of a state that there is not."""
    for bolt in description.bolts.values():
        if bolt.rows is not None and bolt.rows.table is not None:
            raise InvalidTopology(
                f"bolt {bolt.id!r} writes the table {bolt.rows.table.name!r} of the state's own file, and the topology "
                f"has no state=; set it, or give the table a file by path="
            )


def _check_source(spout: SpoutSpec) -> None:
    traits = spout_traits(spout.source)
    if traits.resumes:
        raise InvalidTopology(_with_checkpoint(spout))
    if spout.kind is SourceKind.FACTORY and not (traits.resumable or traits.redelivers):
        raise InvalidTopology(
            f"spout {spout.id!r} cannot go on where the state ends; read context.resume in its open and say resumable "
            f"= True, or say redelivers = True if a broker gives again what was not acked, or leave out state="
        )
    if traits.redelivers and not overrides(component_class(spout.source) or Spout, Spout, "ack"):
        raise InvalidTopology(
            f"spout {spout.id!r} redelivers, and has no ack, by which a broker would be told; define ack(self, "
            f"message_id), which returns when the broker has been told"
        )
    if traits.resumable and traits.redelivers:
        raise InvalidTopology(
            f"spout {spout.id!r} says resumable and redelivers, and goes on in one way; leave out one of the two"
        )


def _with_checkpoint(spout: SpoutSpec) -> str:
    return (
        f"spout {spout.id!r} has a checkpoint of its own, and state= keeps the positions of all sources; leave out one "
        f"of the two"
    )


def _check_bolt(bolt: BoltSpec) -> None:
    if bolt.rows is not None:
        check_alone(f"bolt {bolt.id!r}", bolt.parallelism, bolt.concurrency, bolt.executor)
    if bolt_traits(bolt.logic).keeps_state:
        raise InvalidTopology(
            f"bolt {bolt.id!r} keeps state that it does not declare, which the next run would miss; derive it from "
            f"KeyedBolt, and declare its state"
        )
