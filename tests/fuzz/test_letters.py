"""Whatever a file of dead letters holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import strategies as st

from tests.fuzz.cli_runs import DONE, FAILED, run_cli
from tests.fuzz.fuzzed import fuzzed
from tests.fuzz.inputs import damaged, texts

LETTER = {
    "time": "2026-11-22T00:00:00Z",
    "component": "words",
    "stream": "default",
    "value": "a",
    "value_type": "str",
    "message_id": 0,
    "origin": None,
    "origin_type": "None",
    "attempts": 2,
    "cause": "FAILED",
    "failed_in": "count",
    "failed_task": 3,
    "reason": "",
    "exception": "ValueError('a')",
    "held_by": [],
    "history": ["failed in 'count'", "failed in 'count'"],
}
ALL_TYPES = (
    *(
        "str",
        "bytes",
        "int",
        "float",
        "bool",
        "None",
        "tuple[int, str]",
        "list[None]",
        "dict[str, list[int]]",
    ),
    *(
        "datetime",
        "date",
        "time",
        "timedelta",
        "Decimal",
        "UUID",
        "set[str]",
        "frozenset[int]",
        "flow:X",
        "os:X",
    ),
    *(
        "os:system",
        "__import__('os')",
        "list[" * 300 + "int" + "]" * 300,
        "int | str",
        "Any",
        "object",
        "",
        "(",
        "str:",
    ),
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def letters(draw: st.DrawFn) -> bytes:
    """One with other values in some fields, or without them."""
    letter = dict(LETTER)
    for field in draw(st.lists(st.sampled_from([*LETTER]), max_size=3)):
        letter[field] = draw(json_values)
    if draw(st.booleans()):
        letter["value_type"] = draw(st.sampled_from(ALL_TYPES) | texts)
        letter["value"] = draw(json_values)
    if draw(st.integers(0, 5)) == 0:
        del letter[draw(st.sampled_from([*letter]))]
    return json.dumps(letter).encode("utf-8", "surrogatepass")


WHOLE = json.dumps(LETTER).encode()
files = st.lists(
    letters()
    | damaged(WHOLE)
    | st.binary(max_size=40)
    | st.sampled_from(
        [WHOLE, b"", b"\r", b"{}", b"[" * 5_000, b'{"value":' * 2_000, b"\xff\xfe", WHOLE[:-1]]
    ),
    max_size=4,
).map(b"\n".join)


@pytest.mark.parametrize("options", [[], ["--json"], ["--replayable", "--last", "2"]])
@fuzzed(files)
def test_any_file_is_listed(there: Path, options: list[str], content: bytes) -> None:
    """What is a letter is listed; what is none is named by its line, and the exit code is 1."""
    (there / "letters.jsonl").write_bytes(content)
    ended = run_cli(["dead-letters", "letters.jsonl", *options])
    assert ended.is_in_our_words()
    assert ended.code in (DONE, FAILED)
    assert (ended.code == FAILED) == ("letters.jsonl, line " in ended.err)


@fuzzed(files)
def test_any_file_is_replayed(there: Path, content: bytes) -> None:
    """What can be rebuilt is emitted, or nothing runs and the message names file and line."""
    (there / "letters.jsonl").write_bytes(content)
    ended = run_cli(
        ["run", "flow.py:topology", "--replay-dead-letters", "letters.jsonl", "--quiet", "--json-summary"]
    )
    assert ended.is_in_our_words()
    assert (
        ended.code == DONE or "letters.jsonl" in ended.err or json.loads(ended.out)["exit_code"] == ended.code
    )
