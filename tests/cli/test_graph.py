"""``stormlet graph``: what is drawn, and that every format survives any name."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stormlet import BasicBolt, Bolt, Cell, Collector, Spout, SpoutCollector, Stream, Topology, Tuple, Value
from stormlet.cli import main
from stormlet.cli.inspecting.formats import as_dot, as_mermaid, as_text, escaped, without_marks
from stormlet.cli.inspecting.inspection import inspect_topology
from stormlet.core.shortened import printable
from stormlet.drawing.drawing import Drawing, Edge, Node, draw
from stormlet.drawing.layout import COLUMN_GAP, Layout, Place, Wire, islands, lay_out
from stormlet.drawing.svg import as_svg, shortened
from stormlet.model.setting_layers import lay
from tests.cli.flows import write

NASTY = [
    '"quoted"', "<b>&amp;</b>", "line\nbreak\ttab", "\x1b[2J", "back\\slash \\N \\n", "日本語 ünï", "]} |--> end",
    "#35; `code` **bold** _it_", "1. list", "- item", "%% comment", "\u202eevil", "\ud800", "{x}[y](z)", "end",
    "</style>",
]  # fmt: skip


class Untracked(Spout[int]):
    def next_tuple(self, out: SpoutCollector[int]) -> None:
        out.emit(1)


class Loose(Bolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(1)
        out.emit(1, anchors=tup, stream="tight")
        out.ack(tup)


class Basic(BasicBolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(1)


class ByRegion:
    def prepare(self, targets: object) -> None:
        pass

    def choose(self, value: object) -> list[int]:
        return []


def region(value: object) -> str:
    return ""


def same(value: int) -> int:
    return value


def drawing(topology: Topology, **settings: object) -> Drawing:
    return draw(inspect_topology(topology, lay([])).plan)


def edges(topology: Topology) -> list[tuple[str, str, str, bool]]:
    return [(each.source, each.target, each.label, each.is_tracked) for each in drawing(topology).edges]


def crawler() -> Topology:
    """A cycle, two streams, a loop."""
    topology = Topology("crawler")
    seeds = topology.spout("seeds", [1], outputs=int)
    fetch = topology.bolt("fetch", same, seeds.shuffle(), parallelism=8, concurrency=50)
    parse = topology.bolt(
        "parse", same, fetch.shuffle(), executor="thread", outputs={"default": int, "links": int}
    )
    topology.bolt("index", print, parse.shuffle())
    topology.connect(fetch, cast("Stream[int]", parse.named("links")).fields())
    topology.connect(fetch, fetch.local_or_shuffle())
    return topology


# What is drawn.


def test_components_come_as_declared_and_say_how_they_run() -> None:
    """Tasks always, concurrency and executor where they are not the default."""
    assert drawing(crawler()).nodes == [
        Node("seeds", is_spout=True, details=("1 task",)),
        Node("fetch", is_spout=False, details=("8 tasks", "50 at a time")),
        Node("parse", is_spout=False, details=("1 task", "in threads")),
        Node("index", is_spout=False, details=("1 task",)),
    ]


def test_a_bolt_with_state_says_so() -> None:
    """Its state is a reason for its grouping."""

    def count(word: str, total: Cell[int]) -> None:
        total.value += 1

    topology = Topology("count")
    words = topology.spout("words", ["a"])
    topology.bolt("count", count, words.fields(), state=Value(int, 0))
    assert drawing(topology).nodes[1].details == ("1 task", "keeps state")


def test_nothing_comes_before_what_is_upstream_of_it() -> None:
    """A bolt that is connected to one declared later stands after it, and no edge leads back without a cycle."""
    topology = Topology("late")
    early = topology.bolt("early", same, topology.spout("one", [1], outputs=int).shuffle())
    topology.connect(
        early, topology.bolt("later", same, topology.spout("two", [2], outputs=int).shuffle()).shuffle()
    )
    drawn = drawing(topology)
    assert [node.id for node in drawn.nodes] == ["one", "two", "later", "early"]
    assert not any(each.closes_cycle for each in drawn.edges)


def test_what_closes_a_cycle_is_known() -> None:
    """The edge back and the loop, and no other."""
    drawn = drawing(crawler())
    assert [(each.source, each.target) for each in drawn.edges if each.closes_cycle] == [
        ("fetch", "fetch"),
        ("parse", "fetch"),
    ]


def test_edges_name_stream_and_grouping() -> None:
    """The default stream is not named; a key is, by its fields, its function or not at all."""
    topology = Topology("groupings")
    stream = topology.spout("s", Untracked, outputs={"default": ["a", "b"], "e": int, "d": None})
    key: Any = region
    subscriptions = [
        stream.shuffle(), stream.fields("a", "b"), stream.fields(1), stream.fields(), stream.fields(key),
        stream.fields(lambda value: value), stream.partial_key("a"), stream.all(), stream.global_(),
        stream.local_or_shuffle(), stream.none(), stream.custom(cast("Any", ByRegion())), stream.named("e").shuffle(),
    ]  # fmt: skip
    topology.bolt("b", print, *subscriptions)
    assert [label for _, _, label, _ in edges(topology)] == [
        "shuffle", "fields a, b", "fields 1", "fields", "fields by region()", "fields by a lambda", "partial_key a",
        "all", "global", "local_or_shuffle", "none", "custom ByRegion", "e: shuffle",
    ]  # fmt: skip


def test_solid_is_what_belongs_to_a_tree() -> None:
    """Tracked at the spout, and anchored at every bolt on the way from a tracked stream."""
    topology = Topology("tracked")
    untracked = topology.spout("untracked", Untracked)
    tracked = topology.spout("tracked", [1], outputs=int)
    basic = topology.bolt("basic", Basic, untracked.shuffle())
    loose = topology.bolt("loose", Loose, tracked.shuffle(), outputs={"default": int, "tight": int})
    both = topology.bolt("both", Basic, basic.shuffle(), loose.shuffle(), tracked.shuffle())
    topology.bolt(
        "end", print, both.shuffle(), loose.named("tight").shuffle(), topology.spout("fed").shuffle()
    )
    assert {(source, target, is_tracked) for source, target, _, is_tracked in edges(topology)} == {
        ("untracked", "basic", False),
        ("basic", "both", False),
        ("tracked", "loose", True),
        ("tracked", "both", True),
        ("loose", "both", False),
        ("loose", "end", True),
        ("both", "end", True),
        ("fed", "end", True),
    }


def test_tracking_goes_round_a_cycle_once_it_is_in() -> None:
    """A cycle that a tracked message enters is solid; one that only untracked tuples enter is not."""
    for source, expected in ((Untracked, False), ([1], True)):
        topology = Topology("round")
        a = topology.bolt("a", Basic, cast("Any", topology).spout("s", source).shuffle())
        topology.connect(a, topology.bolt("b", Basic, a.shuffle()).shuffle())
        assert {is_tracked for *_, is_tracked in edges(topology)} == {expected}


def test_without_ackers_nothing_is_solid() -> None:
    """With ackers=0 nothing is tracked."""
    topology = Topology("none", ackers=0)
    topology.bolt("print", print, topology.spout("s", [1]).shuffle())
    assert [is_tracked for *_, is_tracked in edges(topology)] == [False]


# Text.


def test_text_is_lines_that_align() -> None:
    """Each component with its arrows, whose heads stand in one column; then the legend of what occurs."""
    assert as_text(drawing(crawler()), 80) == (
        "crawler: 1 spout, 3 bolts, 11 tasks, 1 acker\n"
        "\n"
        "▷ seeds  1 task\n"
        "  └─ shuffle ──▶ fetch\n"
        "\n"
        "● fetch  8 tasks, 50 at a time\n"
        "  ├─ local_or_shuffle ──▶ fetch ↺\n"
        "  └─ shuffle ───────────▶ parse\n"
        "\n"
        "● parse  1 task, in threads\n"
        "  ├─ links: fields ──▶ fetch ↺\n"
        "  └─ shuffle ────────▶ index\n"
        "\n"
        "● index  1 task\n"
        "\n"
        "▷ spout   ● bolt   ──▶ anchored   ↺ closes a cycle\n"
    )


def test_untracked_arrows_are_dashed() -> None:
    """The legend says so, and mentions no anchoring where there is none."""
    topology = Topology("none", ackers=0)
    topology.bolt("print", print, topology.spout("s", [1]).shuffle())
    text = as_text(drawing(topology), 80)
    assert "  └╌ shuffle ╌╌▶ print\n" in text
    assert text.endswith("▷ spout   ● bolt   ╌╌▶ not tracked\n")


def test_long_names_take_a_line_of_their_own() -> None:
    """What does not fit beside its arrow stands below it, whole."""
    topology = Topology("long")
    stream = topology.spout("s", Untracked, outputs={"default": int, "e" * 30: int})
    topology.bolt("b" * 60, print, stream.shuffle(), stream.named("e" * 30).shuffle())
    lines = as_text(drawing(topology), 80).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines.count(f"  │    {'b' * 60}") + lines.count(f"       {'b' * 60}") == 2


def test_plain_terminals_get_plain_marks() -> None:
    """Without its marks the text is ASCII, if the names are, and the lines say the same."""
    plain = without_marks(as_text(drawing(crawler()), 80))
    assert plain.isascii()
    assert "  |- local_or_shuffle --> fetch (back)\n  `- shuffle -----------> parse\n" in plain


# Any name.


def named(names: list[str]) -> Drawing:
    nodes = [Node(name, is_spout=not place, details=("1 task",)) for place, name in enumerate(names)]
    first, last = names[0], names[-1]
    drawn = [Edge(first, name, None, name, is_tracked=True) for name in names[1:]]
    return Drawing(
        names[0], "counts", nodes, [*drawn, Edge(last, last, names[0], names[-1], is_tracked=False)]
    )


def decoded_mermaid(label: str) -> str:
    """What Mermaid shows of a label."""
    return re.sub(r"#(\d+);", lambda match: chr(int(match[1])), label).replace("\u200b", "")


def decoded_dot(label: str) -> str:
    """What Graphviz shows of a label."""
    return unescape(re.sub(r"\\(.)", r"\1", label))


names = st.lists(st.text(min_size=1) | st.sampled_from(NASTY), min_size=2, max_size=5, unique=True)


@given(names)
def test_mermaid_takes_any_name(names: list[str]) -> None:
    """Labels hold nothing that means something to Mermaid, and decode to the names."""
    lines = as_mermaid(named(names)).splitlines()
    assert json.loads(lines[1].removeprefix("title: ")) == printable(names[0])
    labels = [
        re.fullmatch(r' {4}n\d+(?:\(\["|\[")([^"<]*)<br>1 task"\]\)?', line)
        for line in lines[4 : 4 + len(names)]
    ]
    assert [decoded_mermaid(label[1]) for label in labels if label] == [printable(name) for name in names]
    for line in lines[4 + len(names) : -1]:
        label = re.fullmatch(r' {4}n\d+ (?:-->|-\.->)\|"([^"<>|]*)"\| n\d+', line)
        assert label is not None
        assert re.fullmatch(r"(?:\w|[ ]|(?<=[A-Za-z])[-.,]|#\d+;)*", label[1]), label[1]


def test_mermaid_sees_no_new_line_in_a_backslash() -> None:
    """A backslash before an ``n`` is shown as one: something without width stands between them."""
    assert escaped("a\\nb") == "a#92;#8203;nb"


@given(names)
def test_dot_takes_any_name(names: list[str]) -> None:
    """Every label is one quoted string, and decodes to the name."""
    lines = as_dot(named(names)).splitlines()
    string = r'"((?:[^"\\]|\\.)*)"'
    head = re.fullmatch(f"digraph {string} {{", lines[0])
    assert head is not None
    assert decoded_dot(head[1]) == printable(names[0])
    for line, name in zip(lines[4:], names, strict=False):
        label = re.fullmatch(rf" {{4}}n\d+ \[label={string}(?:, .*)?\]", line)
        assert label is not None
        assert decoded_dot(label[1].removesuffix("\\n1 task")) == printable(name)


@given(names)
def test_svg_takes_any_name(names: list[str]) -> None:
    """It is well-formed, shows every name, shortened, and tells it whole in the title of its component."""
    svg = ET.fromstring(as_svg(named(names)))
    texts = [each.text for each in svg.iterfind(".//{*}text")]
    titles = [each.text for each in svg.iterfind(".//{*}title")]
    for name in names:
        assert shortened(name, 32) in texts
        assert printable(name) in titles


def test_programs_find_components_and_subscriptions_in_the_svg() -> None:
    """Each has its name as ``data-id``."""
    svg = ET.fromstring(as_svg(drawing(crawler())))
    found = [each.get("data-id") for each in svg.iterfind(".//*[@data-id]")]
    assert found[-4:] == ["seeds", "fetch", "parse", "index"]
    assert found[:2] == ["seeds > fetch, shuffle", "fetch > fetch, local_or_shuffle"]


@given(names)
def test_text_takes_any_name(names: list[str]) -> None:
    """Nothing but printable characters reaches a terminal."""
    for line in as_text(named(names), 80).splitlines():
        assert line.isprintable()


@pytest.mark.parametrize(
    ("text", "length", "short"),
    [("short", 5, "short"), ("longer", 5, "lo…er"), ("longer", 4, "l…er"), ("a\nb", 4, "a\\nb")],
)
def test_long_names_lose_their_middle(text: str, length: int, short: str) -> None:
    """Begin and end tell most; the result is as long as allowed."""
    assert shortened(text, length) == short


# The layout.


def boxes(
    layout: Layout, *, height: float = 46, label: float = 14
) -> Iterator[tuple[float, float, float, float]]:
    for places, tall in ((layout.components, height), (layout.labels, label)):
        for place in places.values():
            yield place.left, place.right, place.y - tall / 2, place.y + tall / 2


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[float], list[Wire]]:
    count = draw(st.integers(1, 12))
    component = st.integers(0, count - 1)
    wire = st.builds(Wire, component, component, st.floats(10, 200))
    widths = st.lists(st.floats(90, 300), min_size=count, max_size=count)
    return draw(widths), draw(st.lists(wire, max_size=20))


@given(graphs())
def test_nothing_lies_on_anything_else(graph: tuple[list[float], list[Wire]]) -> None:
    """Whatever the graph: components and labels keep apart, and inside; every wire but a loop has a way."""
    widths, wires = graph
    layout = lay_out(widths, wires, 66)
    for one, other in combinations(boxes(layout), 2):
        apart = one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]
        assert apart
    for left, right, top, bottom in boxes(layout):
        assert left >= -0.01
        assert right <= layout.width + 0.01
        assert top >= 0
        assert bottom <= layout.height
    for number, place in layout.components.items():
        assert place.right - place.left >= widths[number] - 0.01
    assert sorted(layout.components) == list(range(len(widths)))
    assert sorted(layout.routes) == [n for n, wire in enumerate(wires) if not wire.is_loop]


WAITING = [Wire(*ends, 50) for ends in [(0, 1), (0, 2), (3, 4), (1, 4), (2, 3), (1, 4)]]
"""Here an edge passes a column before that of its label."""


@given(graphs())
@example(([100.0] * 5, WAITING))
def test_wires_lead_from_column_to_column(graph: tuple[list[float], list[Wire]]) -> None:
    """Forward from left to right, back from right to left, through the label and through every column on the way, past
    the components there."""
    widths, wires = graph
    layout = lay_out(widths, wires, 66)
    for number, route in layout.routes.items():
        wire = wires[number]
        stops = [layout.components[wire.source], *route, layout.components[wire.target]]
        lefts = [stop.column_left for stop in stops]
        assert lefts == sorted(lefts, reverse=wire.target < wire.source)
        for one, following in pairwise(sorted(stops, key=lambda stop: stop.column_left)):
            assert following.column_left - one.column_right == pytest.approx(COLUMN_GAP)
        assert layout.labels[number] in route
        assert not any(
            _lies_on(stop, component) for stop in route for component in layout.components.values()
        )


def _lies_on(stop: Place, component: Place) -> bool:
    return stop.column_left == component.column_left and abs(stop.y - component.y) < 23


def test_the_layout_is_the_same_every_time() -> None:
    """One graph, one drawing, in processes with different hashes of text."""
    write(DIAMOND)
    command = [sys.executable, "-m", "stormlet", "graph", "flow.py", "--format", "svg"]
    drawn = {
        subprocess.run(command, env={"PYTHONHASHSEED": seed}, check=True, capture_output=True).stdout
        for seed in "123"
    }
    assert len(drawn) == 1


def test_a_cycle_stands_below_the_sources_of_all_its_members() -> None:
    """However late a source was declared."""
    topology = Topology("cycle")
    values = topology.spout("values", [1])
    first = topology.bolt("first", str, values.shuffle())
    second = topology.bolt("second", str, first.shuffle())
    topology.connect(first, second.shuffle())
    topology.connect(second, topology.bolt("late", str, values.shuffle()).shuffle())
    assert [node.id for node in drawing(topology).nodes] == ["values", "late", "first", "second"]


def test_siblings_stand_in_the_order_of_their_declaration() -> None:
    """Of two drawings that are each other's mirror, the one that reads from top to bottom is taken."""
    wires = [Wire(0, bolt, 50) for bolt in range(1, 6)] + [Wire(bolt, 6, 50) for bolt in range(1, 6)]
    layout = lay_out([100.0] * 7, wires, 66)
    heights = [layout.components[bolt].y for bolt in range(1, 6)]
    assert heights == sorted(heights)


