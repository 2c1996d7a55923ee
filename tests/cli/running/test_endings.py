"""What ends a run from outside."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from stormlet.cli import main
from tests.cli.flows import write
from tests.cli.terminal import read_until

RUN = [sys.executable, "-m", "stormlet", "run", "flow.py"]
SIGNALS = [signal.SIGINT, signal.SIGTERM]
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
    SIGNALS.append(signal.SIGHUP)  # `nohup` has it ignored, which a run respects

# Starts a command in the terminal that is its standard input, so that it hears when that is closed.
IN_ITS_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""

# The spout raises a signal when it has yielded three values, then goes on forever.
SIGNALLED = """
    import asyncio, itertools, signal
    async def numbers():
        for number in itertools.count():
            if number == 3:
                signal.raise_signal({signal!r})
            yield number
            await asyncio.sleep(0)
    topology = Topology("signalled")
    topology.bolt("print", print, topology.spout("numbers", numbers).shuffle())
    """

STUCK = """
    import asyncio, signal
    async def stuck(value: int) -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(0)
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()
    topology = Topology("stuck", message_timeout=None)
    topology.bolt("stuck", stuck, topology.spout("numbers", [1]).shuffle())
    """

# User code that never gives the loop a turn.
BLOCKED = """
    import signal
    def block(value: int) -> None:
        for _ in range(3):
            signal.raise_signal({signal!r})
        while True:
            pass
    topology = Topology("blocked")
    topology.bolt("block", block, topology.spout("numbers", [1]).shuffle())
    """

STARTING = """
    import asyncio, signal
    from stormlet import BasicBolt
    class First(BasicBolt):
        def execute(self, tup, out): ...
        def cleanup(self):
            print("cleaned up")
    class Slow(First):
        async def prepare(self, context):
            signal.raise_signal(signal.SIGTERM)
            await asyncio.sleep(60)
        def cleanup(self):
            print("never prepared")
    topology = Topology("starting")
    numbers = topology.spout("numbers", [1])
    topology.bolt("first", First, numbers.shuffle())
    topology.bolt("slow", Slow, numbers.shuffle())
    """

# Two signals come while user code is in a thread, which returns when it is said that it is waited for.
IN_A_THREAD = """
    import asyncio, os, signal, time
    def wait_until_said(words):
        for _ in range(3000):
            if words in os.pread(2, 100_000, 0):
                return
            time.sleep(0.02)
    def stuck(value):
        os.kill(os.getpid(), signal.SIGINT)
        wait_until_said(b"draining")
        os.kill(os.getpid(), signal.SIGINT)
        wait_until_said(b"{said}")
    async def stuck_elsewhere(value):
        await asyncio.to_thread(stuck, value)
    topology = Topology("stuck", message_timeout=None)
    topology.bolt("stuck", {logic}, topology.spout("numbers", [1]).shuffle(), executor="{executor}")
    """

# The run ends while a thread of it never will.
LEFT_IN_A_THREAD = """
    import asyncio, threading
    def stuck():
        threading.Event().wait()
    async def leave_it(value):
        asyncio.get_running_loop().run_in_executor(None, stuck)
    topology = Topology("left")
    topology.bolt("leave", leave_it, topology.spout("numbers", [1]).shuffle())
    """

IGNORED = """
    import signal
    def interrupt(value):
        signal.raise_signal({signal!r})
    topology = Topology("ignored")
    topology.bolt("interrupt", interrupt, topology.spout("numbers", [1]).shuffle())
    """

# Each number is printed after 0.1 s, also those that are under way when the terminal is gone.
HUNG_UP = """
    import asyncio, itertools
    from pathlib import Path
    from stormlet import BasicBolt
    class Print(BasicBolt):
        last = None
        async def execute(self, tup, out):
            await asyncio.sleep(0.1)
            print(tup.value, flush=True)
            self.last = tup.value
        def cleanup(self):
            Path("ended").write_text("printed all" if self.last == LAST[-1] else "failed")
    LAST = []
    def numbers():
        for number in itertools.count():
            LAST.append(number)
            yield number
    topology = Topology("hung up", max_spout_pending=5, max_attempts=1)
    topology.bolt("print", Print, topology.spout("numbers", numbers).shuffle())
    """

SLOW_TO_DRAIN = """
    import asyncio, itertools, signal
    drains = asyncio.Event()
    async def numbers():
        try:
            for number in itertools.count():
                yield number
                await asyncio.sleep(0.3)
        finally:
            drains.set()
    async def slow(value: int) -> None:
        await drains.wait()
        if {signal}:
            signal.raise_signal({signal})
            await asyncio.sleep(60)
    topology = Topology("slow to drain")
    topology.bolt("slow", slow, topology.spout("numbers", numbers).shuffle())
    """

ENDLESS = """
    import itertools
    topology = Topology("endless")
    topology.bolt("print", print, topology.spout("numbers", itertools.count()).shuffle())
    """


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_drains(number: signal.Signals, capfd: pytest.CaptureFixture[str]) -> None:
    """They end the spouts, and what is in flight is finished; the exit code says which it was."""
    write(SIGNALLED.format(signal=int(number)))
    assert main(["run", "flow.py"]) == 128 + number
    output = capfd.readouterr()
    assert output.out.split()[:3] == ["0", "1", "2"]
    again = "once more" if number in SIGNALS[:2] else "SIGTERM"
    assert output.err.startswith(f"{number.name}: draining; {again} cancels\nsignalled: ")
    assert "left over" not in output.err


def test_a_second_signal_cancels(capfd: pytest.CaptureFixture[str]) -> None:
    """A drain that would wait forever is cancelled by a second signal; what it leaves is reported."""
    write(STUCK)
    assert main(["run", "flow.py"]) == 130
    shown = capfd.readouterr().err
    assert shown.startswith("SIGINT: draining; once more cancels\nSIGINT: cancelling; once more kills\n")
    assert shown.endswith("left over: 1 (messages without an outcome when the topology stopped)\n")


@pytest.mark.skipif("len(SIGNALS) < 3", reason="needs SIGHUP, which nohup has ignored")
def test_sighup_does_no_more_than_drain(capfd: pytest.CaptureFixture[str]) -> None:
    """When a terminal is closed it may come twice, from the system and from the shell."""
    write(SIGNALLED.format(signal=int(signal.SIGHUP)).replace("number == 3", "number in (3, 4)"))
    assert main(["run", "flow.py"]) == 129
    shown = capfd.readouterr().err
    assert shown.startswith("SIGHUP: draining; SIGTERM cancels\nsignalled: ")
    assert "left over" not in shown


@pytest.mark.skipif("len(SIGNALS) < 3", reason="needs SIGHUP, which nohup has ignored")
@pytest.mark.parametrize("kind", ["dumb", "xterm"])
def test_a_terminal_that_is_closed_drains(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the run still prints goes to nowhere, and fails nothing."""
    monkeypatch.setenv("TERM", kind)
    write(HUNG_UP)
    master, slave = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", IN_ITS_TERMINAL, *RUN],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    read_until(master, "3\r\n")
    os.close(master)
    assert child.wait(60) == 129
    assert Path("ended").read_text("utf-8") == "printed all"


