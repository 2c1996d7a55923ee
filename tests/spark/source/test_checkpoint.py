"""The file of a checkpoint."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from stormlet import InvalidTopology
from stormlet.spark import SparkFailed
from stormlet.spark.source import checkpoint
from stormlet.spark.source.checkpoint import Checkpoint, CheckpointFile, refuse_rows_done
from stormlet.spark.source.plans import Fingerprint
from stormlet.spark.source.reading import ALL
from stormlet.state.sqlite.file import StateFile

FINGERPRINT = Fingerprint(("id",), "struct", "plan", 3, "files")
DONE = {0: ALL, 1: 17}


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    """A checkpoint comes back as it was, and beside it is only its lock."""
    file = CheckpointFile(tmp_path / "flights.checkpoint")
    assert file.load(FINGERPRINT).done == {}
    file.save(Checkpoint(FINGERPRINT, {0: 5}))
    file.save(Checkpoint(FINGERPRINT, DONE))
    assert file.load(FINGERPRINT) == Checkpoint(FINGERPRINT, DONE)
    assert {each.name for each in tmp_path.iterdir()} == {"flights.checkpoint", "flights.checkpoint.lock"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"files": "others"}, "in its files"),
        ({"plan": "another", "partitions": 4}, "in its plan and partitions"),
        ({"columns": ("id", "name")}, "in its columns"),
    ],
)
def test_another_frame_is_refused(tmp_path: Path, change: dict[str, object], said: str) -> None:
    """A checkpoint of another DataFrame is refused, and the message says what differs."""
    file = CheckpointFile(tmp_path / "c")
    file.save(Checkpoint(FINGERPRINT, DONE))
    with pytest.raises(InvalidTopology, match=f"is the checkpoint of another DataFrame, {said}; read"):
        file.load(msgspec.structs.replace(FINGERPRINT, **change))


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b'{"done": {}}'])
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, content: bytes) -> None:
    """Another file at this path is neither taken for a checkpoint nor overwritten."""
    path = tmp_path / "c"
    path.write_bytes(content)
    with pytest.raises(InvalidTopology, match="cannot be read as a checkpoint"):
        CheckpointFile(path).load(FINGERPRINT)
    assert path.read_bytes() == content


def test_one_wrong_bit_is_noticed(tmp_path: Path) -> None:
    """Wherever it is: another digit would make another checkpoint, of which rows are skipped or read again."""
    path = tmp_path / "c"
    CheckpointFile(path).save(Checkpoint(FINGERPRINT, DONE))
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        with pytest.raises(InvalidTopology, match=r"is damaged|cannot be read as a checkpoint"):
            CheckpointFile(path).load(FINGERPRINT)


def test_a_checkpoint_of_before_there_were_checksums_is_read(tmp_path: Path) -> None:
    """Runs go on from those that earlier versions have written; what is written then has one."""
    path = tmp_path / "c"
    path.write_bytes(msgspec.json.encode(Checkpoint(FINGERPRINT, DONE)))
    file = CheckpointFile(path)
    file.save(file.load(FINGERPRINT))
    assert json.loads(path.read_bytes()).keys() == {"checksum", "checkpoint"}
    assert file.load(FINGERPRINT) == Checkpoint(FINGERPRINT, DONE)


def test_a_death_between_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the new file is complete and on the device, the old one stands."""
    file = CheckpointFile(tmp_path / "c")
    file.save(Checkpoint(FINGERPRINT, DONE))

    def die(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", die)
    with pytest.raises(SparkFailed, match=r"c cannot be written: .*No space left"):
        file.save(Checkpoint(FINGERPRINT, {}))
    assert file.load(FINGERPRINT) == Checkpoint(FINGERPRINT, DONE)


def test_a_checkpoint_that_was_refused_is_free_again(tmp_path: Path) -> None:
    """Another source may take it, although the first one is still there."""
    refused = CheckpointFile(tmp_path / "c")
    refused.save(Checkpoint(FINGERPRINT, DONE))
    with pytest.raises(InvalidTopology, match="another DataFrame"):
        refused.load(msgspec.structs.replace(FINGERPRINT, files="others"))
    assert CheckpointFile(tmp_path / "c").load(FINGERPRINT).done == DONE


OLD = Checkpoint(msgspec.structs.replace(FINGERPRINT, epoch_rows=10), DONE, epochs=2, sinks=("out",))
OF_EPOCHS = (
    "is the checkpoint of 2 epochs as an earlier version of stormlet has kept them.*written to out, as rows"
)


def test_a_checkpoint_of_epochs_in_its_old_form_says_so(tmp_path: Path) -> None:
    """It is taken neither for one of rows nor for nothing, and what it knows to be written is named."""
    file = CheckpointFile(tmp_path / "c")
    file.save(OLD)
    with pytest.raises(InvalidTopology, match=OF_EPOCHS):
        file.load(FINGERPRINT)
    with pytest.raises(InvalidTopology, match=OF_EPOCHS):
        refuse_rows_done(tmp_path / "c")


def test_a_checkpoint_of_rows_is_no_state(tmp_path: Path) -> None:
    """Nor does a state say what rows are done."""
    file = CheckpointFile(tmp_path / "c")
    file.save(Checkpoint(FINGERPRINT, DONE))
    with pytest.raises(
        InvalidTopology, match="is the checkpoint of a run without epochs; leave out epoch_rows="
    ):
        refuse_rows_done(tmp_path / "c")
    StateFile(tmp_path / "state", "rows").close()
    with pytest.raises(InvalidTopology, match="is the checkpoint of a run in epochs; give epoch_rows="):
        CheckpointFile(tmp_path / "state").load(FINGERPRINT)


@pytest.mark.parametrize("content", [None, b"", b"{", b"{}", b"SQLite format 3\0"])
def test_what_is_no_checkpoint_of_rows_is_left_to_the_state(tmp_path: Path, content: bytes | None) -> None:
    """What opens it as a state file refuses the rest."""
    if content is not None:
        (tmp_path / "c").write_bytes(content)
    refuse_rows_done(tmp_path / "c")


def test_a_checkpoint_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever becomes of the current directory."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    file = CheckpointFile("c")
    monkeypatch.chdir("elsewhere")
    file.save(Checkpoint(FINGERPRINT, DONE))
    assert (tmp_path / "c").exists()


def test_the_new_name_is_on_the_device_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory is synced after the old file was replaced."""
    synced: list[tuple[Path, bool]] = []
    monkeypatch.setattr(checkpoint, "sync", lambda path: synced.append((path, (tmp_path / "c").exists())))
    CheckpointFile(tmp_path / "c").save(Checkpoint(FINGERPRINT, DONE))
    assert synced == [(tmp_path, True)]
