"""``state check`` and ``state import``, which need the topology."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stormlet.cli import main
from stormlet.core.state.commits import Shape, StateId
from tests.cli.state.kept import FILE, FLOW, flow, keep
from tests.cli.state.test_changing import counts, read

LINES = Path("entries.jsonl")
CHECK = ["state", "check", "flow.py", str(FILE)]
IMPORT = ["state", "import", "flow.py", str(FILE), str(LINES)]


def lines(*entries: object) -> None:
    LINES.write_text("".join(f"{json.dumps(each)}\n" for each in entries), "utf-8")


def entry(key: object, value: object, state: str = "count.total", **more: object) -> object:
    return {"state": state, "key": key, "value": value, **more}


def test_a_file_that_fits_is_said_to(capsys: pytest.CaptureFixture[str]) -> None:
    """With the epoch after which a run would go on; nothing runs, and nothing is written."""
    flow()
    keep({"a": 1, "b": 1})
    before = FILE.read_bytes()
    assert main(CHECK) == 0
    assert capsys.readouterr().out == (
        "counts.state fits count: 1 spout, 1 bolt, 2 tasks, 1 acker; a run would go on after epoch 1\n"
        "  count.total: 2 entries\n"
    )
    assert FILE.read_bytes() == before


def test_a_state_that_the_file_lacks_is_new(capsys: pytest.CaptureFixture[str]) -> None:
    """It begins empty."""
    flow(FLOW.replace("total = Value(int, 0)", "total = Value(int, 0)\n    seen = Value(str)"))
    keep()
    assert main(CHECK) == 0
    assert capsys.readouterr().out.endswith(
        "a run would begin\n  count.total: 0 entries\n  count.seen: 0 entries, which is new\n"
    )


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('Topology("count"', 'Topology("other"', "has the state of the topology 'count'; give 'other'"),
        ('bolt("count"', 'bolt("renamed"', "state 'count.total' belongs to no bolt of this topology"),
        ("KeyedBolt[str, str", "KeyedBolt[int, str", "is a value by keys of type str"),
        ("Value(int, 0)", "Value(int, 0, ttl=60)", "and the bolt declares a value with ttl by str"),
        ("Value(int, 0)", "Value(bytes, b'')", "state count.total does not decode as bytes by str"),
        ('spout("words"', 'spout("text"', "the position of words[0] belongs to no spout"),
        ('.state")', '.state", ackers=0)', "state needs acks, and ackers=0 has none"),
    ],
)
def test_what_a_run_would_refuse_is_refused(
    before: str, after: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the same words, and with the same exit code."""
    flow(FLOW.replace(before, after))
    keep({"a": 1})
    assert main(CHECK) == 2
    said = capsys.readouterr().err
    assert main(["run", "flow.py", "--quiet"]) == 2
    assert message in said
    assert message in capsys.readouterr().err


def test_what_is_exported_can_be_imported(capsys: pytest.CaptureFixture[str]) -> None:
    """Into a new file, which a run goes on with; its sources begin with their first message."""
    flow()
    assert main(["run", "flow.py", "--quiet"]) == 0
    assert main(["state", "export", str(FILE), "--output", str(LINES)]) == 0
    assert main(["state", "import", "flow.py", "new.state", str(LINES)]) == 0
    assert capsys.readouterr().out == "3 entries of 1 state in new.state\n"
    assert main(["state", "diff", str(FILE), "new.state"]) == 0
    assert capsys.readouterr().out.startswith("no differences")
    assert main(["run", "flow.py", "--state", "new.state", "--quiet"]) == 0
    assert counts(Path("new.state")) == {"a": 4, "b": 4, "c": 2}


EVERYTHING = """
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID
import msgspec
from stormlet import KeyedBolt, ListOf, MapOf, Value

class Point(msgspec.Struct, frozen=True):
    x: int
    y: float

class Everything(KeyedBolt[tuple[str, int], str, None]):
    bytes_ = Value(bytes)
    number = Value(float)
    time = Value(datetime)
    money = MapOf(Decimal, Decimal)
    ids = ListOf(UUID)
    points = MapOf(Point, Point)
    by_number = Value(dict[int, list[bytes]])
    fading = Value(int, ttl=1e9)
    def execute(self, tup, out):
        self.bytes_ = bytes(range(256))
        self.number = float(tup.value)
        self.time = datetime(2026, 11, 23, 18, 30)
        self.money[Decimal("1.10")] = Decimal("-0.07")
        self.ids.append(UUID(int=7))
        self.points[Point(1, 2.5)] = Point(3, float("inf"))
        self.by_number = {7: [b"x"]}
        self.fading = 3
    def on_timer(self, at, out):
        pass
topology = Topology("count", state="counts.state")
numbers = topology.spout("words", ["nan", "inf", "-0.5", "漢"][:3])
topology.bolt("count", Everything, numbers.fields(lambda text: (text, len(text))))
"""


