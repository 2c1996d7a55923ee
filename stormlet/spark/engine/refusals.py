"""The topologies that Spark cannot run: each is refused before anything starts, with the component and the way out."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Iterator
from functools import partial

from stormlet.core.groupings import Direct
from stormlet.errors import InvalidTopology
from stormlet.model.description import BoltSpec, Description, SpoutSpec
from stormlet.model.logic import SourceKind, what_is_called
from stormlet.model.traits import spout_traits
from stormlet.spark.source.dataframe_spout import DataFrameSpout


def check_batch(description: Description) -> None:
    """Raise :class:`~stormlet.errors.InvalidTopology` for a topology that cannot run as a batch on Spark; the message
    has every reason, one a line."""
    reasons = [*_of_topology(description)]
    for spout in description.spouts.values():
        reasons += _of_spout(spout)
    for bolt in description.bolts.values():
        reasons += _of_bolt(bolt)
    if reasons:
        raise InvalidTopology("\n".join(f"on Spark, {each}" for each in reasons))


def _of_topology(description: Description) -> Iterator[str]:
    for cycle in description.cycles():
        path = " > ".join([*cycle, cycle[0]])
        yield f"{path} is a cycle, and stages follow one another; loop inside one bolt, or run it in this process"
    if not description.configuration.ackers:
        yield (
            f"topology {description.name!r} has ackers=0, and a batch is checked by its ledger; leave out ackers=0"
        )


def _of_spout(spout: SpoutSpec) -> Iterator[str]:
    where, source = f"spout {spout.id!r}", spout.source
    reads = (
        "pass a list, a generator function or a DataFrameSpout, in its place by sources={"
        f"{spout.id!r}: ...}}"
    )
    if spout.kind is SourceKind.FED:
        yield f"{where} has no source, and nothing can be emitted into a batch; {reads}"
    elif spout.kind is SourceKind.FACTORY and not _is_dataframe(source):
        yield f"{where} is a Spout class, which reads by itself and cannot be read again; {reads}"
    elif _is_async(source):
        yield f"{where} is asynchronous, and a batch is read before it runs; {reads}"
    elif spout_traits(source).resumes:
        yield f"{where} has a checkpoint, and a batch is written as a whole or not at all; leave out checkpoint="
    if any(output.direct for output in spout.outputs.values()):
        yield _direct(where)


def _of_bolt(bolt: BoltSpec) -> Iterator[str]:
    where = f"bolt {bolt.id!r}"
    if bolt.tick is not None:
        yield f"{where} ticks every {bolt.tick:g} s, and a batch knows no time; emit in finish, or leave out tick="
    if any(output.direct for output in bolt.outputs.values()):
        yield _direct(where)
    for each in bolt.inputs:
        if isinstance(each.grouping, Direct):
            yield f"{where} takes {each.source} by a direct grouping, which names tasks; use fields"


def _direct(where: str) -> str:
    return f"{where} declares a DirectStream, whose emits name tasks; declare a stream of its type, and use fields"


def _is_dataframe(source: object) -> bool:
    return isinstance(source, DataFrameSpout)


def _is_async(source: object) -> bool:
    called = what_is_called(source)
    function = called.func if isinstance(called, partial) else called
    return isinstance(source, AsyncIterable) or inspect.isasyncgenfunction(function)
