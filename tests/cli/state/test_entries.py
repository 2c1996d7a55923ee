"""``state show``, ``state get`` and ``state export``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stormlet.cli import main
from stormlet.core.state.commits import Shape, StateId
from tests.cli.state.kept import FILE, keep

PRICES = StateId("count", "prices")
MAP = Shape("map", "str", "dict[str, float]")
RECENT = StateId("recent", "words")


@pytest.fixture(autouse=True)
def _width(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a terminal of the usual size."""
    monkeypatch.setenv("COLUMNS", "80")


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(["state", *arguments]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    return [line.rstrip() for line in output.out.splitlines()]


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shown(capsys, *arguments)]


def test_show_has_a_line_for_each_entry(capsys: pytest.CaptureFixture[str]) -> None:
    """The newest value of each key, without those that were deleted."""
    keep({"a": 1, "b": 1}, {"a": 2, "b": None, "moon": 7})
    assert shown(capsys, "show", str(FILE), "count") == [
        "state        key                    value",
        'count.total  "a"                    2',
        'count.total  "moon"                 7',
        "2 entries of count.total after epoch 2",
    ]


def test_show_reads_an_earlier_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    """As it was then."""
    keep({"a": 1, "b": 1}, {"a": 2, "b": None})
    found = lines(capsys, "show", str(FILE), "count.total", "--epoch", "1", "--json")
    assert found == [
        {"state": "count.total", "key": "a", "value": 1},
        {"state": "count.total", "key": "b", "value": 1},
    ]


def test_show_has_a_limit(capsys: pytest.CaptureFixture[str]) -> None:
    """A table has 50 entries unless more are asked for, and says that there are more."""
    keep({f"k{number}": number for number in range(200)})
    assert shown(capsys, "show", str(FILE), "count")[-1] == (
        "200 entries of count.total after epoch 1; these are the first 50, --limit shows more"
    )
    assert len(shown(capsys, "show", str(FILE), "count", "--limit", "120")) == 122
    assert len(shown(capsys, "show", str(FILE), "count", "--limit", "3", "--json")) == 3


def test_a_component_is_all_of_its_states(capsys: pytest.CaptureFixture[str]) -> None:
    """One of them goes by both names."""
    keep({"a": 1})
    keep({("a", "x"): 1.5}, state=PRICES, shape=MAP)
    assert [each["state"] for each in lines(capsys, "show", str(FILE), "count", "--json")] == [
        "count.prices",
        "count.total",
    ]
    assert len(lines(capsys, "show", str(FILE), "count.prices", "--json")) == 1


def test_values_and_keys_move_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters, line breaks, marks of direction and megabytes; programs read them as they were."""
    keys = ["\x1b[2J", "a\nb\r", "\u202eabc", "\x9b2J", "漢字", "😀", "x" * 1_000_000]
    keep(dict.fromkeys(keys, 1))
    for arguments in (
        ("show", str(FILE), "count"),
        ("export", str(FILE)),
        ("get", str(FILE), "count", keys[0]),
    ):
        assert main(["state", *arguments]) == 0
        assert all(line.isprintable() for line in capsys.readouterr().out.splitlines())
    assert [each["key"] for each in lines(capsys, "export", str(FILE))] == keys
    table = shown(capsys, "show", str(FILE), "count")
    assert len(table) == 9
    assert max(map(len, table)) <= 80


@pytest.mark.parametrize(
    ("words", "key", "argument"),
    [
        ("str", "moon", "moon"),
        ("str", "7", "7"),
        ("str", '"x"', '"x"'),
        ("str", "", ""),
        ("str", "--json", "--json"),
        ("int", 7, "7"),
        ("int", -(2**63), str(-(2**63))),
        ("float", 1.5, "1.5"),
        ("float", 2.0, "2"),
        ("bool", True, "true"),
        ("None", None, "null"),
        ("bytes", b"\x00\xff", "AP8="),
        ("tuple[str, int]", ("eu", 7), '["eu", 7]'),
        ("Any", "moon", "moon"),
        ("Any", 7, "7"),
        ("Point", {"x": 1, "y": 2}, '{"y": 2, "x": 1}'),
    ],
)
def test_get_finds_keys_of_every_type(
    words: str,
    key: Any,
    argument: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A text is given as it is, any other key as JSON."""
    entries = {key: 5} if not isinstance(key, dict) else {}
    keep(entries, shape=Shape("value", words, "int"))
    if isinstance(key, dict):
        _keep_record()
    assert shown(capsys, "get", str(FILE), "count", "--", argument) == ["5"]


def _keep_record() -> None:
    import msgspec

    from stormlet.core.state.commits import Append, Commit
    from stormlet.state.stores import owned
    from tests.cli.state.kept import TOTAL

    class Point(msgspec.Struct, frozen=True):
        x: int
        y: int

    file = owned(FILE)
    file.commit(Commit(2, 1.0, {}, [Append(TOTAL, msgspec.msgpack.encode({Point(1, 2): 5}))]))
    file.close()


