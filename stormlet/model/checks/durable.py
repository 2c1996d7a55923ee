"""Rules for topologies whose state outlives the process, checked before a run (law X8, K4)."""

from __future__ import annotations

from inspect import isroutine

from stormlet.core.shortened import shortened
from stormlet.errors import InvalidTopology
from stormlet.model.checks.committers import check_alone
from stormlet.model.components import Spout, overrides
from stormlet.model.description import BoltSpec, Description, SpoutSpec
from stormlet.model.logic import SourceKind, component_class, what_is_called
from stormlet.model.traits import SpoutTraits, bolt_traits, spout_traits


def check_durable(description: Description) -> None:
    """Raise :class:`InvalidTopology` for a source that could not go on where the state ends, and for a bolt whose state
    would be missing then."""
    _check_cuts(description)
    for spout in description.spouts.values():
        _check_source(spout)
    for bolt in description.bolts.values():
        _check_bolt(bolt)


def check_place(description: Description) -> None:
    """Raise :class:`InvalidTopology` for a source that names a place for the state of a topology which has one."""
    for spout in description.spouts.values():
        if spout_traits(spout.source).state_place:
            raise InvalidTopology(_with_checkpoint(spout))


def check_epochs(description: Description) -> None:
    """Raise :class:`InvalidTopology` for a bolt that needs epochs which outlive the process, where no state does."""
    _check_cuts(description)
    for bolt in description.bolts.values():
        wanted = bolt_traits(bolt.logic)
        if wanted.needs_epochs and not description.has_cut_epochs:
            raise InvalidTopology(
                f"bolt {bolt.id!r} writes exactly once, and the epochs of {_named(description)} would be others in "
                f"the next run; {wanted.epochs_advice}"
            )
        if bolt.rows is not None:
            _check_alone(bolt)


def check_volatile(description: Description) -> None:
    """Raise :class:`InvalidTopology` for what would need a state, where there is none."""
    check_epochs(description)
    for bolt in description.bolts.values():
        if bolt.rows is not None and bolt.rows.table is not None:
            raise InvalidTopology(
                f"bolt {bolt.id!r} writes the table {bolt.rows.table.name!r} of the state's own file, and the topology "
                f"has no state=; set it, or give the table a file by path="
            )


def _check_source(spout: SpoutSpec) -> None:
    traits = spout_traits(spout.source)
    if traits.resumes and not traits.cuts_epochs:
        raise InvalidTopology(_with_checkpoint(spout))
    if spout.kind is SourceKind.FACTORY and not (traits.resumable or traits.redelivers):
        raise InvalidTopology(
            f"spout {spout.id!r} cannot go on where the state ends; {_resume_advice(spout, traits)}"
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


def _resume_advice(spout: SpoutSpec, traits: SpoutTraits) -> str:
    if component_class(spout.source) is None and isroutine(what_is_called(spout.source)):
        return (
            f"nothing says how the spouts that {shortened(spout.source)} makes go on; annotate it with their class, or "
            f"pass that; to give values, pass a generator function or an iterable; or leave out state="
        )
    return traits.resume_advice


def _check_cuts(description: Description) -> None:
    """Refuse a second source that cuts the epochs of all."""
    cutting = [repr(id) for id, spout in description.spouts.items() if spout_traits(spout.source).cuts_epochs]
    if len(cutting) > 1 and description.has_epochs:
        raise InvalidTopology(
            f"spouts {' and '.join(cutting)} both cut the epochs of the topology; read both from one source, such as a "
            f"union of the DataFrames, or give each a topology of its own"
        )


def _named(description: Description) -> str:
    names = [repr(id) for id in description.spouts]
    return f"spout {names[0]}" if len(names) == 1 else f"spouts {' and '.join(names)}"


def _with_checkpoint(spout: SpoutSpec) -> str:
    return (
        f"spout {spout.id!r} has a checkpoint of its own, and state= keeps the positions of all sources; leave out one "
        f"of the two"
    )


def _check_bolt(bolt: BoltSpec) -> None:
    if bolt.rows is not None:
        _check_alone(bolt)
    if bolt_traits(bolt.logic).keeps_state:
        raise InvalidTopology(
            f"bolt {bolt.id!r} keeps state that it does not declare, which the next run would miss; derive it from "
            f"KeyedBolt, and declare its state"
        )


def _check_alone(bolt: BoltSpec) -> None:
    check_alone(f"bolt {bolt.id!r}", bolt.parallelism, bolt.concurrency, bolt.executor)
