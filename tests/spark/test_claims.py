"""Claims on a file: one holder at a time, and none after a death."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stormlet import InvalidTopology
from stormlet.spark.files import Claim

HOLD = """
import sys, time
from pathlib import Path
from stormlet.spark.files import Claim
claim = Claim(Path(sys.argv[1]))
claim.take()
print("taken", flush=True)
time.sleep(60)
"""


def test_another_process_is_named_until_it_dies(tmp_path: Path) -> None:
    """The file of a process that lives is refused with its number; that of one that was killed is free."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "c")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "taken\n"
            with pytest.raises(
                InvalidTopology, match=f"c is in use by process {process.pid}; wait for its end"
            ):
                Claim(tmp_path / "c").take()
        finally:
            process.send_signal(signal.SIGKILL)
    Claim(tmp_path / "c").take()


def test_two_in_one_process(tmp_path: Path) -> None:
    """A second source of this process is refused, until the first one gives the file back."""
    first, second = Claim(tmp_path / "c"), Claim(tmp_path / "c")
    first.take()
    with pytest.raises(
        InvalidTopology, match="c is the checkpoint of another source of this process; give each"
    ):
        second.take()
    first.release()
    second.take()
    second.release()


def test_taking_again_is_nothing_new(tmp_path: Path) -> None:
    """Who has the file has it, and once released it is free."""
    claim = Claim(tmp_path / "c")
    claim.take()
    claim.take()
    claim.release()
    claim.release()
    Claim(tmp_path / "c").take()


def test_a_holder_without_a_name(tmp_path: Path) -> None:
    """A process that has just locked the file, and has not said which it is, is another process."""
    first = Claim(tmp_path / "c")
    first.take()
    (tmp_path / "c.lock").write_text("")
    with pytest.raises(InvalidTopology, match="c is in use by another process"):
        Claim(tmp_path / "c").take()
    first.release()


def test_a_place_where_nothing_can_be_kept(tmp_path: Path) -> None:
    """A directory that is not there is an error at once, not when the first checkpoint is written."""
    with pytest.raises(InvalidTopology, match=r"c cannot be a checkpoint: .*No such file or directory"):
        Claim(tmp_path / "missing" / "c").take()


def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused, as nobody could tell two runs apart."""

    def refuse(handle: int, how: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(InvalidTopology, match=r"c\.lock cannot be locked: .*No locks available"):
        Claim(tmp_path / "c").take()


def test_a_claim_that_nobody_knows_of_ends(tmp_path: Path) -> None:
    """A start that was cancelled leaves its claim to nobody."""
    Claim(tmp_path / "c").take()
    Claim(tmp_path / "c").take()