def test_islands_hang_together() -> None:
    """Components that wires connect, in any direction, are one island; a loop connects nothing."""
    assert islands(6, [Wire(3, 0, 1), Wire(1, 1, 1), Wire(4, 3, 1), Wire(5, 2, 1)]) == [
        [0, 3, 4],
        [1],
        [2, 5],
    ]


@pytest.mark.parametrize(
    ("tracked", "words"),
    [
        ([], []),
        ([True], ["anchored"]),
        ([False], ["not tracked"]),
        ([False, True], ["anchored", "not tracked"]),
    ],
)
def test_the_legend_explains_the_lines_that_occur(tracked: list[bool], words: list[str]) -> None:
    """And no others."""
    nodes = [Node("a", is_spout=True, details=()), Node("b", is_spout=False, details=())]
    drawn = [Edge("a", "b", None, "shuffle", is_tracked=each) for each in tracked]
    svg = ET.fromstring(as_svg(Drawing("t", "counts", nodes, drawn)))
    texts = [(each.text or "").partition(":")[0] for each in svg.iterfind(".//{*}text")]
    assert [each for each in texts if each in ("anchored", "not tracked")] == words


def test_the_arrow_of_an_edge_back_points_back() -> None:
    """Its line ends on the right side of its target, coming from the right, with a curve as its last part."""
    svg = ET.fromstring(as_svg(drawing(crawler())))
    lines = [each.get("d", "") for each in svg.iterfind(".//{*}path") if "edge" in each.get("class", "")][-5:]
    shapes = {each.findtext("{*}title"): each.find("{*}rect") for each in svg.iterfind(".//{*}g")}
    fetch = shapes["fetch"]
    assert fetch is not None
    right = float(fetch.get("x", "")) + float(fetch.get("width", ""))
    back = lines[[(each.source, each.target) for each in drawing(crawler()).edges].index(("parse", "fetch"))]
    numbers = [float(each) for each in re.findall(r"-?[\d.]+", back)]
    assert numbers[0] > numbers[-2] == pytest.approx(right, abs=0.11)
    assert not back.endswith(f"H{right:.1f}")