@pytest.mark.parametrize("argument", ["moon", "1.5", '"7"', "true", "null"])
def test_get_refuses_what_is_no_key_of_the_state(argument: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By the type of its keys."""
    keep({7: 1}, shape=Shape("value", "int", "int"))
    assert main(["state", "get", str(FILE), "count", argument]) == 2
    assert "the keys of this state are of type int" in capsys.readouterr().err


def test_get_of_a_key_that_is_not_there_is_1(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is printed to standard output."""
    keep({"a": 1})
    assert main(["state", "get", str(FILE), "count", "b\x1b"]) == 1
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", "stormlet: count.total has no key b\\x1b\n")


def test_get_of_a_map_or_a_list_has_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """An object, and the items in their order."""
    keep({("a", "x"): 1.5, ("a", "y"): 2.5, ("b", "x"): 9.0}, state=PRICES, shape=MAP)
    keep({("a", 1): "two", ("a", 0): "one"}, state=RECENT, shape=Shape("list", "str", "list[str]"))
    assert shown(capsys, "get", str(FILE), "count.prices", "a") == ['{"x":1.5,"y":2.5}']
    assert shown(capsys, "get", str(FILE), "recent", "a") == ['["one","two"]']


def test_get_needs_one_state(capsys: pytest.CaptureFixture[str]) -> None:
    """A component with several says which."""
    keep({"a": 1})
    keep({("a", "x"): 1.5}, state=PRICES, shape=MAP)
    assert main(["state", "get", str(FILE), "count", "a"]) == 2
    assert "'count' has several states; name one of count.prices, count.total" in capsys.readouterr().err


def test_a_state_goes_before_a_component_of_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    """The names of all states differ, so that each can be had."""
    keep({"a": 1})
    keep({"a": 20}, state=StateId("count.total", "sum"))
    for name, value in {"count.total": "1", "count": "1", "count.total.sum": "20"}.items():
        assert shown(capsys, "get", str(FILE), name, "a") == [value]


def test_timers_are_seen_where_they_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A bolt with one state and timers is asked for that state."""
    keep({"a": 1})
    keep({("a", 5.5): 1}, state=StateId("count", "on_timer"), shape=Shape("map", "str", "dict[float, int]"))
    assert shown(capsys, "get", str(FILE), "count", "a") == ["1"]
    assert shown(capsys, "get", str(FILE), "count.on_timer", "a") == ['{"5.5":1}']


def test_an_entry_with_a_ttl_has_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    """In lines for programs."""
    keep({"a": (5.0, 1)}, shape=Shape("value with ttl", "str", "int"))
    assert lines(capsys, "export", str(FILE)) == [
        {"state": "count.total", "key": "a", "value": 1, "written": 5.0}
    ]


def test_export_writes_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    """All states of the file, unless one is named."""
    keep({"a": 1, "b": float("nan"), "c": b"\x00"})
    assert main(["state", "export", str(FILE), "--output", "all.jsonl"]) == 0
    assert capsys.readouterr().err == "3 lines in all.jsonl\n"
    values = [json.loads(line)["value"] for line in Path("all.jsonl").read_text().splitlines()]
    assert values == [1, "nan", "AA=="]


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal", ".lock"])
def test_export_never_writes_over_the_state(ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor over what stands beside it; also by way of a link."""
    keep({"a": 1})
    Path("link").symlink_to(f"{FILE}{ending}")
    for output in (f"{FILE}{ending}", str(FILE.with_name(f"{FILE}{ending}").absolute()), "link"):
        assert main(["state", "export", str(FILE), "--output", output]) == 2
        assert f"--output {output} belongs to the state that is exported; name" in capsys.readouterr().err
    assert [line["value"] for line in lines(capsys, "export", str(FILE))] == [1]


def test_export_to_a_place_that_cannot_be_written_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    """And says why."""
    keep({"a": 1})
    assert main(["state", "export", str(FILE), "--output", "no/all.jsonl"]) == 2
    assert "--output no/all.jsonl: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["show", "get", "export"])
def test_an_unknown_state_is_2_and_names_those_that_are_there(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its way out."""
    keep({"a": 1})
    assert main(["state", command, str(FILE), "cont", *(["a"] if command == "get" else [])]) == 2
    assert "counts.state has no state 'cont'; it has count.total" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["show", "get", "export", "list"])
def test_an_epoch_that_is_not_kept_is_2_and_says_which_are(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its way out."""
    keep({"a": 1})
    names = {"list": [], "get": ["count", "a"]}.get(command, ["count"])
    assert main(["state", command, str(FILE), *names, "--epoch", "9"]) == 2
    assert "does not have epoch 9; it has those from 0 to 1" in capsys.readouterr().err
