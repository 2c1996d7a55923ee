"""The README's "What happens when": the process; these need one of their own, and real time."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

from stormlet import (
    Topology,
)

ENDLESS = """
    import itertools
    from pathlib import Path
    from stormlet import Topology

    def note(value):
        with Path("noted").open("a") as file:
            file.write(f"{value}\\n")

    def fail(value):
        raise ValueError("no")

    topology = Topology("endless", max_attempts=1)
    numbers = topology.spout("numbers", itertools.count(), max_spout_pending=1)
    topology.bolt("note", note, numbers.shuffle())
"""


@contextmanager
def started(there: Path) -> Iterator[subprocess.Popen[str]]:
    """``python -m stormlet run flow.py`` in a process that does not outlive the test."""
    command = [sys.executable, "-m", "stormlet", "run", "flow.py"]
    with subprocess.Popen(command, cwd=there, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not (path.exists() and path.stat().st_size):
        assert time.monotonic() < deadline, f"{path.name} was never written"
        time.sleep(0.02)


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_when_a_signal_comes(name: str, code: int, tmp_path: Path) -> None:
    """Ctrl-C, SIGTERM or SIGHUP comes to `python -m stormlet run`. The topology drains, and the exit code is 130, 143
    or 129; a second signal cancels, a third one kills. SIGHUP only drains, as a terminal that is closed may send it
    twice, and does nothing under `nohup`. An embedded topology handles no signals: that is the host's affair.
    """
    number = signal.Signals[name]
    (tmp_path / "flow.py").write_text(dedent(ENDLESS), "utf-8")
    with started(tmp_path) as process:
        wait_for(tmp_path / "noted")
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert "draining" in errors


STUCK = """
    import asyncio, time
    from pathlib import Path
    from stormlet import Topology

    async def stuck(value):
        Path("noted").write_text("it runs")
        SLEEP

    topology = Topology("stuck")
    topology.bolt("stuck", stuck, topology.spout("numbers", [1]).shuffle())
"""


@pytest.mark.parametrize(
    ("sleep", "times", "code"),
    [("await asyncio.sleep(1000)", 2, 130), ("time.sleep(1000)", 3, -signal.SIGINT)],
)
def test_a_second_and_a_third_signal(sleep: str, times: int, code: int, tmp_path: Path) -> None:
    """The second half of the sentence above: what does not drain is cancelled, what cannot be cancelled is killed."""
    (tmp_path / "flow.py").write_text(dedent(STUCK).replace("SLEEP", sleep), "utf-8")
    with started(tmp_path) as process:
        wait_for(tmp_path / "noted")
        assert process.stderr is not None
        said: list[str] = []
        for _ in range(times):  # one after the other: signals that come together are one
            process.send_signal(signal.SIGINT)
            said.append(process.stderr.readline())
        process.communicate(timeout=60)
    assert process.returncode == code
    answers = ["SIGINT: draining; once more cancels\n", "SIGINT: cancelling; once more kills\n", ""]
    assert said == answers[:times]


@pytest.mark.simulated_time
async def test_an_embedded_topology_handles_no_signals() -> None:
    """The last part of it."""
    before = [signal.getsignal(number) for number in signal.valid_signals()]
    topology = Topology("embedded")
    topology.spout("fed")
    async with topology.run():
        assert [signal.getsignal(number) for number in signal.valid_signals()] == before


@pytest.mark.parametrize("options", [[], ["--quiet"]])
def test_when_the_output_is_closed(options: list[str], tmp_path: Path) -> None:
    """Whoever reads the output of `python -m stormlet run` stops reading, as `head -1` does. The run is cancelled, the
    exit code is 1, and standard error says why, also with `--quiet`.
    """
    text = dedent(ENDLESS).replace('"note", note', '"print", print')
    (tmp_path / "flow.py").write_text(text, "utf-8")
    command = [sys.executable, "-m", "stormlet", "run", "flow.py", *options]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        errors = process.stderr.read()
    assert process.returncode == 1
    assert errors.count("standard output is closed: cancelling\n") == 1


def test_when_messages_are_given_up(tmp_path: Path) -> None:
    """A run at the command line has crashed, or ends with messages that were given up or left over. The exit code
    is 1, and the summary says how many.
    """
    text = dedent(ENDLESS).replace("itertools.count(),", "[1, 2],").replace('"note", note', '"fail", fail')
    (tmp_path / "flow.py").write_text(text, "utf-8")
    with started(tmp_path) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert re.search(r"dead letters:? +2|2 dead letters", errors)


EXITS = """
    import sys
    from stormlet import Topology

    topology = Topology("exits")
    topology.bolt("leave", sys.exit, topology.spout("codes", [7]).shuffle())
"""


HOST = """
    import asyncio
    from flow import topology

    async def main():
        async with topology.run() as running:
            await running.finished()

    asyncio.run(main())
"""


def test_when_a_bolt_exits(tmp_path: Path) -> None:
    """A bolt calls `sys.exit()`. At the command line the topology crashes, and the exit code is 1 whatever the bolt
    says; in a host it ends the event loop, as it does anywhere in asyncio.
    """
    (tmp_path / "flow.py").write_text(dedent(EXITS), "utf-8")
    with started(tmp_path) as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "SystemExit" in errors
    (tmp_path / "host.py").write_text(dedent(HOST), "utf-8")
    host = subprocess.run(
        [sys.executable, "host.py"], cwd=tmp_path, capture_output=True, timeout=60, check=False
    )
    assert host.returncode == 7


SPOOL = """
    import os, time
    from pathlib import Path
    from stormlet import Spout, Topology

    class Spool(Spout):
        "Every file of a directory is a message; it is removed when its tree is acked."

        def open(self, context, out):
            self.left = sorted(Path("spool").iterdir())

        def next_tuple(self, out):
            if self.left:
                path = self.left.pop(0)
                out.emit(path.name, message_id=path)

        def ack(self, path):
            path.unlink()

    def process(name):
        with Path("done").open("a") as file:
            file.write(f"{name}\\n")
        while name == "100" and not Path("again").exists():
            time.sleep(0.01)

    topology = Topology("spool")
    topology.bolt("process", process, topology.spout("spool", Spool).shuffle())
"""


def left(there: Path) -> int:
    return len(list((there / "spool").iterdir()))


def test_when_the_process_dies(tmp_path: Path) -> None:
    """The process dies, by `kill -9` or a power cut. All that was in memory is gone: counts of bolts, queues, what a
    generator was going to yield. A source that forgets a message only when it was acked (a broker, a spool) delivers
    the others again, so that each is processed at least once, and some of them twice.
    """
    (tmp_path / "flow.py").write_text(dedent(SPOOL), "utf-8")
    (tmp_path / "spool").mkdir()
    names = [f"{number:03}" for number in range(150)]
    for name in names:
        (tmp_path / "spool" / name).touch()
    with started(tmp_path) as process:
        wait_for(tmp_path / "done")
        process.kill()
    assert left(tmp_path)
    (tmp_path / "again").touch()
    with started(tmp_path):
        deadline = time.monotonic() + 60
        while left(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.05)
    done = (tmp_path / "done").read_text("utf-8").split()
    assert sorted(set(done)) == names
    assert left(tmp_path) == 0
