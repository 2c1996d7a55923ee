"""What the options of ``run`` do."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from stormlet.cli import main
from tests.cli.flows import write

LOOP = """
    import asyncio
    async def numbers():
        loop = asyncio.get_running_loop()
        yield f"{type(loop).__module__.partition('.')[0]} {loop.get_debug()}"
    topology = Topology("loop")
    topology.bolt("print", print, topology.spout("numbers", numbers).shuffle())
    """

FAILING = """
    def refuse(value: int) -> None:
        if value % 2:
            raise ValueError(value)
    topology = Topology("failing", max_attempts=1)
    topology.bolt("refuse", refuse, topology.spout("numbers", range(4)).shuffle())
    """

STUCK = """
    import asyncio
    async def stuck(value: int) -> None:
        await asyncio.Event().wait()
    topology = Topology("stuck", message_timeout=None)
    topology.bolt("stuck", stuck, topology.spout("numbers", range(3)).shuffle())
    """

DEALT = """
    from stormlet import BasicBolt
    class Dealt(BasicBolt):
        def prepare(self, context):
            self.task = context.task
        def execute(self, tup, out):
            print(tup.value, self.task)
    topology = Topology("dealt")
    topology.bolt("dealt", Dealt, topology.spout("numbers", range(50)).shuffle(), parallelism=4)
    """

LOGGING = """
    import logging
    def tell(value: int) -> None:
        for level in ("debug", "info", "warning", "error"):
            getattr(logging.getLogger("flow"), level)("a %s", level)
    topology = Topology("logging")
    topology.bolt("tell", tell, topology.spout("numbers", [1]).shuffle())
    """

HOLDING = """
    import time
    topology = Topology("holding")
    topology.bolt("hold", lambda value: time.sleep(0.12), topology.spout("numbers", [1]).shuffle())
    """

MAKING = """
    from stormlet import SqliteTable
    topology = Topology("making"{options})
    topology.bolt("write", {bolt}, topology.spout("numbers", [1, 2]).global_())
    """


def run(*options: str) -> int:
    return main(["run", "flow.py", *options])


def run_alone(*options: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, whose log is not pytest's."""
    command = [sys.executable, "-m", "stormlet", "run", "flow.py", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["asyncio", "uvloop"])