@pytest.mark.parametrize("number", SIGNALS[:2])
def test_a_third_signal_kills(number: signal.Signals) -> None:
    """User code that blocks the loop cannot keep the process alive against three signals, and the first two are
    answered while it blocks."""
    write(BLOCKED.format(signal=int(number)))
    finished = subprocess.run(RUN, capture_output=True, text=True, check=False)
    assert finished.returncode == -number
    assert finished.stderr.splitlines() == [
        f"{number.name}: draining; once more cancels",
        f"{number.name}: cancelling; once more kills",
    ]


def test_handlers_of_signals_are_put_back() -> None:
    """After the run the signals do again what they did before."""
    write(SIGNALLED.format(signal=int(signal.SIGINT)))
    before = [signal.getsignal(number) for number in SIGNALS]
    main(["run", "flow.py"])
    assert [signal.getsignal(number) for number in SIGNALS] == before


def test_it_runs_in_another_thread(capfd: pytest.CaptureFixture[str]) -> None:
    """Where signals cannot be handled, the run does without."""
    write("topology = Topology('here')\ntopology.bolt('b', print, topology.spout('a', [7]).shuffle())\n")
    thread = threading.Thread(target=main, args=(["run", "flow.py"],))
    thread.start()
    thread.join()
    assert capfd.readouterr().out == "7\n"


def test_an_interrupt_at_the_start_is_130() -> None:
    """Ctrl-C before there is anything to drain ends the command as it ends any other."""
    write("raise KeyboardInterrupt")
    assert main(["run", "flow.py"]) == 130


def test_a_signal_while_the_topology_starts_cancels_the_start(capfd: pytest.CaptureFixture[str]) -> None:
    """There is nothing to drain yet; what was prepared is cleaned up, and the exit code is that of the signal."""
    write(STARTING)
    assert main(["run", "flow.py"]) == 143
    output = capfd.readouterr()
    assert output.err == "SIGTERM: cancelling the start; once more kills\n"
    assert output.out == "cleaned up\n"


