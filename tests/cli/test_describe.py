"""``stormlet describe``: what is shown, and where it says that values came from."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from stormlet import BasicBolt, BatchBolt, Bolt, Collector, Spout, SpoutCollector, Topology, Tuple
from stormlet.cli import main
from stormlet.cli.describe import kind_of
from tests.cli.flows import write

FLOW = """
    from stormlet import BasicBolt, DirectStream
    from dataclasses import dataclass

    @dataclass
    class Row:
        word: str
        count: int

    class Count(BasicBolt[Row, Row]):
        def execute(self, tup, out): pass
        def tick(self, out): pass

    topology = Topology("flow", max_spout_pending=50, ackers=2, max_attempts=5)
    rows = topology.spout("rows", outputs=Row, max_attempts=2)
    counted = topology.bolt(
        "count", Count, rows.fields("word"), parallelism=3, tick=2.5, on_error="stop",
        outputs={"default": Row, "tasks": DirectStream(["n", "m"]), "log": None},
    )
    topology.bolt("write", print, counted.shuffle(), counted.named("tasks").direct(), rows.all(),
                  concurrency=4, executor="thread", queue_capacity=10)
    """


def described(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["describe", "flow.py", *arguments]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    return output.out


def origins(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, tuple[object, str]]:
    found = json.loads(described(capsys, "--json", *arguments))["configuration"]
    return {each["option"]: (each["value"], each["origin"]) for each in found if each["component"] is None}


def test_components_streams_and_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    """Every component with its kind, the ids of its tasks, how they run, its inputs and its streams."""
    write(FLOW)
    text = described(capsys)
    assert text.partition("\n\nconfiguration\n")[0] == (
        "flow: 1 spout, 2 bolts, 5 tasks, 2 ackers\n"
        "\n"
        "rows  spout, fed by running.emit\n"
        "  tasks    3\n"
        "  emits    default: Row(word, count) to count, write\n"
        "\n"
        "count  bolt, class Count(BasicBolt)\n"
        "  tasks    4 to 6\n"
        "  runs     tick every 2.5 s, an exception stops the topology\n"
        "  gets     rows: fields word\n"
        "  emits    default: Row(word, count) to write\n"
        "           tasks: (n, m) (direct) to write\n"
        "           log: any values to nobody\n"
        "\n"
        "write  bolt, function print\n"
        "  tasks    7\n"
        "  runs     4 inputs at a time, in threads\n"
        "  gets     count: shuffle\n"
        "           count, stream tasks: direct\n"
        "           rows: all\n"
        "\n"
        "__acker  acker, the engine's own\n"
        "  tasks    1 to 2"
    )


def test_every_value_says_where_it_came_from(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Default, topology, file, environment, --set, component: the last that says something wins."""
    write(FLOW)
    Path("own.toml").write_text("ackers = 3\nidle_max = 0.2\nmessage_timeout = 60\nslice = 0.004\n", "utf-8")
    monkeypatch.setenv("STORMLET_IDLE_MAX", "0.3")
    monkeypatch.setenv("STORMLET_MESSAGE_TIMEOUT", "70")
    found = origins(capsys, "--config", "own.toml", "--set", "message_timeout=none")
    assert found["drain_timeout"] == (30.0, "default")
    assert found["max_attempts"] == (5, "topology"), "it was given, though it is the default"
    assert found["max_spout_pending"] == (50, "topology")
    assert found["ackers"] == (3, "own.toml")
    assert found["slice"] == (0.004, "own.toml")
    assert found["idle_max"] == (0.3, "STORMLET_IDLE_MAX")
    assert found["message_timeout"] == (None, "--set")


def test_values_of_components(capsys: pytest.CaptureFixture[str]) -> None:
    """What a component says for itself stands below, with its name as origin, and no setting overrides it."""
    write(FLOW)
    lines = described(capsys, "--set", "max_attempts=9").splitlines()
    options = [line.split(maxsplit=2) for line in lines[lines.index("configuration") + 1 :]]
    assert ["max_attempts", "9", "--set"] in options
    assert options[-3:] == [
        ["max_attempts", "2", "spout 'rows'"],
        ["tick", "2.5", "bolt 'count'"],
        ["queue_capacity", "10", "bolt 'write'"],
    ]


def test_values_are_shown_as_set_takes_them(capsys: pytest.CaptureFixture[str]) -> None:
    """None is none, and a whole number of seconds has no decimals."""
    write(FLOW)
    words = [line.split() for line in described(capsys, "--set", "message_timeout=none").splitlines()]
    assert ["message_timeout", "none", "--set"] in words
    assert ["drain_timeout", "30", "default"] in words
    assert ["slice", "0.002", "default"] in words


def test_names_without_effect_are_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    """A name of Storm's that does nothing here is listed with the reason."""
    write(FLOW)
    assert "--set: topology.debug has no effect: " in described(capsys, "--set", "topology.debug=true")


