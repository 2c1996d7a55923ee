"""The topologies that Spark cannot run: each is refused before anything starts, with the component and the way out.

A topology runs as one batch, or as one epoch after another where a spout reads a stream.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Iterator, Sequence
from typing import cast

from stormlet.errors import InvalidTopology
from stormlet.model.configuration import configure
from stormlet.model.description import BoltSpec, Description, SpoutSpec
from stormlet.model.logic import SourceKind, what_is_called
from stormlet.model.traits import bolt_traits
from stormlet.spark.engine.planning.arguments import unsaved
from stormlet.spark.engine.planning.combiners import merge_of, takes_two
from stormlet.spark.engine.planning.shipping import unfound
from stormlet.spark.sink.dataframe_sink import DataFrameSink
from stormlet.spark.source.dataframe_spout import DataFrameSpout
from stormlet.spark.stream.stream import StreamSource


def reads_stream(description: Description) -> bool:
    """True if the topology runs in epochs, as a spout reads a stream."""
    return any(isinstance(spout.source, StreamSource) for spout in description.spouts.values())


def check_on_spark(description: Description) -> None:
    """Raise :class:`~stormlet.errors.InvalidTopology` for a topology that cannot run on Spark; the message has every
    reason, one a line."""
    (check_stream if reads_stream(description) else check_batch)(description)


def check_batch(description: Description) -> None:
    """Raise it for one that cannot run as a batch."""
    _refuse([*reasons(description), *unfound(description)])


def check_stream(description: Description) -> None:
    """Raise it for one that cannot run in epochs."""
    _refuse([*reasons_in_epochs(description), *unfound(description)])


def _refuse(found: Sequence[str]) -> None:
    if found:
        raise InvalidTopology("\n".join(f"on Spark, {each}" for each in found))


def check_replays(description: Description) -> None:
    """Raise it for one whose messages cannot be replayed from their sources."""
    _refuse(
        [
            f"bolt {id!r} has keyed state, which a replay from the source would change once more; leave out "
            'replays="source"'
            for id, bolt in description.bolts.items()
            if bolt.keyed
        ]
    )


def reasons(description: Description) -> Iterator[str]:
    """Iterate over the reasons why the topology cannot run as a batch, on however many machines."""
    yield from _of_topology(description)
    for spout in description.spouts.values():
        yield from _of_spout(spout)
    for bolt in description.bolts.values():
        yield from _of_bolt(bolt, description)
        if bolt_traits(bolt.logic).needs_epochs:
            yield (
                f"bolt {bolt.id!r} writes epochs, and a batch is written once, as a whole; leave out exactly_once="
            )


def reasons_in_epochs(description: Description) -> Iterator[str]:
    """Iterate over the reasons why the topology cannot run in epochs."""
    yield from _of_topology(description)
    streams = [id for id, spout in description.spouts.items() if isinstance(spout.source, StreamSource)]
    if not streams:
        yield f"no spout of topology {description.name!r} reads a stream; run it with run_on_spark"
    for spout in description.spouts.values():
        if streams and spout.id != streams[0]:
            yield (
                f"spout {spout.id!r} stands beside {streams[0]!r}, which gives all epochs; feed it from the same "
                f"streaming DataFrame, as by union, or give it a topology of its own"
            )
    for bolt in description.bolts.values():
        yield from _of_bolt(bolt, description)
        if not bolt.keyed:  # whose attributes are no state
            yield from unsaved(bolt)
        traits = bolt_traits(bolt.logic)
        if isinstance(bolt.logic, DataFrameSink) and traits.keeps_state:
            yield f"bolt {bolt.id!r} is a sink whose {traits.state_advice}"


def _of_topology(description: Description) -> Iterator[str]:
    for cycle in description.cycles():
        yield (
            f"{_bolts(cycle)} a cycle, and stages follow one another; loop inside one bolt, or run the topology in "
            "this process"
        )
    if not description.configuration.ackers:
        yield (
            f"topology {description.name!r} has ackers=0, and Spark's work is checked by the ledger; leave out ackers=0"
        )


def _bolts(cycle: Sequence[str]) -> str:
    if len(cycle) == 1:
        return f"bolt {cycle[0]!r} forms"
    return f"bolts {', '.join(map(repr, cycle[:-1]))} and {cycle[-1]!r} form"


def _of_spout(spout: SpoutSpec) -> Iterator[str]:
    where, source = f"spout {spout.id!r}", spout.source
    reads = f"pass a list, a generator function or a DataFrameSpout by sources={{{spout.id!r}: ...}}"
    if spout.kind is SourceKind.FED:
        yield f"{where} has no source, and nothing can be emitted into a batch; {reads}"
    elif isinstance(source, StreamSource):
        yield f"{where} reads a stream, and a batch has an end; run the topology with stream_on_spark"
    elif isinstance(source, DataFrameSpout):
        yield from _of_frame(where, cast("DataFrameSpout[object]", source))
    elif spout.kind is SourceKind.FACTORY:
        yield f"{where} is made by a Spout class, which only a task in this process can ask; {reads}"
    elif _is_async(source):
        yield f"{where} is asynchronous, and a batch is read before it runs; {reads}"
    if any(output.direct for output in spout.outputs.values()):
        yield _direct(where)


def _of_frame(where: str, source: DataFrameSpout[object]) -> Iterator[str]:
    if source.resumes or source.state_place:
        options = "checkpoint= and epoch_rows=" if source.state_place else "checkpoint="
        yield f"{where} has a checkpoint, and a batch is written whole or not at all; leave out {options}"
    if source.order_by:
        yield f"{where} sorts its rows, and partitions are read beside each other; leave out order_by="
    if source.transport != "arrow":
        yield (
            f"{where} reads rows, and stages read Arrow; leave out transport=, and cast columns of types that Arrow "
            "lacks"
        )


def _of_bolt(bolt: BoltSpec, description: Description) -> Iterator[str]:
    where = f"bolt {bolt.id!r}"
    # Not spec.tick, which is not told of options that a run overrides.
    tick = configure(description.configuration, bolt.options, where).tick
    if bolt.ticks and tick is not None:
        yield (
            f"{where} ticks every {tick:g} s, and Spark's stages know no time; emit in flush or finish, or leave out "
            "tick="
        )
    for each in dict.fromkeys(each.source.component for each in bolt.inputs):
        if isinstance(getattr(description.components[each], "logic", None), DataFrameSink):
            yield (
                f"{where} takes from sink {each!r}, which is written when all bolts have finished; do after the run "
                "what comes after the sink"
            )
    if bolt.by_epochs or (bolt.rows is not None and not bolt.rows.has_tasks_elsewhere):
        yield (
            f"{where} works on epochs, which a run in this process has; leave out --engine spark, or write with a "
            "DataFrameSink"
        )
    merge = merge_of(bolt)
    if merge is not None and not takes_two(merge):
        yield f"{where} has a merge that does not take two inputs; write @staticmethod def merge(one, other)"
    if any(output.direct for output in bolt.outputs.values()):
        yield _direct(where)


def _direct(where: str) -> str:
    return f"{where} declares a DirectStream, whose emits name tasks; declare a stream of its type, and use fields"


def _is_async(source: object) -> bool:
    return isinstance(source, AsyncIterable) or inspect.isasyncgenfunction(what_is_called(source))
