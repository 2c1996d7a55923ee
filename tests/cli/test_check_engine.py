"""``stormlet check --engine spark``: the stages, what has no effect there, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

import stormlet
from stormlet.cli import main
from tests.cli.flows import write

EXAMPLES = Path(__file__).parents[2] / "examples"
ROOT = Path(stormlet.__file__).parents[1]


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns, and no module that another test's file has left."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "flow", raising=False)


def check(capsys: pytest.CaptureFixture[str], target: object, *options: str, code: int = 0) -> str:
    assert main(["check", str(target), "--engine", "spark", *options]) == code
    return capsys.readouterr().out


def test_the_stages_of_the_word_count(capsys: pytest.CaptureFixture[str]) -> None:
    """What is fused and what is exchanged, who reads, what runs in the driver, and what was set in vain."""
    assert check(capsys, EXAMPLES / "word_count.py") == (
        "word-count: 1 spout, 3 bolts, 8 tasks, 1 acker; no warnings\n"
        "\n"
        "on Spark: 2 stages, 1 exchange, and the driver\n"
        "\n"
        "stage 0   ▷ lines   read by the driver\n"
        "          ● split   fused\n"
        "exchange    split ─ fields ─▶ count\n"
        "stage 1   ● count   4 tasks\n"
        "collect     count ─ global ─▶ report\n"
        "driver    ● report  1 task\n"
        "\n"
        "fused: a task in each partition of the stage takes what is emitted there\n"
        "\n"
        "note: parallelism=2 of bolt 'split' has no effect on Spark: it is fused into\n"
        "  stage 0, and has a task in each partition there.\n"
    )


def test_heads_that_share_an_exchange(capsys: pytest.CaptureFixture[str]) -> None:
    """Each arrow has the grouping and its key, and arrows stand below each other."""
    shown = check(capsys, EXAMPLES / "flights.py")
    assert (
        "exchange    flights ─ fields carrier ─────────────▶ by carrier\n"
        "            flights ─ fields origin, destination ─▶ by route\n"
        "stage 1   ● by carrier  2 tasks\n"
        "          ● by route    4 tasks\n"
    ) in shown
    assert "fused" not in shown


@pytest.mark.parametrize(
    ("example", "stages"),
    [
        ("join.py", "2 stages, 1 exchange, and the driver"),
        ("recipes/database.py", "1 stage, no exchange, and the driver"),
        ("recipes/deduplicate.py", "2 stages, 1 exchange, and the driver"),
        ("recipes/http_calls.py", "1 stage, no exchange, and the driver"),
        ("recipes/rate_limit.py", "1 stage, no exchange, and the driver"),
    ],
)
def test_examples_fit_a_terminal(capsys: pytest.CaptureFixture[str], example: str, stages: str) -> None:
    """No line is wider than that."""
    shown = check(capsys, EXAMPLES / example)
    assert f"\non Spark: {stages}\n" in shown
    assert all(cell_len(line) <= 80 for line in shown.splitlines())


def test_a_stream_that_passes_stages(capsys: pytest.CaptureFixture[str]) -> None:
    """Its producer's stage is named, where that is not the one before; so is a named stream."""
    write("""
    topology = Topology("passing")
    s = topology.spout("s", [1], outputs={"default": int, "late": None})
    a = topology.bolt("a", lambda value: value, s.fields(), parallelism=2)
    topology.bolt("b", lambda value: None, a.fields(), s.named("late").all(), parallelism=2, concurrency=4)
    """)
    shown = check(capsys, "flow.py")
    assert (
        "stage 1   ● a  2 tasks\n"
        "exchange    s (stage 0) ─ late: all ─▶ b\n"
        "            a           ─ fields ────▶ b\n"
        "stage 2   ● b  2 tasks, 4 at a time\n"
    ) in shown


def test_names_too_long_for_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The target of an arrow has a line of its own."""
    write(f"""
    topology = Topology("long")
    s = topology.spout("{"s" * 40}", [1])
    topology.bolt("{"b" * 40}", lambda value: None, s.fields(), parallelism=2)
    """)
    shown = check(capsys, "flow.py").splitlines()
    arrow = next(place for place, line in enumerate(shown) if line.endswith("▶"))
    assert shown[arrow : arrow + 2] == [f"exchange    {'s' * 40} ─ fields ─▶", f"{' ' * 14}{'b' * 40}"]


def test_a_sink_is_written_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    """Wherever its rows gather."""
    write("""
    from stormlet.spark import DataFrameSink
    topology = Topology("sink")
    topology.bolt("write", DataFrameSink("out"), topology.spout("s", [1]).shuffle())
    """)
    assert "          ● write  fused, written at the end\n" in check(capsys, "flow.py")


def test_what_is_merged_before_the_exchange(capsys: pytest.CaptureFixture[str]) -> None:
    """Inputs of ordinary bolts, and those that become a state; a bolt whose outputs are taken has a note instead."""
    write("""
    from stormlet import BasicBolt, KeyedBolt, Value
    class Sum(BasicBolt):
        @staticmethod
        def merge(one, other): return one
        def execute(self, tup, out): pass
    class Count(KeyedBolt):
        total = Value(int, 0)
        def execute(self, tup, out): self.total += 1
        def merge(self, other): self.total += other.total
    topology = Topology("merging")
    s = topology.spout("s", [1])
    topology.bolt("sum", Sum, s.fields())
    topology.bolt("count", Count, s.global_())
    topology.bolt("print", print, topology.bolt("seen", Count, s.fields()).global_())
    """)
    shown = check(capsys, "flow.py")
    assert "s ─ fields, merged ─▶ sum\n" in shown
    assert "s ─ global, merged ─▶ count\n" in shown
    assert "s ─ fields ─────────▶ seen\n" in shown
    assert "merged: what has equal keys becomes one before the exchange\n" in shown
    assert "note: merge of bolt 'seen' is not used" in shown
    assert shown.count("note: merge") == 1


def test_output_without_the_marks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where they cannot be shown, others stand for them."""
    monkeypatch.setattr("stormlet.cli.check.can_show", lambda text: False)
    shown = check(capsys, EXAMPLES / "word_count.py")
    assert "exchange    split - fields -> count\n" in shown
    assert shown.isascii()


