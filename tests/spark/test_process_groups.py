"""Processes that are killed with their group: nothing of it stays, and no stranger's group is killed."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from tests.spark.process_groups import end, has_ended, kill_alone, start, wait

LEAVES_A_CHILD = "import subprocess; subprocess.Popen(['sleep', '1000'])"


def test_a_leader_keeps_its_number_until_its_group_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen to have ended, it is still there to be waited for; once it has been, its number is killed no more."""
    leader = start("timeit", "-n1", "-r1", out=subprocess.DEVNULL)
    wait(leader)
    assert has_ended(leader)
    os.kill(leader.pid, 0)  # raises where nobody has this number
    assert end(leader) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(leader.pid, 0)
    monkeypatch.setattr("os.killpg", lambda *_: pytest.fail("its number may be a stranger's"))
    assert end(leader) == 0


@pytest.mark.parametrize("killed", [False, True])
def test_nothing_of_a_group_stays(killed: bool) -> None:
    """What a leader leaves behind is killed, whether it has ended by itself or was killed alone."""
    statement = LEAVES_A_CHILD + (
        "; print('left', flush=True); import time; time.sleep(1000)" if killed else ""
    )
    leader = start("timeit", "-n1", "-r1", statement, out=subprocess.PIPE)
    assert leader.stdout is not None
    if killed:
        assert leader.stdout.readline() == b"left\n"
        assert not has_ended(leader)
        kill_alone(leader)
    wait(leader)
    code = end(leader)  # returns when nobody has its output open any more
    assert code == (-signal.SIGKILL if killed else 0)