def test_values_of_all_types_come_back(capsys: pytest.CaptureFixture[str]) -> None:
    """Export, import and export again give the same lines, and the topology starts with them."""
    flow(EVERYTHING)
    assert main(["run", "flow.py", "--quiet"]) == 0
    assert main(["state", "export", str(FILE), "--output", str(LINES)]) == 0
    assert main(["state", "import", "flow.py", "new.state", str(LINES)]) == 0
    assert main(["state", "export", "new.state", "--output", "again.jsonl"]) == 0
    capsys.readouterr()
    assert sorted(Path("again.jsonl").read_text().splitlines()) == sorted(LINES.read_text().splitlines())
    assert len(LINES.read_text().splitlines()) == 24
    assert main(["state", "check", "flow.py", "new.state"]) == 0


MERGING = """
from stormlet import KeyedBolt, ListOf, MapOf, Value
class Count(KeyedBolt[str, str, None]):
    total = Value(int, 0)
    latest = Value(int, 0, ttl=1e9)
    places = ListOf(int)
    lengths = MapOf(int, int)
    def execute(self, tup, out):
        self.total += 1
        self.latest += 1
        self.places.append(1)
        self.lengths[1] = self.lengths.get(1, 0) + 1
        self.set_timer(self.now + 1e9)
    def on_timer(self, at, out):
        pass
    def merge(self, other):
        self.total += other.total
        self.latest = max(self.latest, other.latest)
        self.places.extend(other.places)
        for length, count in other.lengths.items():
            self.lengths[length] = self.lengths.get(length, 0) + count
topology = Topology("count", state="counts.state")
topology.bolt("count", Count, topology.spout("words", list("abcab")).fields())
"""


