"""Processes that are killed together with the JVM they have started, whose process group is theirs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[2]


def start(
    module: str, *arguments: str, out: int | None = None, errors: int | IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    """Run a module in a process group of its own, which its JVM will belong to."""
    command = [sys.executable, "-X", "faulthandler", "-m", module, *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=errors, start_new_session=True)


def has_ended(leader: subprocess.Popen[bytes]) -> bool:
    """Whether it has, by itself or killed. It keeps its number: ``poll`` would give it away, and with it that of the
    group, which may be a stranger's the next moment."""
    return os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None


def wait(leader: subprocess.Popen[bytes]) -> None:
    """Until it has ended; as :func:`has_ended`, unlike its own ``wait``, this leaves it its number."""
    os.waitid(os.P_PID, leader.pid, os.WEXITED | os.WNOWAIT)


def kill_alone(leader: subprocess.Popen[bytes]) -> None:
    """The JVM is left to find out by itself."""
    os.kill(leader.pid, signal.SIGKILL)
    wait(leader)


def left(leader: subprocess.Popen[bytes]) -> list[str]:
    """What still runs of its group."""
    command = ["ps", "-e", "-o", "pgid=", "-o", "stat=", "-o", "args="]
    rows = [line.split() for line in subprocess.check_output(command, text=True).splitlines()]
    return [
        " ".join(args)[:100] for group, state, *args in rows if group == str(leader.pid) and state[0] != "Z"
    ]


def settle(leader: subprocess.Popen[bytes], patience: float = 60.0) -> None:
    """Wait until nothing of its group runs; then, or when patience ends, kill what is left."""
    until = time.monotonic() + patience
    while left(leader) and time.monotonic() < until:
        time.sleep(0.05)
    end(leader)


def dump(leader: subprocess.Popen[bytes]) -> None:
    """Have one that hangs print where each of its threads is, to its errors, and end."""
    os.kill(leader.pid, signal.SIGABRT)
    wait(leader)


def end(leader: subprocess.Popen[bytes]) -> int:
    """Kill what is left of the group, once: its number is given away then. The exit code of the leader."""
    if leader.returncode is None:
        os.killpg(leader.pid, signal.SIGKILL)
        leader.communicate()
    return leader.returncode