def test_json_is_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    """It has the same facts, in records."""
    write(FLOW)
    found = json.loads(described(capsys, "--json"))
    assert (found["name"], found["counts"]) == ("flow", "1 spout, 2 bolts, 5 tasks, 2 ackers")
    rows, count, write_, acker = found["components"]
    assert (rows["type"], rows["tasks"], rows["inputs"]) == ("spout", [3], [])
    assert count["inputs"] == [{"component": "rows", "stream": "default", "grouping": "fields word"}]
    assert count["streams"][1] == {
        "name": "tasks",
        "schema": "(n, m)",
        "fields": ["n", "m"],
        "direct": True,
        "subscribers": ["write"],
    }
    assert write_["runs"] == ["4 inputs at a time", "in threads"]
    assert (acker["id"], acker["tasks"]) == ("__acker", [1, 2])


def test_without_ackers_there_are_none(capsys: pytest.CaptureFixture[str]) -> None:
    """With ackers=0 the engine has no component of its own, and ids begin with the first spout's."""
    write(FLOW)
    text = described(capsys, "--set", "ackers=0")
    assert "__acker" not in text
    assert "\nrows  spout, fed by running.emit\n  tasks    1\n" in text


def test_it_fits_80_columns_and_writes_nothing_but_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long lists are wrapped below their label, and ids cannot control the terminal."""
    monkeypatch.setenv("COLUMNS", "80")
    write(
        """
        topology = Topology("evil\\x1b[2J\\n")
        s = topology.spout("s\\n", [1], outputs=[f"a_rather_long_name_{n}" for n in range(12)])
        topology.bolt("b", print, s.fields(*[f"a_rather_long_name_{n}" for n in range(12)]))
        """
    )
    lines = described(capsys).splitlines()
    assert max(map(len, lines)) <= 80
    assert all(line.isprintable() for line in lines)
    assert lines[0].startswith("evil\\x1b[2J\\n: ")


def numbers() -> Iterator[int]:
    yield 1


async def later() -> AsyncIterator[int]:
    yield 1


async def double(value: int) -> int:
    return value


class Source(Spout[int]):
    def next_tuple(self, out: SpoutCollector[int]) -> None: ...


class Hold(Bolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None: ...


class Count(BasicBolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None: ...


class Write(BatchBolt[int, int]):
    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[int]) -> None: ...


class Call:
    def __call__(self, value: int) -> int:
        return value


def make() -> Hold:
    return Hold()


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (None, "fed by running.emit"),
        ([1], "iterable list"),
        (iter(()), "iterable tuple_iterator"),
        (numbers, "generator function numbers"),
        (partial(numbers), "generator function numbers"),
        (later, "async generator function later"),
        (Source, "class Source(Spout)"),
        (partial(Source), "class Source(Spout)"),
        (lambda: Source(), "factory lambda"),
    ],
)
def test_kinds_of_spouts(source: object, kind: str) -> None:
    """What a spout's source is, and its name."""
    topology = Topology("kinds")
    cast("Any", topology).spout("s", source)
    assert kind_of(topology.describe().spouts["s"]) == kind


@pytest.mark.parametrize(
    ("logic", "kind"),
    [
        (print, "function print"),
        (str.upper, "function str.upper"),
        (int, "function int"),
        (Call(), "function Call"),
        (double, "async function double"),
        (Hold, "class Hold(Bolt)"),
        (Count, "class Count(BasicBolt)"),
        (Write, "class Write(BatchBolt)"),
        (partial(Count), "class Count(BasicBolt)"),
        (make, "factory make of class Hold(Bolt)"),
        (lambda: Hold(), "factory lambda"),
        (lambda value: value, "function lambda"),
    ],
)
def test_kinds_of_bolts(logic: Any, kind: str) -> None:
    """What a bolt's logic is, and its name."""
    topology = Topology("kinds")
    topology.bolt("b", logic, topology.spout("s").shuffle())
    assert kind_of(topology.describe().bolts["b"]) == kind


def test_what_a_bolt_keeps_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Its states with their types, its timers, and the file."""
    write("""
        from stormlet import KeyedBolt, MapOf, Value
        class Count(KeyedBolt[str, str, None]):
            total = Value(int, 0, ttl=60)
            prices = MapOf(str, float)
            def execute(self, tup, out):
                self.total += 1
            def on_timer(self, at, out):
                pass
        topology = Topology("flow", state="flow.state")
        topology.bolt("count", Count, topology.spout("words", ["a"]).fields())
        """)
    shown = described(capsys).splitlines()
    assert shown[1] == "state and positions of sources are kept in flow.state"
    place = shown.index("count  bolt, class Count(KeyedBolt)")
    assert shown[place + 2 : place + 5] == [
        "  keeps    total: int by str, for 60 s",
        "           prices: dict[str, float] by str",
        "           timers by str",
    ]
    found = json.loads(described(capsys, "--json"))
    assert found["state"] == "flow.state"
    assert [each["kind"] for each in found["components"][1]["states"]] == ["value", "map", "timers"]
