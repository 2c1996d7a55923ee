"""The layout of a topology on Spark: the stages that its components run in.

Theory of operation
-------------------
Spark runs a topology as one chain of stages. Between two stages stands an exchange, which brings each row to the
partition that it is addressed to. So an exchange can do what a grouping does. It is expensive, and the chain therefore
has as few as possible:

- *Stage 0* has the spouts, each with partitions of its own.
- A bolt *begins* in the earliest stage after all of its producers, as one of the *heads* of that stage. Each of its
  tasks has a partition of its own there. Heads of one stage do not feed each other, so one exchange serves them all.
- A bolt that takes all its inputs by shuffle, local_or_shuffle or none, and all from one stage, is *fused* into that
  stage instead. It has a task in every partition in which one of its producers has one, and takes what is emitted
  there. So it has as many tasks as these partitions, whatever its ``parallelism``.
- In a *stream*, where a layout serves one epoch after another, the partitions of stage 0 are as many as the epoch
  happens to have. A bolt class may have state, which belongs to one task for good. So only functions are fused into
  stage 0.
- A bolt with keyed state always begins: its inputs come by fields or global_. So each of its partitions has one such
  task, to which all inputs of the partition go.
- A bolt of one task, all of whose inputs come by global_ or from such a bolt, and whose outputs nobody else takes, runs
  in the *driver*, after all stages: it prints a report, or writes to the console.

Components are laid out upstream first, so that the stages of all producers are known, and otherwise as they were
declared. Cycles are refused before.

This is arithmetic on a :class:`~stormlet.model.description.Description`. Nothing here knows Spark, and ``check`` shows
the layout before a JVM starts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from stormlet.core.groupings import Global, Grouping, Shuffle
from stormlet.model.description import BoltSpec, Description
from stormlet.model.logic import LogicKind
from stormlet.spark.sink.dataframe_sink import DataFrameSink


class Stage(msgspec.Struct, frozen=True):
    """The components that run between two exchanges."""

    number: int
    """Its place in the chain, from 0."""
    heads: Sequence[str]
    """The spouts, in stage 0; the bolts that begin there, in others."""
    fused: Sequence[str]
    """The bolts that are fused into it, upstream first."""


class TableMaker:
    """The base of factories whose bolts make tables, which are taken out after the last stage: no such bolt runs in the
    driver."""


class Layout(msgspec.Struct, frozen=True):
    """The stages of a topology, in order."""

    stages: Sequence[Stage]
    driver: Sequence[str]
    """The bolts that run in the driver, upstream first."""
    heads: Mapping[str, Sequence[str]]
    """By component, the heads in whose partitions it has its tasks, in the order of the stage. Those of a head are
    itself; a bolt in the driver has none."""
    in_epochs: bool = False
    """True for a stream: the bolts keep their state from one epoch to the next, and never finish."""

    def stage_of(self, component: str) -> int:
        """Return the number of a component's stage; that of the driver comes after all others."""
        for stage in self.stages:
            if component in stage.heads or component in stage.fused:
                return stage.number
        return len(self.stages)


def lay_out(description: Description, *, in_epochs: bool = False) -> Layout:
    """Lay out a topology without cycles; ``in_epochs`` is true for a stream."""
    order = _upstream_first(description)
    driver = _in_driver(description, order)
    stages: dict[str, int] = {}
    heads: dict[str, Sequence[str]] = {}
    for id in order:
        bolt = description.bolts.get(id)
        if bolt is None:
            stages[id], heads[id] = 0, (id,)
        elif id in driver:
            heads[id] = ()
        else:
            producers = _producers(bolt)
            earliest = max(stages[each] for each in producers)
            if _is_fused(bolt, stages) and not (in_epochs and earliest == 0 and may_have_state(bolt)):
                stages[id] = earliest
                above = {head for each in producers for head in heads[each]}
                heads[id] = tuple(each for each in order if each in above)
            else:
                stages[id], heads[id] = earliest + 1, (id,)
    return Layout(tuple(_stages(order, stages, heads)), driver, heads, in_epochs)


def _upstream_first(description: Description) -> Sequence[str]:
    order: dict[str, None] = dict.fromkeys(description.spouts)
    left = [*description.bolts.values()]
    while left:
        for each in left:
            if all(above in order for above in _producers(each)):
                order[each.id] = None
        waiting = [each for each in left if each.id not in order]
        assert len(waiting) < len(left), "cycles are refused before"
        left = waiting
    return tuple(order)


def _stages(
    order: Sequence[str], stages: Mapping[str, int], heads: Mapping[str, Sequence[str]]
) -> Iterable[Stage]:
    for number in range(max(stages.values()) + 1):
        here = [id for id in order if stages.get(id) == number]
        yield Stage(
            number,
            tuple(id for id in here if heads[id] == (id,)),
            tuple(id for id in here if heads[id] != (id,)),
        )


def _is_fused(bolt: BoltSpec, stages: Mapping[str, int]) -> bool:
    one_stage = len({stages[each] for each in _producers(bolt)}) == 1
    return one_stage and all(isinstance(each, Shuffle) for each in _groupings(bolt))


def may_have_state(bolt: BoltSpec) -> bool:
    """True for a bolt of the user's that is more than a function, and keeps what it has changed in itself."""
    return (
        not bolt.keyed
        and bolt.kind is not LogicKind.FUNCTION
        and not isinstance(bolt.logic, DataFrameSink | TableMaker)
    )


def _in_driver(description: Description, order: Sequence[str]) -> Sequence[str]:
    bolts = description.bolts
    consumers: dict[str, list[str]] = {id: [] for id in description.components}
    for bolt in bolts.values():
        for each in _producers(bolt):
            consumers[each].append(bolt.id)
    # A bolt that must leave takes along what feeds it and what it feeds, so look until none leaves.
    here = dict.fromkeys(id for id in order if id in bolts and _may_leave_the_cluster(bolts[id]))
    while leaving := [
        id
        for id in here
        if any(each not in here for each in consumers[id]) or not _comes_to_one_task(bolts[id], here)
    ]:
        for id in leaving:
            del here[id]
    return tuple(here)


def _may_leave_the_cluster(bolt: BoltSpec) -> bool:
    # Spark itself writes what goes into a sink. Keyed state is kept where the stages keep it.
    return bolt.parallelism == 1 and not bolt.keyed and not isinstance(bolt.logic, DataFrameSink | TableMaker)


def _comes_to_one_task(bolt: BoltSpec, driver: Collection[str]) -> bool:
    return all(isinstance(each.grouping, Global) or each.source.component in driver for each in bolt.inputs)


def _producers(bolt: BoltSpec) -> Sequence[str]:
    return tuple(dict.fromkeys(each.source.component for each in bolt.inputs))


def _groupings(bolt: BoltSpec) -> Sequence[Grouping]:
    return [each.grouping for each in bolt.inputs]