@pytest.mark.parametrize("exit_code", ["finished", "signal"])
def test_a_duration_drains(exit_code: str, capfd: pytest.CaptureFixture[str]) -> None:
    """After so many seconds the spouts end and what is in flight is finished: that is no failure. A signal that comes
    during this drain cancels it."""
    write(SLOW_TO_DRAIN.format(signal=int(signal.SIGINT) if exit_code == "signal" else 0))
    code = main(["run", "flow.py", "--duration", "0.2"])
    shown = capfd.readouterr().err
    if exit_code == "signal":
        assert code == 130
        assert shown.startswith("SIGINT: cancelling; once more kills\n")
    else:
        assert code == 0
        assert "draining" not in shown


def test_a_duration_that_is_longer_than_the_run_changes_nothing() -> None:
    """The run ends when its sources have."""
    write("topology = Topology('short')\ntopology.bolt('b', print, topology.spout('a', [7]).shuffle())\n")
    began = time.monotonic()
    assert main(["run", "flow.py", "--duration", "1h"]) == 0
    assert time.monotonic() - began < 30


def test_threads_of_user_code_that_keep_the_process_are_mentioned(capfd: pytest.CaptureFixture[str]) -> None:
    """Those of asyncio.to_thread go on after their task was cancelled, and the process waits for them."""
    said = "waiting for user code in threads (asyncio.to_thread, run_in_executor) to return; Ctrl-C kills"
    write(IN_A_THREAD.format(logic="stuck_elsewhere", executor="loop", said=said))
    assert main(["run", "flow.py"]) == 130
    *_, last = capfd.readouterr().err.splitlines()
    assert last == said


def test_a_signal_kills_while_only_threads_keep_the_process() -> None:
    """Whoever is tired of waiting has the summary already."""
    write(LEFT_IN_A_THREAD)
    command = [*RUN, "--json-summary"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert any(line.startswith("waiting for user code in threads") for line in process.stderr)
        process.send_signal(signal.SIGINT)
        shown = process.stdout.read()
    assert process.returncode == -signal.SIGINT
    assert json.loads(shown)["outcome"] == "finished"


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_that_is_ignored_stays_ignored(
    number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    """As SIGINT is in the background of a shell, where the Ctrl-C is meant for another program, and SIGHUP by nohup."""
    write(IGNORED.format(signal=int(number)))
    before = signal.signal(number, signal.SIG_IGN)
    code = main(["run", "flow.py"])
    signal.signal(number, before)
    assert code == 0
    assert number.name not in capfd.readouterr().err


def test_a_bolt_whose_thread_does_not_return_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    """User code in threads cannot be cancelled: the end waits for it."""
    said = "cancelled: waits for user code in the threads of stuck[0]"
    write(IN_A_THREAD.format(logic="stuck", executor="thread", said=said))
    assert main(["run", "flow.py"]) == 130
    assert said in capfd.readouterr().err.splitlines()


def test_a_spout_without_source_is_mentioned(capfd: pytest.CaptureFixture[str]) -> None:
    """A run that nothing can feed, and that therefore does not end by itself, says so."""
    write(SIGNALLED.format(signal=int(signal.SIGINT)) + "topology.spout('commands')\n")
    assert main(["run", "flow.py"]) == 130
    assert "spout 'commands' has no source, so this run waits for Ctrl-C" in capfd.readouterr().err


def test_a_closed_output_ends_the_run() -> None:
    """When nobody reads its output any longer, an endless topology is cancelled, and no print fails an input."""
    write(ENDLESS)
    with subprocess.Popen(RUN, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert [process.stdout.readline() for _ in range(3)] == ["0\n", "1\n", "2\n"]
        process.stdout.close()
        shown = process.stderr.read()
    assert shown.startswith("standard output is closed: cancelling\n")
    assert "Error" not in shown
    assert process.returncode == 1


def test_an_output_that_lacks_its_end_is_no_success() -> None:
    """The run was done, and its JSON went nowhere."""
    write('topology = Topology("silent")\ntopology.spout("numbers", [1])\n')
    reading, writing = os.pipe()
    os.close(reading)
    finished = subprocess.run(
        [*RUN, "--quiet", "--json-summary"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (finished.returncode, finished.stderr) == (
        1,
        "stormlet: standard output was closed before all was written\n",
    )
