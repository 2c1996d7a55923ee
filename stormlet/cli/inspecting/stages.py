"""The stages in which Spark runs a topology, as text: what is in each, and what comes to it by the exchange before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from stormlet.cli.inspecting.inspection import Inspection
from stormlet.core.shortened import counted, printable
from stormlet.drawing.drawing import Drawing, Edge, Node, draw
from stormlet.model.description import Description
from stormlet.spark.engine.planning.combiners import combiner_of, folds
from stormlet.spark.engine.planning.layout import Layout, lay_out
from stormlet.spark.engine.planning.notes import notes
from stormlet.spark.engine.planning.refusals import check_on_spark, reads_stream
from stormlet.spark.sink.dataframe_sink import DataFrameSink
from stormlet.spark.source.dataframe_spout import DataFrameSpout
from stormlet.spark.stream.stream import StreamSource

LABEL = 10
"""Columns of ``stage 12`` and the like."""


def stages_of(inspection: Inspection, width: int) -> str:
    """The stages, in lines that are no wider than ``width`` columns where names allow it. Raises
    :class:`~stormlet.errors.InvalidTopology` if Spark cannot run the topology."""
    shown = _Stages(inspection.description, draw(inspection.plan), _layout(inspection), width)
    return "\n".join([shown.headline, "", *shown.lines(), *shown.legend()]) + "\n"


def notes_of(inspection: Inspection) -> Iterator[str]:
    """Sentences for the user before it runs. Raises :class:`~stormlet.errors.InvalidTopology` if Spark cannot run the
    topology."""
    return notes(inspection.declared, _layout(inspection), inspection.settings.values)


def _layout(inspection: Inspection) -> Layout:
    check_on_spark(inspection.description)
    return lay_out(inspection.description, in_epochs=reads_stream(inspection.description))


class _Stages:
    def __init__(self, description: Description, drawing: Drawing, layout: Layout, width: int) -> None:
        self._description = description
        self._nodes = {node.id: node for node in drawing.nodes}
        self._edges = drawing.edges
        self._layout = layout
        self._width = width
        self._longest = max(min(cell_len(printable(id)), width // 3) for id in self._nodes)

    @property
    def headline(self) -> str:
        """The number of stages and exchanges."""
        between = len(self._layout.stages) - 1
        exchanges = counted(between, "exchange") if between else "no exchange"
        driver = ", and the driver" if self._layout.driver else ""
        return f"on Spark: {counted(between + 1, 'stage')}, {exchanges}{driver}"

    def lines(self) -> Iterator[str]:
        """The components and arrows, from the first stage to the driver."""
        for stage in self._layout.stages:
            if stage.number:
                yield from self._arrows("exchange", stage.heads)
            yield from self._components(f"stage {stage.number}", (*stage.heads, *stage.fused))
        if self._layout.driver:
            yield from self._arrows("collect", self._layout.driver)
            yield from self._components("driver", self._layout.driver)

    def legend(self) -> Iterator[str]:
        """An explanation of the words that a reader may not know."""
        if any(stage.fused for stage in self._layout.stages):
            yield ""
            yield "fused: a task in each partition of the stage takes what is emitted there"
        if any(map(self._is_merged, self._edges)):
            yield ""
            yield "merged: what has equal keys becomes one before the exchange"

    def _components(self, label: str, ids: Sequence[str]) -> Iterator[str]:
        for id in ids:
            node = self._nodes[id]
            mark, name = "▷" if node.is_spout else "●", printable(id)
            details = ", ".join(self._details(node))
            pad = " " * max(self._longest - cell_len(name), 0)
            yield f"{label:<{LABEL}}{mark} {name}{pad}  {details}".rstrip()
            label = ""

    def _details(self, node: Node) -> Iterator[str]:
        tasks, *others = node.details
        if node.is_spout:
            by_spark = isinstance(self._description.spouts[node.id].source, DataFrameSpout | StreamSource)
            yield "read by Spark" if by_spark else "read by the driver"
            return
        yield "fused" if any(node.id in stage.fused for stage in self._layout.stages) else tasks
        yield from others
        if isinstance(self._description.bolts[node.id].logic, DataFrameSink):
            yield "written after each epoch" if self._layout.in_epochs else "written at the end"

    def _arrows(self, label: str, targets: Sequence[str]) -> Iterator[str]:
        here = self._layout.stage_of(targets[0])
        edges = [each for each in self._edges if self._crosses_to(each, here)]
        sources = _padded([self._source(each, here) for each in edges], " ")
        groupings = _padded([f"{self._grouping(each)} ─" for each in edges], "─")
        for edge, source, grouping in zip(edges, sources, groupings, strict=True):
            yield from self._arrow(f"{label:<{LABEL}}  {source} ─ {grouping}▶", printable(edge.target))
            label = ""

    def _crosses_to(self, edge: Edge, stage: int) -> bool:
        return self._layout.stage_of(edge.target) == stage > self._layout.stage_of(edge.source)

    def _grouping(self, edge: Edge) -> str:
        return f"{printable(edge.label)}{', merged' if self._is_merged(edge) else ''}"

    def _is_merged(self, edge: Edge) -> bool:
        bolt = self._description.bolts[edge.target]
        inputs = [each for each in bolt.inputs if each.source.component == edge.source]
        if len(inputs) > 1:  # whose keys need not mean the same
            return False
        return folds(bolt, self._description) or combiner_of(bolt, inputs[0].grouping) is not None

    def _source(self, edge: Edge, here: int) -> str:
        """The producer, with its stage if that is not the one before."""
        stage = self._layout.stage_of(edge.source)
        name = printable(edge.source)
        return name if stage == here - 1 else f"{name} (stage {stage})"

    def _arrow(self, arrow: str, target: str) -> Sequence[str]:
        if cell_len(arrow) + 1 + cell_len(target) <= self._width:
            return [f"{arrow} {target}"]
        return [arrow, f"{'':<{LABEL}}    {target}"]


def _padded(texts: Sequence[str], by: str) -> Sequence[str]:
    longest = max(map(cell_len, texts))
    return [text + by * (longest - cell_len(text)) for text in texts]