def test_entries_are_merged_with_those_that_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    """By the merge of their bolt, with all of its states; a key that the file lacks is put as it is, and timers are
    those of both."""
    flow(MERGING)
    assert main(["run", "flow.py", "--quiet"]) == 0
    flow(MERGING.replace('"abcab"', '"bdd"'))
    assert main(["run", "flow.py", "--state", "other.state", "--quiet"]) == 0
    assert main(["state", "export", "other.state", "--output", str(LINES)]) == 0
    assert main([*IMPORT, "--merge"]) == 0
    assert counts() == {"a": 2, "b": 3, "c": 1, "d": 2}
    assert counts(state=StateId("count", "places")) == {
        (key, index): 1 for key, count in counts().items() for index in range(count)
    }
    assert counts(state=StateId("count", "lengths")) == {(key, 1): count for key, count in counts().items()}
    latest = counts(state=StateId("count", "latest"))
    assert {key: count for key, (_, count) in latest.items()} == {"a": 2, "b": 2, "c": 1, "d": 2}
    timers = counts(state=StateId("count", "on_timer"))
    assert sorted(key for key, _ in timers) == [*"abbcd"]
    assert main(["state", "check", "flow.py", str(FILE)]) == 0


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "def merge(self, other)",
            "def unused(self, other)",
            "bolt 'count' has no merge, by which two states",
        ),
        (
            "self.total += other.total",
            "raise ValueError('odd')",
            "merge of bolt 'count' has raised ValueError('odd'); nothing was",
        ),
        (
            "self.total += other.total",
            "raise SystemExit(0)",
            "merge of bolt 'count' has raised SystemExit(0); nothing was",
        ),
    ],
)
def test_what_cannot_be_merged_is_refused(
    before: str, after: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is put into the file then."""
    flow(MERGING.replace(before, after))
    assert main(["run", "flow.py", "--quiet"]) == 0
    before_ = FILE.read_bytes()
    lines(entry("a", 1))
    assert main([*IMPORT, "--merge"]) == 2
    assert message in capsys.readouterr().err
    assert FILE.read_bytes() == before_


def test_entries_are_put_over_those_that_are_there() -> None:
    """As one more epoch; others stay, and so do the positions of sources."""
    flow()
    keep({"a": 1, "b": 1})
    lines(entry("b", 7), entry("c", 9))
    assert main(IMPORT) == 0
    assert (counts(), read().epoch, list(read().positions)) == (
        {"a": 1, "b": 7, "c": 9},
        2,
        ["words[0] of 1"],
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (entry(7, 1), "Expected `str`, got `int`"),
        (entry("a", "x"), "Expected `int`, got `str`"),
        (entry("a", None), "null"),
        (entry("a", 2**70), "a store keeps ints of 64 bits"),
        (
            entry("a", 1, "count.tootal"),
            "there is no state 'count.tootal' in this topology; it has count.total",
        ),
        (entry("a", 1, written=5.0), "the state has no ttl"),
        (entry("a", 1, more=5.0), "unknown field `more`"),
        ({"key": "a"}, "missing required field `state`"),
        (7, "Expected `object`, got `int`"),
    ],
)
def test_a_line_that_does_not_fit_has_nothing_imported(
    line: object, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named by its number."""
    flow()
    keep({"a": 1})
    lines(entry("z", 1), line)
    assert main(IMPORT) == 2
    said = capsys.readouterr().err
    assert "entries.jsonl, line 2: " in said
    assert message in said
    assert (counts(), read().epoch) == ({"a": 1}, 1)


@pytest.mark.parametrize("merge", [[], ["--merge"]], ids=["put", "merged"])
@pytest.mark.parametrize(
    ("key", "state"), [("b", "count.total"), (["b", 0], "count.places"), (["b", 1], "count.lengths")]
)
def test_a_second_line_of_a_key_has_nothing_imported(
    key: object, state: str, merge: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Else one of two counts would be gone without a word, as of two exports in one file."""
    flow(MERGING)
    keep({"a": 1})
    lines(entry(key, 5, state), entry("c", 5), entry(key, 5, state))
    assert main([*IMPORT, *merge]) == 2
    assert (
        "entries.jsonl, line 3: line 1 has an entry of the same key; leave one of them out, or import one file after "
        "the other with --merge; nothing was put into the state file"
    ) in capsys.readouterr().err
    assert (counts(), read().epoch) == ({"a": 1}, 1)


PLACES = StateId("count", "places")


@pytest.mark.parametrize("merge", [[], ["--merge"]], ids=["put", "merged"])
@pytest.mark.parametrize(
    ("positions", "found", "expected"), [([0, 1, 3], 3, 2), ([1], 1, 0), ([0, -1], -1, 0), ([-1], -1, 0)]
)
def test_a_list_without_one_of_its_items_has_nothing_imported(
    positions: list[int],
    found: int,
    expected: int,
    merge: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A bolt would read None there, which is no item of its type."""
    flow(MERGING)
    keep({"a": 1})
    lines(*(entry(["b", position], 7, "count.places") for position in positions))
    assert main([*IMPORT, *merge]) == 2
    assert (
        f"""entries.jsonl: the list 'count.places' of the key "b" would have item {found} where item {expected} """
        "belongs; add the lines that are missing, or count its items from 0; nothing was put into the state file"
    ) in capsys.readouterr().err
    assert (counts(), read().epoch) == ({"a": 1}, 1)


@pytest.mark.parametrize("merge", [[], ["--merge"]], ids=["put", "merged"])
@pytest.mark.parametrize("path", ["counts.state", "counts.rocksdb"])
def test_a_refused_import_makes_no_state(path: str, merge: list[str]) -> None:
    """As the line that refuses it says: nothing was put, not even an empty file."""
    flow(MERGING)
    lines(entry(["b", 1], 7, "count.places"))
    assert main(["state", "import", "flow.py", path, str(LINES), *merge]) == 2
    assert not list(Path().glob("counts.*"))


def test_items_are_put_beside_those_that_a_list_has() -> None:
    """As long as there is one at each place; merged items are a list of their own."""
    flow(MERGING)
    keep({("b", 0): 1, ("b", 1): 2}, state=PLACES, shape=Shape("list", "str", "list[int]"))
    lines(entry(["b", 1], 7, "count.places"), entry(["b", 2], 8, "count.places"))
    assert main(IMPORT) == 0
    assert counts(state=PLACES) == {("b", 0): 1, ("b", 1): 7, ("b", 2): 8}
    assert main([*IMPORT, "--merge"]) == 2
    lines(entry(["b", 4], 7, "count.places"))
    assert main(IMPORT) == 2


def test_a_list_that_is_too_old_may_lack_items() -> None:
    """Its items go one by one, and a run reads none of them; so an export that has some of them can be imported."""
    flow(MERGING.replace("ListOf(int)", "ListOf(int, ttl=60)"))
    lines(entry(["b", 3], 7, "count.places", written=5.0))
    assert main(IMPORT) == 0


def test_a_file_of_entries_that_is_not_there_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    """And no state file is made."""
    flow()
    assert main(IMPORT) == 2
    assert "the entries of entries.jsonl cannot be read: No such file or directory" in capsys.readouterr().err
    assert not FILE.exists()


def test_an_entry_of_a_state_with_a_ttl_needs_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    """As nobody knows how old it is."""
    flow(FLOW.replace("Value(int, 0)", "Value(int, 0, ttl=60)"))
    lines(entry("a", 1))
    assert main(IMPORT) == 2
    assert "the state has a ttl; say by written when the entry was written" in capsys.readouterr().err


def test_nothing_is_imported_into_a_file_of_another_topology(capsys: pytest.CaptureFixture[str]) -> None:
    """Nor into one whose state belongs to no bolt."""
    flow()
    keep({"a": 1}, state=StateId("gone", "total"), shape=Shape("value", "str", "int"))
    lines(entry("a", 1))
    assert main(IMPORT) == 2
    assert "state 'gone.total' belongs to no bolt" in capsys.readouterr().err
    flow(FLOW.replace('Topology("count"', 'Topology("other"'))
    assert main(IMPORT) == 2
    assert "has the state of the topology 'count'" in capsys.readouterr().err
    assert read().epoch == 1