# Notes and warnings.


def test_settings_are_noted_with_the_topologys_own_options(capsys: pytest.CaptureFixture[str]) -> None:
    """A value that the engine itself has chosen is not: it is no wish of the user's."""
    write("""
    from stormlet.spark import DataFrameSink
    topology = Topology("noted", queue_capacity=5)
    topology.bolt("write", DataFrameSink("out"), topology.spout("s", [1]).shuffle())
    """)
    notes = [each for each in check(capsys, "flow.py", "--set", "idle_max=9").splitlines() if "note:" in each]
    assert [each.partition(" has")[0] for each in notes] == [
        "note: queue_capacity=5",
        "note: idle_max=9",
    ]


def test_notes_are_no_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    """``--strict`` passes with them."""
    assert "note:" in check(capsys, EXAMPLES / "word_count.py", "--strict", code=0)


def test_warnings_follow_the_stages(capsys: pytest.CaptureFixture[str]) -> None:
    """With ``--strict`` they count, as ever."""
    write("""
    topology = Topology("warned")
    topology.bolt("end", lambda value: None, topology.spout("s", [1]).global_(), parallelism=2)
    """)
    headline, *rest = check(capsys, "flow.py", "--strict", code=1).splitlines()
    assert headline.endswith("; 1 warning")
    assert rest.index("stage 1   ● end  2 tasks") < rest.index(
        next(line for line in rest if "idle tasks:" in line)
    )


LATE = """
    topology = Topology("late", drain_timeout=1, replay_delay=5, acker_high_water=1)
    topology.bolt("end", lambda value: None, topology.spout("s", [1]).shuffle())
"""


def test_warnings_about_time_and_room_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """On Spark nothing drains, and no acker overflows; in process, they are told."""
    write(LATE)
    assert "; no warnings" in check(capsys, "flow.py")
    sys.modules.pop("flow")
    assert main(["check", "flow.py"]) == 0
    shown = capsys.readouterr().out
    assert "high water:" in shown
    assert "late replay:" in shown
    assert "on Spark" not in shown


# Refused.


def test_a_refused_topology_is_invalid(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 2, every reason is a line, and nothing else is shown."""
    write("""
    topology = Topology("refused", ackers=0)
    topology.bolt("end", lambda value: None, topology.spout("s").shuffle())
    """)
    assert main(["check", "flow.py", "--engine", "spark"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    first, second = shown.err.splitlines()
    assert first == (
        "stormlet: on Spark, topology 'refused' has ackers=0, and Spark's work is checked by the ledger; leave out "
        "ackers=0"
    )
    assert second.startswith(
        "    on Spark, spout 's' has no source, and nothing can be emitted into a batch; pass a"
    )


def test_settings_can_make_a_topology_invalid(capsys: pytest.CaptureFixture[str]) -> None:
    """What Spark cannot do is refused wherever it is asked for."""
    assert main(["check", str(EXAMPLES / "word_count.py"), "--engine", "spark", "--set", "ackers=0"]) == 2
    assert "has ackers=0" in capsys.readouterr().err
    assert main(["check", str(EXAMPLES / "word_count.py"), "--set", "ackers=0"]) == 0


def test_there_are_two_engines(capsys: pytest.CaptureFixture[str]) -> None:
    """Another one is wrong usage."""
    assert main(["check", str(EXAMPLES / "word_count.py"), "--engine", "process"]) == 0
    assert "on Spark" not in capsys.readouterr().out
    assert main(["check", str(EXAMPLES / "word_count.py"), "--engine", "flink"]) == 2


WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(["pyspark", "py4j", "pyarrow", "pandas", "numpy"]))
from stormlet.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_neither_pyspark_nor_java_is_needed() -> None:
    """The plan is arithmetic."""
    command = [sys.executable, "-c", WITHOUT, "check", str(EXAMPLES / "word_count.py"), "--engine", "spark"]
    environment = {"PATH": "", "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "stage 1   ● count   4 tasks\n" in done.stdout


def test_a_cycle_is_refused_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """Though no stages can be drawn for it."""
    write("""
    topology = Topology("looping")
    a = topology.bolt("a", lambda value: value, topology.spout("s", [1]).shuffle(), outputs=int)
    topology.connect(a, a.shuffle())
    """)
    assert check(capsys, "flow.py", code=2) == ""