def test_the_loop_can_be_chosen(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One or the other; without debug mode."""
    write(LOOP)
    assert run("--loop", name) == 0
    assert capsys.readouterr().out == f"{name} False\n"


@pytest.mark.parametrize("options", [(), ("--loop", "asyncio")])
def test_without_uvloop_asyncios_own_loop_runs(
    options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is said of it, unless it was asked for."""
    monkeypatch.setitem(sys.modules, "uvloop", None)
    write(LOOP)
    assert run(*options) == 0
    output = capsys.readouterr()
    assert output.out == "asyncio False\n"
    assert "uvloop" not in output.err
    assert run("--loop", "uvloop") == 2
    assert capsys.readouterr().err == (
        "stormlet: --loop uvloop: uvloop is not installed: pip install 'stormlet[uvloop]', or leave --loop out\n"
    )


def test_dead_letters_are_appended_to_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    """A line each, and they can be fed again: what is acked then is done."""
    write(FAILING)
    assert run("--dead-letters", "dead.jsonl") == 1
    assert [json.loads(line)["value"] for line in Path("dead.jsonl").read_text().splitlines()] == [1, 3]
    write(FAILING.replace("value % 2", "value == 3"))
    sys.modules.pop("flow")
    assert run("--replay-dead-letters", "dead.jsonl", "--dead-letters", "again.jsonl", "--json-summary") == 1
    output = capsys.readouterr()
    assert json.loads(output.out)["replayed"] == {"acked": 1, "failed_again": 1, "not_tried": 0}
    assert "dead letters of dead.jsonl: 1 acked, 1 failed again, 0 not tried; what was not" in output.err
    write(FAILING.replace("value % 2", "False"))
    sys.modules.pop("flow")
    assert run("--replay-dead-letters", "dead.jsonl") == 0


def test_a_file_for_dead_letters_that_cannot_be_written_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before anything runs."""
    write(FAILING)
    for file, why in (("nowhere/dead.jsonl", "No such file or directory"), ("/", "Is a directory")):
        assert run("--dead-letters", file) == 2
        assert capsys.readouterr().err == f"stormlet: --dead-letters {file} cannot be written: {why}\n"
        sys.modules.pop("flow")


def test_a_drain_has_the_deadline_that_was_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """What is left then is left over, and that is a failure; it wins over ``--set``."""
    write(STUCK)
    assert run("--duration", "1", "--drain-timeout", "100ms", "--set", "drain_timeout=60") == 1
    assert "left over: 3 " in capsys.readouterr().err


def test_letters_of_what_is_left_over_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """The summary has as many as the file."""
    write(STUCK)
    assert run("--duration", "1", "--drain-timeout", "100ms", "--dead-letters", "dead.jsonl") == 1
    assert len(Path("dead.jsonl").read_text().splitlines()) == 3
    assert "\ndead letters: 3, 3 of them left over\nleft over: 3 " in capsys.readouterr().err


def test_what_is_stuck_is_explained(caplog: pytest.LogCaptureFixture) -> None:
    """After so many seconds, in the log, with the line of the user's file."""
    write(STUCK)
    ends = logging.Handler()
    ends.addFilter(lambda record: "1 is queued" in record.getMessage())
    ends.emit = lambda record: signal.raise_signal(signal.SIGINT)  # type: ignore[method-assign]
    logging.getLogger("stormlet").addHandler(ends)
    try:
        assert run("--explain-stuck", "100ms", "--drain-timeout", "0", "--set", "record_edges=1") == 130
    finally:
        logging.getLogger("stormlet").removeHandler(ends)
    told = caplog.text
    assert re.search(r"message 0 of 'numbers', 0, is open for \d\.\d+ s", told)
    assert "0 is executed by stuck[0], delivered" in told
    assert ": stuck (flow.py:" in told
    assert "1 is queued at stuck[0], delivered" in told


def test_a_time_after_which_nothing_can_be_stuck_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the option."""
    write(STUCK)
    assert run("--explain-stuck", "soon") == 2
    assert "--explain-stuck soon: write seconds" in capsys.readouterr().err
    assert run("--explain-stuck", "0") == 2
    assert (
        "--explain-stuck: explain_stuck=0.0: expected a finite number of seconds > 0"
        in capsys.readouterr().err
    )


def test_a_seed_repeats_how_tuples_are_dealt(capsys: pytest.CaptureFixture[str]) -> None:
    """The same numbers reach the same tasks; with another seed they do not."""
    write(DEALT)
    dealt = []
    for seed in ("1", "1", "2"):
        assert run("--seed", seed) == 0
        dealt.append(sorted(capsys.readouterr().out.splitlines()))
        sys.modules.pop("flow")
    assert dealt[0] == dealt[1] != dealt[2]


@pytest.mark.parametrize(
    ("options", "levels"),
    [
        ((), ["warning", "error"]),
        (("--log-level", "debug"), ["debug", "info", "warning", "error"]),
        (("--log-level", "error"), ["error"]),
        (("--quiet",), ["error"]),
        (("--quiet", "--log-level", "info"), ["info", "warning", "error"]),
    ],
)
def test_the_log_has_the_level_that_was_asked_for(options: tuple[str, ...], levels: list[str]) -> None:
    """Warnings and errors by default, errors if it shall be quiet."""
    write(LOGGING)
    shown = [line for line in run_alone(*options).stderr.splitlines() if " flow: " in line]
    assert shown == [f"{level.upper()} flow: a {level}" for level in levels]


def test_logging_is_put_back() -> None:
    """After the run, handlers and level are those of before."""
    write(LOGGING)
    root = logging.getLogger()
    before = [*root.handlers], root.level, [*logging.getLogger("asyncio").filters]
    assert run("--log-level", "debug") == 0
    assert ([*root.handlers], root.level, [*logging.getLogger("asyncio").filters]) == before


def test_logging_that_the_file_has_set_up_is_left_alone() -> None:
    """It has its own format; the level that was asked for holds all the same."""
    write(LOGGING + "logging.basicConfig(format='mine %(message)s')\n")
    finished = run_alone("--log-level", "info")
    shown = [
        line for line in finished.stderr.splitlines() if line.endswith(("debug", "info", "warning", "error"))
    ]
    assert shown == ["mine a info", "mine a warning", "mine a error"]


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_debug_names_what_holds_the_loop(loop: str) -> None:
    """In stormlet's words, once; asyncio's line about the same task is left out."""
    write(HOLDING)
    shown = run_alone("--debug", "--loop", loop).stderr
    assert len(re.findall(r"hold\[0\] held the event loop for \d", shown)) == 1
    assert "Executing" not in shown
    write(LOOP)
    assert run_alone("--debug", "--loop", loop).stdout == f"{loop} True\n"


def test_of_other_tasks_asyncio_itself_tells() -> None:
    """A task that user code has started is not the engine's to watch."""
    write(
        """
        import asyncio, time
        async def hold():
            time.sleep(0.12)
        async def start(value):
            await asyncio.create_task(hold(), name="mine")
        topology = Topology("other")
        topology.bolt("start", start, topology.spout("numbers", [1]).shuffle())
        """
    )
    assert "WARNING asyncio: Executing <Task finished name='mine'" in run_alone("--debug").stderr


def test_quiet_says_nothing_of_a_run_that_went_well(capfd: pytest.CaptureFixture[str]) -> None:
    """No summary, no progress, no mention of anything."""
    write(LOOP + "topology.spout('fed')\n")
    assert run("--quiet", "--duration", "1", "--loop", "asyncio") == 0
    assert tuple(capfd.readouterr()) == ("asyncio False\n", "")


def test_quiet_still_says_what_went_wrong() -> None:
    """The log of errors, and what crashed."""
    write(FAILING)
    shown = run_alone("--quiet").stderr
    assert "ERROR stormlet" in shown
    assert "dead letters:" not in shown
    write(LOOP.replace("yield f", "yield 1 / 0 or f"))
    assert run_alone("--quiet").stderr.splitlines()[-1].startswith("stormlet: topology 'loop' crashed: ")


def test_names_of_storms_without_effect_are_told() -> None:
    """They are no error, so that a configuration of Storm's can be used as it is."""
    write(LOOP)
    finished = run_alone("--set", "topology.workers=2")
    assert finished.returncode == 0
    assert finished.stderr.count("topology.workers has no effect") == 1


def summary(*options: str) -> dict[str, object]:
    """What the last line of standard output says, of a run in a process of its own."""
    finished = run_alone("--json-summary", *options)
    record: dict[str, object] = json.loads(finished.stdout.splitlines()[-1])
    assert record["exit_code"] == finished.returncode
    return record


def test_scripts_get_a_summary_however_the_run_ends() -> None:
    """As the last line of standard output, also where the last print had no end of line."""
    outcomes = []
    for text, *options in [
        (LOOP.replace("print, ", "lambda value: print(value, end=''), "),),
        (LOOP + "topology.spout('fed')\n", "--duration", "0.2"),
        (FAILING,),
        (STUCK.replace("await ", "import signal; signal.raise_signal(2); signal.raise_signal(2); await "),),
        (LOOP.replace("yield f", "yield 1 / 0 or f"),),
        (HOLDING + "topology.bolt('bad', None)\n",),
        (LOOP.replace("import asyncio", "import nothing_at_all"),),
    ]:
        write(text)
        record = summary(*options)
        outcomes.append((record["outcome"], record["exit_code"], record["signal"]))
    assert outcomes == [
        ("finished", 0, None),
        ("stopped", 0, None),
        ("finished", 1, None),
        ("cancelled", 130, "SIGINT"),
        ("crashed", 1, None),
        ("invalid", 2, None),
        ("invalid", 2, None),
    ]


def test_wrong_values_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Each with one message that names the option, and exit code 2."""
    write(LOOP)
    for options, message in [
        (["--duration", "soon"], "stormlet: --duration soon: write seconds"),
        (["--drain-timeout", "later"], "stormlet: --drain-timeout later: write seconds"),
        (["--replay-dead-letters", "none.jsonl"], "none.jsonl"),
        (["--seed", "x"], "--seed"),
        (["--loop", "trio"], "--loop"),
        (["--log-level", "loud"], "--log-level"),
    ]:
        assert run(*options) == 2
        shown = capsys.readouterr().err
        assert message in shown
        assert "Traceback" not in shown


def test_the_loop_is_gone_afterwards() -> None:
    """Nothing of the run stays behind in the process."""
    write(LOOP)
    assert run() == 0
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


def test_dead_letters_in_a_database_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """It would overwrite them: the state's own file, which is made by then, and any other one."""
    write(FAILING)
    assert run("--state", "flow.state", "--dead-letters", "./flow.state") == 2
    said = "--dead-letters flow.state belongs to the topology's state; name another file for the letters\n"
    assert capsys.readouterr().err == f"stormlet: {said}"
    for state, letters in (("flow.state", "flow.state-wal"), ("flow.rocksdb", "flow.rocksdb/letters")):
        sys.modules.pop("flow")
        assert run("--state", state, "--dead-letters", letters) == 2
        assert f"--dead-letters {letters} belongs to the topology's state" in capsys.readouterr().err
    assert not Path("flow.state").exists()
    with closing(sqlite3.connect("table.db")) as database:
        database.execute("CREATE TABLE words (word TEXT)")
    assert run("--dead-letters", "table.db") == 2
    said = "stormlet: --dead-letters table.db is a database of SQLite; name another file\n"
    assert capsys.readouterr().err == said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_dead_letters_in_a_pipe_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The run would wait for its reader, and hold the loop."""
    write(FAILING)
    os.mkfifo("pipe")
    assert run("--dead-letters", "pipe") == 2
    said = "stormlet: --dead-letters pipe is a pipe, which keeps nothing; name a file\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("options", "bolt", "what"),
    [
        (', state="own.db"', "", "belongs to the topology's state"),
        ("", 'SqliteTable("rows", int, path="own.db")', "is the database that bolt 'write' writes"),
    ],
)
def test_dead_letters_in_a_file_that_the_run_would_make_are_refused(
    options: str, bolt: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The topology names it, and it is not there yet."""
    write(MAKING.format(options=options, bolt=bolt or "print"))
    for name in ("own.db-wal", "own.db"):
        assert run("--dead-letters", name) == 2
        sys.modules.pop("flow")
    assert capsys.readouterr().err.splitlines() == [
        f"stormlet: --dead-letters {name} {what}; name another file for the letters"
        for name in ("own.db-wal", "own.db")
    ]
    assert not Path("own.db").exists()
    assert run("--dead-letters", "letters.jsonl") == 0
