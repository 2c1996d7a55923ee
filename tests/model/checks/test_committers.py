"""Rules for committers (law X9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec
import pytest

from stormlet import BasicBolt, Committer, Epoch, EpochBolt, InvalidTopology, SqliteTable, Topology
from stormlet.model.checks.committers import rows_of, works_by_epochs
from stormlet.model.checks.durable import check_durable, check_volatile
from stormlet.model.state.committers import CommitterFactory, RowSpec, TableFactory, row_type


class Entry(msgspec.Struct, frozen=True):
    """A row."""

    id: int


class Write(Committer[Entry]):
    """A committer with declared rows."""

    def commit(self, epoch: Epoch, rows: Sequence[Entry]) -> None:
        """Do nothing."""


class Plain(Committer):  # type: ignore[type-arg]
    """A committer of anything."""

    def commit(self, epoch: Epoch, rows: Sequence[Any]) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("made", "kind"),
    [(Write, Entry), (Plain, Any)],
    ids=["declared", "plain"],
)
def test_the_rows_of_a_committer_are_its_type_argument(made: type[Committer[Any]], kind: object) -> None:
    """Any without."""
    assert row_type(made) == kind


def test_only_committers_have_rows() -> None:
    """Any other bolt has none."""
    assert rows_of("bolt 'a'", Write) == RowSpec(Entry)
    assert rows_of("bolt 'a'", print) is None


def test_rows_of_a_table_are_those_of_its_factory() -> None:
    """The table is known before any instance, if it is the state's."""
    own, other = SqliteTable("entries", Entry), SqliteTable("entries", Entry, path="some.db")
    assert rows_of("bolt 'a'", own) == RowSpec(Entry, own.table, own.columns_of)
    assert rows_of("bolt 'a'", other) == RowSpec(Entry)


class Files(CommitterFactory):
    """A sink that another engine may write by several tasks."""

    @property
    def rows_kept(self) -> RowSpec:
        return RowSpec(bytes, has_tasks_elsewhere=True)

    def __call__(self) -> BasicBolt[Any, None]:
        raise AssertionError("nothing is run here")


def test_a_committer_may_have_several_tasks_where_another_engine_writes_its_rows() -> None:
    """In process it has one, with state and without."""
    topology = Topology("files")
    topology.bolt("files", Files(), topology.spout("rows", [1]).shuffle(), parallelism=2)
    described = topology.describe()
    assert described.has_epochs
    for check in (check_durable, check_volatile):
        with pytest.raises(InvalidTopology, match=r"bolt 'files' is a committer.*cannot have parallelism=2"):
            check(described)


def test_a_factory_must_say_what_it_keeps() -> None:
    """Nobody else knows."""
    with pytest.raises(NotImplementedError):
        assert CommitterFactory().rows_kept


def test_rows_that_cannot_be_kept_are_refused() -> None:
    """When the topology is built."""

    class Things(Committer[object]):
        """A committer of what nobody knows."""

    with pytest.raises(InvalidTopology, match="bolt 'write': its rows: "):
        rows_of("bolt 'write'", Things)


@pytest.mark.parametrize("option", [{"parallelism": 2}, {"concurrency": 2}, {"executor": "thread"}])
def test_a_committer_has_one_task_and_one_call(option: dict[str, Any]) -> None:
    """Else epochs would overtake each other."""
    topology = Topology("alone")
    source = topology.spout("rows", [Entry(1)])
    with pytest.raises(
        InvalidTopology, match=f"bolt 'write' is a committer.*cannot have {next(iter(option))}="
    ):
        topology.bolt("write", Write, source.shuffle(), **option)


def test_a_committer_defines_commit() -> None:
    """And no execute."""

    class Nothing(Committer[int]):
        """Forgets it."""

    class Both(Write):
        """Has one too many."""

        def execute(self, tup: object, out: object) -> None:
            """Do nothing."""

    topology = Topology("defining")
    source = topology.spout("rows", [1])
    with pytest.raises(InvalidTopology, match="Nothing defines no commit"):
        topology.bolt("write", Nothing, source.shuffle())
    with pytest.raises(InvalidTopology, match="Both is a Committer; define commit instead of execute"):
        topology.bolt("write", cast("Any", Both), source.shuffle())


def test_the_bases_have_nothing_to_commit() -> None:
    """They say what to define."""
    with pytest.raises(NotImplementedError, match="must define commit"):
        Committer[int]().commit(Epoch(1, "line"), [])
    with pytest.raises(NotImplementedError):
        TableFactory[int]().columns_of(1)


def test_a_topology_with_a_committer_has_epochs() -> None:
    """Also one without state."""
    topology = Topology("epochs")
    topology.bolt("write", Write, topology.spout("rows", [Entry(1)]).shuffle())
    assert topology.describe().has_epochs


class Sum(EpochBolt[int, int]):
    """Forgets its execute."""


def test_a_bolt_of_epochs_runs_on_the_loop() -> None:
    """Where its epochs end."""
    with pytest.raises(InvalidTopology, match=r"bolt 'sum' works on epochs.*asyncio.to_thread"):
        works_by_epochs("bolt 'sum'", Sum, "thread")
    assert works_by_epochs("bolt 'sum'", Sum, "loop")
    assert not works_by_epochs("bolt 'sum'", print, "thread")


def test_a_bolt_of_epochs_defines_execute() -> None:
    """Its base says so."""
    with pytest.raises(NotImplementedError, match="Sum must define execute"):
        Sum().execute(cast("Any", None), cast("Any", None))
