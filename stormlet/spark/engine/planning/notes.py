"""Notes for the user, before a topology runs on Spark: options that have no effect there, functions that keep something
there, and the place where bolts print."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from stormlet.core.state.timers import NAME
from stormlet.model.components import BoltBase, overrides
from stormlet.model.description import BoltSpec, Description, SpoutSpec
from stormlet.model.logic import LogicKind, component_class, what_is_called
from stormlet.model.state.keyed import merges
from stormlet.spark.engine.planning.closures import kept_by
from stormlet.spark.engine.planning.combiners import unfolded
from stormlet.spark.engine.planning.layout import Layout

_NO_TIMEOUTS: Final = "nothing times out, and what hangs is a task of Spark's"
_ONE_LEDGER: Final = "one ledger spans all tasks"
_NO_WAITING: Final = "stages follow one another, so that nobody waits for room"
_OWN_EPOCHS: Final = "a batch has no epochs, and those of a stream are its micro-batches"
_REASONS: Final[Mapping[str, str]] = {
    "timeout_buckets": _NO_TIMEOUTS,
    "timeout_restarts_on": _NO_TIMEOUTS,
    "ackers": _ONE_LEDGER,
    "acker_high_water": _ONE_LEDGER,
    "max_spout_pending": _NO_WAITING,
    "queue_capacity": _NO_WAITING,
    "slice": "no host shares the loop",
    "idle_max": "no spout is polled",
    "drain_timeout": "a batch ends with its messages, and is not drained",
    "epoch_messages": _OWN_EPOCHS,
    "history": _OWN_EPOCHS,
    "epoch_seconds": _OWN_EPOCHS,
    "record_edges": "nothing is explained while a batch runs",
    "explain_stuck": "nothing is explained while a batch runs",
}
"""By option, the reason why it has no effect."""


def notes(description: Description, layout: Layout, settings: Mapping[str, object]) -> Iterator[str]:
    """Iterate over what the user should know, a sentence each. ``description`` is the topology as it was declared;
    ``settings`` are those of file, environment and command line, which win."""
    yield from _in_vain({**description.options, **settings}, "")
    if description.state:
        yield _note(
            f"state={description.state!r}",
            "a batch begins with the state of the file that initial_state= names, and its result has save_state"
            if not layout.in_epochs
            else "a stream keeps the state in its checkpoint",
        )
    for component in description.components.values():
        where = f" of {_kind(component)} {component.id!r}"
        yield from _in_vain(component.options, where)
        if component.parallelism > 1 and (stage := _fused_into(layout, component.id)) is not None:
            yield _note(
                f"parallelism={component.parallelism}{where}",
                f"it is fused into stage {stage}, and has a task in each partition there",
            )
    for bolt in description.bolts.values():
        if layout.in_epochs and _finishes(bolt.logic):
            yield f"finish of bolt {bolt.id!r} is never called, as no stream ends; emit in flush, which ends an epoch"
        yield from _kept(bolt, layout)
        if NAME in bolt.states and not layout.in_epochs:
            yield (
                f"timers of bolt {bolt.id!r} are called in a batch if they are due when it begins, as time stands "
                "still in it; others stay in its state"
            )
        if merges(component_class(bolt.logic)) and (reason := unfolded(bolt, description)) is not None:
            yield (
                f"merge of bolt {bolt.id!r} is not used before the exchange, so that each input goes to its task by "
                f"itself: {reason}"
            )
        if bolt.id not in layout.driver and _prints(bolt.logic):
            yield (
                f"bolt {bolt.id!r} prints where its tasks run, which may be on other machines; let one task take its "
                "inputs by global_, and it prints here"
            )


def _finishes(logic: object) -> bool:
    bolt = component_class(logic)
    return bolt is not None and overrides(bolt, BoltBase, "finish")


def _kept(bolt: BoltSpec, layout: Layout) -> Iterator[str]:
    kept = kept_by(bolt.logic) if bolt.kind is LogicKind.FUNCTION else ""
    if kept and layout.in_epochs:
        yield (
            f"bolt {bolt.id!r} {kept}, and changes of it are not saved with an epoch; make it a bolt class, whose "
            "attributes are"
        )
    elif kept and bolt.id not in layout.driver:
        yield (
            f"bolt {bolt.id!r} {kept}, of which each partition has a copy; make it a bolt class, and emit in finish "
            "what it has gathered"
        )


def _prints(logic: object) -> bool:
    called = what_is_called(logic)
    return called is print or "print" in getattr(getattr(called, "__code__", None), "co_names", ())


def _in_vain(options: Mapping[str, object], where: str) -> Iterator[str]:
    for name, value in options.items():
        if name in _REASONS and not _is_so_anyway(name, value):
            yield _note(f"{name}={_spelt(value)}{where}", _REASONS[name])


def _is_so_anyway(name: str, value: object) -> bool:
    """True if the option asks for no more than what Spark does."""
    return not value or (name == "ackers" and value == 1)


def _note(what: str, reason: str) -> str:
    return f"{what} has no effect on Spark: {reason}"


def _spelt(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else repr(value)


def _kind(component: SpoutSpec | BoltSpec) -> str:
    return "bolt" if isinstance(component, BoltSpec) else "spout"


def _fused_into(layout: Layout, component: str) -> int | None:
    return next((each.number for each in layout.stages if component in each.fused), None)
