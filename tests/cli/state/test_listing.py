"""``state list``."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from stormlet.cli import main
from stormlet.cli.units import size
from stormlet.core.state.commits import Commit, Shape, StateId
from stormlet.runtime.spout.positions import CutPosition
from stormlet.state.stores import owned
from tests.cli.state.kept import FILE, flow, keep, leave_undelivered


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are those of a clock in London, in winter."""
    monkeypatch.setenv("TZ", "UTC")


def test_a_file_says_all_that_it_has(capsys: pytest.CaptureFixture[str]) -> None:
    """Its topology and epochs, each state with types and sizes, and the positions of sources."""
    keep({"a": 1, "b": 1}, {"a": 2, "b": None, "c": 7})
    assert main(["state", "list", str(FILE)]) == 0
    headline, epochs, *rest = capsys.readouterr().out.splitlines()
    assert headline.endswith(f"counts.state: topology 'count', {size(FILE.stat().st_size)} on the disk")
    assert epochs.startswith("epoch 2, committed at 2023-11-14 22:13:22, ")
    assert epochs.endswith("; epochs from 0 can be read")
    assert rest == [
        "",
        "state        kind   keys are  values are  entries  bytes",
        "count.total  value  str       int               2    6 B",
        "",
        "source         after",
        "words[0] of 1  2",
    ]


EACH_KIND = """
from stormlet import KeyedBolt, ListOf, MapOf, Value
class Keep(KeyedBolt[str, str, None]):
    length = Value(int, 0)
    fading = Value(str, ttl=3600)
    counts = MapOf(str, int)
    letters = ListOf(str)
    def execute(self, tup, out):
        self.length = len(self.key) * 100
        self.fading = self.key
        self.counts[self.key * 2] = 1
        self.letters.append(self.key)
        self.set_timer(self.now + 1000)
    def on_timer(self, at, out):
        pass
topology = Topology("count", state="counts.state")
topology.bolt("keep", Keep, topology.spout("words", ["a" * n for n in range(1, 40)]).fields(), parallelism=3)
"""


@pytest.mark.parametrize("place", [FILE, Path("counts.rocksdb")], ids=str)
def test_bytes_are_those_of_the_summary(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of states of each kind, whose keys were written once: else the summary has them about."""
    flow(EACH_KIND.replace("counts.state", str(place)))
    assert main(["run", "flow.py", "--json-summary", "--quiet"]) == 0
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert main(["state", "list", str(place), "--json"]) == 0
    listed = {
        f"{each['component']}.{each['state']}": {"entries": each["entries"], "bytes": each["bytes"]}
        for each in json.loads(capsys.readouterr().out)["states"]
    }
    assert len(listed) == 5
    assert listed == summary["epoch"]["states"]


def test_the_log_of_a_run_is_on_the_disk_too(capsys: pytest.CaptureFixture[str]) -> None:
    """It has the last epochs, which the file gets later."""
    keep({"a": 1})
    with closing(owned(FILE, "count")) as file:
        file.commit(Commit(2, 1.0, {}))
        both = FILE.stat().st_size + Path(f"{FILE}-wal").stat().st_size
        assert main(["state", "list", str(FILE), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["size"] == both


def test_what_nobody_has_had_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Rows of committers and dead letters, which the next run begins with."""
    leave_undelivered()
    assert main(["state", "list", str(FILE)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == (
        "not delivered yet: rows of 1 epoch for mail, 1 dead letter; the next run begins with that"
    )


def test_a_new_file_has_no_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    """It was made by a run that has committed nothing."""
    keep()
    assert main(["state", "list", str(FILE)]) == 0
    assert "epoch 0, before the first commit; epochs from 0 can be read" in capsys.readouterr().out


def test_scripts_get_records(capsys: pytest.CaptureFixture[str]) -> None:
    """The same as JSON."""
    keep({"a": 1})
    leave_undelivered()
    assert main(["state", "list", str(FILE), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["topology"], record["epoch"], record["first_epoch"]) == ("count", 2, 0)
    assert record["states"] == [
        {
            "component": "count", "state": "total", "kind": "value", "key": "str", "value": "int",
            "entries": 1, "bytes": 3,
        }
    ]  # fmt: skip
    assert record["sources"] == [{"task": "words[0] of 1", "position": 1}]
    assert (record["undelivered"], record["dead_letters"]) == ({"mail": 1}, 1)


def test_an_earlier_epoch_is_listed_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    """With its own positions."""
    keep({"a": 1}, {"b": 1})
    assert main(["state", "list", str(FILE), "--epoch", "1", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["epoch"], record["states"][0]["entries"], record["sources"][0]["position"]) == (1, 1, 1)


@pytest.mark.parametrize(
    ("position", "shown"),
    [
        (msgspec.msgpack.encode([[None, 17]]), "17"),
        (msgspec.msgpack.encode([[0, 17], ["eu", "x"]]), '{"0":17,"\\"eu\\"":"x"}'),
        (CutPosition("query-1", 3).encoded(), '{"line":"query-1","number":3}'),
        (b"\xc1", '"wQ=="'),
    ],
)
def test_positions_of_spouts_are_message_ids(
    position: bytes, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By partition where there are several; what nobody can read is in base64."""
    with closing(owned(FILE, "count")) as file:
        file.commit(Commit(1, 1.0, {"orders[0] of 1": position}))
    assert main(["state", "list", str(FILE)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"orders[0] of 1  {shown}"


def test_names_move_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither those of components nor those of states, nor long ones."""
    keep({"a": 1}, state=StateId("co\x1b[2Junt\n", "x" * 500), shape=Shape("value", "str", "int"))
    assert main(["state", "list", str(FILE)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 8
    assert max(map(len, shown.splitlines()[2:])) < 120


def test_a_run_leaves_what_list_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """The file of a real run, with its counts."""
    flow()
    assert main(["run", "flow.py", "--quiet"]) == 0
    assert main(["state", "list", str(FILE)]) == 0
    shown = capsys.readouterr().out
    assert "count.total  value  str       int               3    9 B" in shown
    assert "words[0] of 1  5" in shown
