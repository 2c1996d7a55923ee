"""The page "The same topology on Spark": the plan, and what is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest

from stormlet import Collector, DirectStream, InvalidTopology, KeyedBolt, Topology, Tuple
from stormlet.cli import main
from stormlet.cli.inspecting.checks import findings
from stormlet.spark import DataFrameSink, DataFrameSpout, SparkFailed
from stormlet.spark.engine.planning.layout import lay_out
from stormlet.spark.engine.planning.notes import notes
from stormlet.spark.engine.planning.refusals import check_batch, check_stream
from stormlet.spark.stream.stream import StreamSource
from tests.cast import Count, Counting, Ticks, ignore, same

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "spark-engine.md").read_text("utf-8")
TABLE = dict(re.findall(r"^\| (.*) \| (.*?) <!-- tested by: test_refused --> \|$", PAGE, re.MULTILINE))


def check(target: Path, *options: str) -> int:
    return main(["check", str(target), "--engine", "spark", *options])


NOTED = """
from stormlet import Topology
topology = Topology("noted")
topology.bolt("end", print, topology.spout("s", [1]).shuffle())
"""


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "path", [*sys.path])


def spout(topology: Topology, id: str = "s", source: Any = range(3), **options: Any) -> Any:
    return topology.spout(id, source, **options)


# The plan.


def test_the_plan_of_the_word_count(capsys: pytest.CaptureFixture[str]) -> None:
    """The transcript is real."""
    (transcript,) = re.findall(r"^```text\n\$ [^\n]*\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert check(ROOT / "examples" / "word_count.py") == 0
    assert capsys.readouterr().out == transcript


def test_nothing_is_started(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """No process, and so no JVM."""
    monkeypatch.setattr(subprocess.Popen, "__init__", None)
    assert check(ROOT / "examples" / "flights.py") == 0
    assert "on Spark: 2 stages" in capsys.readouterr().out


def test_spouts() -> None:
    """Whatever takes from them."""
    topology = Topology("spouts")
    topology.bolt("join", same, spout(topology, "a").fields(), spout(topology, "b").fields())
    assert lay_out(topology.describe()).stages[0].heads == ("a", "b")


@pytest.mark.parametrize("grouping", ["shuffle", "local_or_shuffle", "none"])
def test_fused(grouping: str) -> None:
    """From one stage it needs no exchange; from two it does."""
    topology: Any = Topology("fused")
    s = spout(topology)
    near = topology.bolt("near", same, getattr(s, grouping)(), parallelism=2)
    far = topology.bolt("far", same, s.fields(), parallelism=2)
    topology.bolt("both", ignore, getattr(near, grouping)(), getattr(far, grouping)())
    layout = lay_out(topology.describe())
    assert [stage.fused for stage in layout.stages] == [("near",), (), ()]
    assert layout.heads["near"] == ("s",)


def test_begins() -> None:
    """Bolts that need the same stage begin beside each other."""
    topology: Any = Topology("begins")
    s = spout(topology)
    a = topology.bolt("a", same, s.fields(), parallelism=2)
    topology.bolt("b", ignore, s.all(), parallelism=2)
    topology.bolt("c", ignore, a.partial_key(), s.shuffle(), parallelism=2)
    assert [stage.heads for stage in lay_out(topology.describe()).stages] == [("s",), ("a", "b"), ("c",)]


def test_in_the_driver() -> None:
    """What ends in one task, unless a stage needs it or Spark writes it."""
    topology: Any = Topology("driver")
    s = spout(topology)
    report = topology.bolt("report", same, s.global_())
    topology.bolt("shown", ignore, report.shuffle())
    needed = topology.bolt("needed", same, s.global_())
    topology.bolt("spread", ignore, needed.fields(), parallelism=2)
    topology.bolt("write", DataFrameSink("out"), s.global_())
    layout = lay_out(topology.describe())
    assert layout.driver == ("report", "shown")
    assert [stage.heads for stage in layout.stages] == [("s",), ("needed", "write"), ("spread",)]


def test_printing() -> None:
    """A fused print is noted, that of the driver is not."""
    topology = Topology("printing")
    s = spout(topology)
    topology.bolt("there", print, s.shuffle())
    topology.bolt("here", print, s.global_())
    description = topology.describe()
    (note,) = notes(description, lay_out(description), {})
    assert note.startswith("bolt 'there' prints where its tasks run")


def test_notes_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are those of ``check``."""

    def fail(*_: object, **__: object) -> None:
        raise SparkFailed("it has not started")

    monkeypatch.setattr("stormlet.spark.run_on_spark", fail)
    (tmp_path / "noted.py").write_text(NOTED, "utf-8")
    assert check(tmp_path / "noted.py", "--set", "idle_max=2") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert main(["run", str(tmp_path / "noted.py"), "--engine", "spark", "--set", "idle_max=2"]) == 1
    noted = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note: ")]
    assert shown.endswith(" ".join(f"{each}." for each in noted))
    assert len(noted) == 2