# The command.

DIAMOND = """
    topology = Topology("diamond")
    numbers = topology.spout("numbers", range(3))
    middles = [topology.bolt(f"middle {n}", print, numbers.shuffle()) for n in range(4)]
    topology.bolt("sum", print, *(each.global_() for each in middles))
    """


def test_text_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --format and --output, the drawing is text on standard output."""
    write(DIAMOND)
    assert main(["graph", "flow.py"]) == 0
    output = capsys.readouterr()
    assert output.out.startswith("diamond: 1 spout, 5 bolts, 6 tasks, 1 acker\n\n▷ numbers  1 task\n")
    assert output.err == ""


@pytest.mark.parametrize(
    ("format", "beginning"),
    [("mermaid", "---\ntitle: "), ("dot", "digraph "), ("svg", "<svg "), ("text", "diamond: ")],
)
def test_every_format_goes_to_output_or_file(format: str, beginning: str) -> None:  # noqa: A002
    """Both are the same UTF-8, whatever the terminal's encoding."""
    write(DIAMOND.replace('"sum"', '"sümme"'))
    command = [sys.executable, "-m", "stormlet", "graph", "flow.py", "--format", format]
    environment = {"PYTHONIOENCODING": "utf-8" if format == "text" else "ascii"}
    shown = subprocess.run(command, env=environment, check=True, capture_output=True).stdout.decode()
    subprocess.run([*command, "--output", "drawn"], check=True, capture_output=True)
    assert shown == Path("drawn").read_text("utf-8")
    assert shown.startswith(beginning)
    assert "sümme" in shown


