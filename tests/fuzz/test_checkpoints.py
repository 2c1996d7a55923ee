"""Whatever the file of a checkpoint holds; no Spark is needed to read it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import assume, example
from hypothesis import strategies as st

from stormlet import InvalidTopology
from stormlet.spark.source.checkpoint import Checkpoint, CheckpointFile, encoded
from stormlet.spark.source.plans import Fingerprint
from stormlet.spark.source.reading import ALL
from tests.fuzz.fuzzed import fuzzed
from tests.fuzz.inputs import damaged
from tests.fuzz.test_letters import json_values

PLAIN = Fingerprint(("id",), "struct", "plan", 3, "files")
ORDERED = Fingerprint(("id",), "struct", "plan", 3, "files", order_by=("id", "day"))
WRITTEN = {
    PLAIN: Checkpoint(PLAIN, {0: ALL, 1: 17}),
    ORDERED: Checkpoint(ORDERED, {0: 20}, key=("20", "2026-11-22")),
}


@st.composite
def changed(draw: st.DrawFn, checkpoint: Checkpoint) -> bytes:
    """With other values in some fields."""
    fields = json.loads(msgspec.json.encode(checkpoint))
    fields[draw(st.sampled_from([*fields]))] = draw(
        json_values | st.dictionaries(st.integers().map(str), st.integers())
    )
    return json.dumps(fields).encode("utf-8", "surrogatepass")


def load(path: Path, content: bytes, fingerprint: Fingerprint) -> None:
    """It is taken, if it can be one; otherwise it stays as it is, and the message names the file."""
    path.write_bytes(content)
    file = CheckpointFile(path)
    refusal = None
    try:
        found = file.load(fingerprint)
    except InvalidTopology as error:
        refusal = str(error)
    else:
        file.release()
        assert found.is_possible
        assert found.fingerprint == fingerprint
    assert refusal is None or str(path) in refusal
    assert path.read_bytes() == content


@pytest.mark.parametrize("fingerprint", [PLAIN, ORDERED], ids=["plain", "ordered"])
@fuzzed(data=st.data())
def test_any_content(there: Path, fingerprint: Fingerprint, data: st.DataObject) -> None:
    """Damaged, changed, or something else."""
    written = WRITTEN[fingerprint]
    old, new = damaged(msgspec.json.encode(written)), damaged(encoded(written))
    content = old | new | changed(written) | st.binary(max_size=30)
    load(there / "checkpoint", data.draw(content), fingerprint)


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 5000,
        b'{"fingerprint":' * 5000,
        b"\xff",
        b'{"fingerprint":{"columns":["\xff"]}}',
        b"\x00" * 4096,
        b"",
    ],
    ids=lambda content: repr(content[:20]),
)
def test_odd_contents(there: Path, content: bytes) -> None:
    """What deep nesting and other encodings do to parsers."""
    load(there / "checkpoint", content, PLAIN)


@fuzzed(
    done=st.dictionaries(st.integers(-2, 4), st.integers(-3, 2**64)),
    key=st.lists(st.text(max_size=3), max_size=3).map(tuple),
    epochs=st.integers(-2, 3),
)
@example(done={3: 1}, key=(), epochs=0)
@example(done={0: -2}, key=(), epochs=0)
@example(done={}, key=("1",), epochs=0)
def test_what_cannot_be_is_refused(
    there: Path, done: dict[int, int], key: tuple[str, ...], epochs: int
) -> None:
    """Partitions that there are not, rows below none, keys of other columns, epochs before the first."""
    checkpoint = Checkpoint(PLAIN, done, key, epochs)
    possible = all(0 <= each < 3 for each in done) and all(rows >= ALL for rows in done.values())
    assume(not possible or key or epochs < 0)
    path = there / "checkpoint"
    path.write_bytes(msgspec.json.encode(checkpoint))
    with pytest.raises(InvalidTopology, match=r"checkpoint .*/checkpoint is damaged; remove it"):
        CheckpointFile(path).load(PLAIN)