class Reminds(KeyedBolt[int, int, None]):
    """Has timers."""

    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        """Do nothing."""

    def on_timer(self, at: float, out: Collector[None]) -> None:
        """Do nothing."""


class Merges(KeyedBolt[int, int, int]):
    """Can be merged."""

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Do nothing."""

    def merge(self, other: Self) -> None:
        """Do nothing."""


def test_notes_of_state() -> None:
    """Timers, the topology's own file, and a merge that is not used before the exchange."""
    topology = Topology("state", state="counts.state")
    merged = topology.bolt("merge", Merges, spout(topology).fields())
    topology.bolt("remind", Reminds, merged.fields())
    description = topology.describe()
    said = list(notes(description, lay_out(description), {}))
    assert [each.split()[0] for each in said] == ["state='counts.state'", "merge", "timers"]


def test_functions_that_keep_something() -> None:
    """In the way that the page says, in batches and in streams."""
    seen: list[object] = []
    topology = Topology("keeping")
    s = spout(topology)
    for id, logic in {
        "method": seen.append,
        "closure": lambda value: seen.append(value),
        "partial": partial(map, seen),
        "plain": len,
    }.items():
        topology.bolt(id, logic, s.shuffle())
    description = topology.describe()
    for in_epochs in (False, True):
        layout = lay_out(description, in_epochs=in_epochs)
        assert [each.split("'")[1] for each in notes(description, layout, {})] == [
            "method",
            "closure",
            "partial",
        ]


# Options without effect.

OTHERS = {"timeout_buckets", "timeout_restarts_on", "acker_high_water"}
"""Further ones about timeouts and ackers, which the page does not list."""