def test_a_terminal_that_cannot_show_the_marks() -> None:
    """Text in another encoding falls back to ASCII, and escapes names."""
    write(DIAMOND.replace('"sum"', '"sümme"'))
    command = [sys.executable, "-m", "stormlet", "graph", "flow.py"]
    shown = subprocess.run(command, env={"PYTHONIOENCODING": "ascii"}, check=True, capture_output=True).stdout
    assert b"`- global --> s\\xfcmme\n" in shown


def test_other_formats_are_written_as_bytes(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """They are UTF-8 by definition, so no terminal's encoding touches them."""
    write(DIAMOND.replace('"sum"', '"sümme"'))
    assert main(["graph", "flow.py", "--format", "dot"]) == 0
    assert 'label="sümme'.encode() in capsysbinary.readouterr().out


@pytest.mark.parametrize(
    ("name", "beginning"),
    [("a.svg", "<svg "), ("a.mmd", "---"), ("a.dot", "digraph"), ("a.gv", "digraph"), ("a.txt", "diamond")],
)
def test_the_suffix_names_the_format(name: str, beginning: str) -> None:
    """``--output`` alone is enough where its suffix is known."""
    write(DIAMOND)
    assert main(["graph", "flow.py", "--output", name]) == 0
    assert Path(name).read_text("utf-8").startswith(beginning)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["--output", "a.png"],
            "--output a.png: the suffix names no format; add --format text or mermaid or dot or svg",
        ),
        (["--output", "none/a.svg"], "--output none/a.svg: No such file or directory"),
        (["--format", "pdf"], "pdf"),
    ],
)
def test_what_cannot_be_drawn_is_wrong_usage(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One message, and exit code 2."""
    write(DIAMOND)
    assert main(["graph", "flow.py", *arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert error in output.err


def test_svg_says_what_it_needs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Where the layout's library is not installed, the message says how to get it; other formats need nothing."""
    write(DIAMOND)
    monkeypatch.setattr("stormlet.cli.graph.find_spec", lambda name: None)
    assert main(["graph", "flow.py", "--format", "svg"]) == 2
    assert "pip install 'stormlet[svg]'" in capsys.readouterr().err
    assert main(["graph", "flow.py"]) == 0