def test_options_without_effect(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that the page lists, and a warning about one of them is left out."""
    text = PAGE.split("Options that have no effect", 1)[1].split("more than one acker", 1)[0]
    listed = set(re.findall(r"`([a-z_]+)`", text))
    settings = {**dict.fromkeys(listed, 7.0), "ackers": 2}
    topology = Topology("settings", drain_timeout=1, replay_delay=2)
    topology.bolt("fused", ignore, spout(topology).shuffle(), parallelism=3)
    description = topology.describe()
    noted = {each.partition("=")[0] for each in notes(description, lay_out(description), settings)}
    assert noted == {*listed - {"check"}, "ackers", "parallelism"}
    assert [each.rule for each in findings(description)] == ["late replay"]
    (tmp_path / "late.py").write_text(LATE, "utf-8")
    assert check(tmp_path / "late.py", "--strict") == 0
    assert "; no warnings" in capsys.readouterr().out


LATE = """
from stormlet import Topology
topology = Topology("settings", drain_timeout=1, replay_delay=2)
topology.bolt("end", lambda value: None, topology.spout("s", [1]).shuffle())
"""


# Refused.


def simple(source: Any = (1,), logic: Any = ignore, **options: Any) -> Topology:
    topology: Any = Topology("refused", **options)
    topology.bolt("end", logic, topology.spout("s", source).shuffle())
    return topology  # type: ignore[no-any-return]


def looping() -> Topology:
    topology: Any = Topology("looping")
    bolt = topology.bolt("a", same, spout(topology).shuffle())
    topology.connect(bolt, bolt.shuffle())
    return topology  # type: ignore[no-any-return]


def direct() -> Topology:
    topology: Any = Topology("direct")
    topology.bolt("end", ignore, topology.spout("s", [1], outputs=DirectStream(int)).direct())
    return topology  # type: ignore[no-any-return]


def ticking() -> Topology:
    topology = Topology("ticking")
    topology.bolt("clock", Ticks, spout(topology).shuffle(), tick=1)
    return topology


async def arriving() -> AsyncIterator[int]:
    yield 1


def unmade(cls: type[Any], **attributes: object) -> Any:
    made: Any = object.__new__(cls)
    made.__dict__.update(attributes)
    return made


def with_main() -> Topology:
    made_here = type("Made", (Count,), {"__module__": "__main__"})
    return simple(logic=made_here)


def frame(**attributes: object) -> Any:
    plain = {"resumes": False, "state_place": "", "order_by": (), "transport": "arrow"}
    return unmade(DataFrameSpout, **{**plain, **attributes})


def after_a_sink() -> Topology:
    topology: Any = Topology("after")
    written = topology.bolt("write", DataFrameSink("out"), spout(topology).shuffle())
    topology.bolt("report", Count, written.global_())
    return topology  # type: ignore[no-any-return]


class Keeps(Count):
    """Keeps an argument."""

    def __init__(self, key: object) -> None:
        super().__init__()
        self.key = key


class MergesOne(Count):
    """Cannot merge."""

    merge: Any = id


REFUSED: dict[str, Callable[[], Topology]] = {
    "a cycle": looping,
    "`ackers=0`": partial(simple, ackers=0),
    "`tick`": ticking,
    "a `DirectStream`": direct,
    "a spout without a source": partial(simple, None),
    "a `Spout` class": partial(simple, Counting),
    "an asynchronous source": partial(simple, arriving),
    "a source by `stream(...)`": partial(simple, unmade(StreamSource)),
    "`DataFrameSpout(checkpoint=...)`": partial(simple, frame(resumes=True)),
    "`DataFrameSpout(order_by=...)`": partial(simple, frame(order_by=("id",))),
    '`DataFrameSpout(transport="rows")`': partial(simple, frame(transport="rows")),
    "a bolt that takes from a `DataFrameSink`": after_a_sink,
    "`DataFrameSink(exactly_once=True)`": partial(simple, frame(), DataFrameSink("out", exactly_once=True)),
    "a `merge` that does not take two inputs": partial(simple, logic=MergesOne),
    "a class of `__main__`, or made in a function": with_main,
}


@pytest.mark.parametrize("what", [*TABLE, *REFUSED.keys() - TABLE.keys()])
def test_refused(what: str) -> None:
    """Each row is refused, and the way out is that of the sentence."""
    with pytest.raises(InvalidTopology) as refused:
        check_batch(REFUSED[what]().describe())
    way_out = str(refused.value).rpartition("; ")[2]
    assert way_out.startswith(TABLE[what])


STREAM = unmade(StreamSource)
TABLE_OF_STREAMS = dict(
    re.findall(r"^\| (.*) \| (.*?) <!-- tested by: test_refused_in_a_stream --> \|$", PAGE, re.MULTILINE)
)


def beside_a_stream() -> Topology:
    topology = simple(STREAM)
    topology.bolt("more", ignore, spout(topology, "others").shuffle())
    return topology


REFUSED_IN_A_STREAM: dict[str, Callable[[], Topology]] = {
    "no spout reads a stream": simple,
    "another spout beside the stream": beside_a_stream,
    "an argument that a bolt keeps and pickle refuses, such as a lambda": partial(
        simple, STREAM, partial(Keeps, lambda value: value)
    ),
    '`DataFrameSink(mode="overwrite")`': partial(simple, STREAM, DataFrameSink("out", mode="overwrite")),
}


@pytest.mark.parametrize("what", [*TABLE_OF_STREAMS, *REFUSED_IN_A_STREAM.keys() - TABLE_OF_STREAMS.keys()])
def test_refused_in_a_stream(what: str) -> None:
    """Each row is refused, and the sentence ends with the way out."""
    with pytest.raises(InvalidTopology) as refused:
        check_stream(REFUSED_IN_A_STREAM[what]().describe())
    assert str(refused.value).endswith(TABLE_OF_STREAMS[what])


def test_refused_in_a_stream_as_in_a_batch() -> None:
    """Reasons of bolts and of the topology are the same; a sink that writes exactly once is none."""
    for options, logic in (({"ackers": 0}, ignore), ({"tick": 1}, Ticks), ({}, MergesOne)):
        topology = simple(STREAM, logic, **options)
        with pytest.raises(InvalidTopology) as batch:
            check_batch(topology.describe())
        with pytest.raises(InvalidTopology) as stream:
            check_stream(topology.describe())
        assert str(stream.value) in str(batch.value)
    check_stream(simple(STREAM, DataFrameSink("out", exactly_once=True)).describe())


def test_every_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two of them are two lines."""
    (tmp_path / "two.py").write_text(TWO, "utf-8")
    assert check(tmp_path / "two.py") == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("on Spark, ")) == ("", 2)


TWO = """
from stormlet import Topology
topology = Topology("two", ackers=0)
topology.bolt("end", print, topology.spout("s").shuffle())
"""


# Code.


def test_functions_travel_by_value() -> None:
    """A lambda and a closure are fine."""
    held = [1]

    def values() -> Iterator[list[int]]:
        yield held

    check_batch(simple(values, lambda value: held).describe())


def test_classes_travel_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of the file that is checked are found; one that is made in a function is not."""
    record = "class Word(msgspec.Struct):\n    text: str\n"
    begin = "import msgspec\nfrom stormlet import Topology\n"
    inner = "\n".join(f"    {line}" for line in (record + "return Word").splitlines())
    end = 'topology = Topology("t")\ntopology.bolt("b", print, topology.spout("s", [], outputs=Word).shuffle())\n'
    (tmp_path / "found.py").write_text(f"{begin}{record}{end}", "utf-8")
    (tmp_path / "made.py").write_text(f"{begin}def make():\n{inner}\nWord = make()\n{end}", "utf-8")
    assert [check(tmp_path / "found.py"), check(tmp_path / "made.py")] == [0, 2]
    assert "spout 's' needs the class made.make.<locals>.Word, which is not found" in capsys.readouterr().err
