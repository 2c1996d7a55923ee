"""``run --engine spark`` as a program, on this machine's cores and on a standalone cluster."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.engine.streams import expected, totals, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[3] / "examples"
WORD_COUNT = ["run", str(EXAMPLES / "word_count.py"), "--engine", "spark"]
FILES = (["a", "b", "a"], ["c"], ["a", "b"])
UNAVAILABLE = 1
PATIENCE = 120.0
"""Seconds until a cluster has begun to work."""


@pytest.fixture(autouse=True)
def needs_spark(request: pytest.FixtureRequest) -> None:
    """Where Spark cannot start, these tests are skipped, and fail in CI."""
    request.getfixturevalue("spark")


def stormlet(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command line, with these variables in its environment."""
    command = [sys.executable, "-m", "stormlet", *arguments]
    environment = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def rows(summary: str) -> Sequence[Sequence[str]]:
    """The counts of the closing table, by component."""
    return [line.split()[:4] for line in summary.splitlines()]


def test_an_example_prints_what_it_prints_in_process() -> None:
    """The summary has the counts of all partitions."""
    here, there = stormlet(*WORD_COUNT[:2]), stormlet(*WORD_COUNT)
    assert (there.stdout, there.returncode) == (here.stdout, 0)
    assert ["count", "27", "36", "36"] in rows(there.stderr)


def test_messages_that_were_given_up_are_exit_code_1() -> None:
    """As in process, and with the same failures."""
    finished = stormlet("run", str(EXAMPLES / "replay.py"), "--engine", "spark")
    assert finished.returncode == 1
    assert "dead letters: 2" in finished.stderr
    assert "6 times charge[0]: ConnectionError('the bank does not answer')" in finished.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--duration", "5"], "--duration has no effect with --engine spark, as it is for --engine process"),
        (["--set", "ackers=0"], "has ackers=0, and Spark's work is checked by the ledger"),
    ],
)
def test_what_spark_cannot_do_is_wrong_usage(arguments: Sequence[str], problem: str) -> None:
    """Exit code 2, before a JVM starts."""
    finished = stormlet(*WORD_COUNT, *arguments)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert problem in finished.stderr


def test_a_master_is_for_spark() -> None:
    """In process it is refused."""
    finished = stormlet(*WORD_COUNT[:2], "--master", "local")
    assert finished.returncode == 2
    assert "--master has no effect with --engine process, as it is for --engine spark" in finished.stderr


def is_java_in(session: int) -> bool:
    """True once a session of processes has a JVM."""
    return not subprocess.run(
        ["pgrep", "-s", str(session), "java"], stdout=subprocess.PIPE, check=False
    ).returncode


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
@pytest.mark.parametrize("seconds", [0.0, 7.5], ids=["in the start", "in the run"])
def test_one_ctrl_c_ends_all(tmp_path: Path, seconds: float) -> None:
    """Nothing is left: no JVM, no folder, no word of Java's or of PySpark's."""
    command = [sys.executable, "-m", "stormlet", "run", str(EXAMPLES / "flights.py"), "--engine", "spark"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, start_new_session=True
    ) as child:
        until = time.monotonic() + PATIENCE
        while not is_java_in(child.pid):
            assert child.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        time.sleep(seconds)
        os.killpg(child.pid, signal.SIGINT)
        output, errors = child.communicate(timeout=60)
    assert (child.returncode, output, errors) == (130, b"", b"SIGINT: cancelling; once more kills\n")
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("stormlet-")] == []


# Streams.


STREAM = """
from pathlib import Path
from stormlet.spark import spark_session
from tests.spark.engine.streams import counting

def topology(folder: Path, seconds: int = -1):
    trigger = {"availableNow": True} if seconds < 0 else {"processingTime": f"{seconds} seconds"}
    return counting(spark_session(), folder, trigger=trigger)
"""


@pytest.fixture
def program(tmp_path: Path) -> Sequence[str]:
    """The command for a stream of three files of words, one of which is rejected."""
    write(tmp_path / "in", ["a", "b", "a"], ["bad", "c"], ["a", "b"])
    (tmp_path / "program.py").write_text(STREAM)
    place = f"{tmp_path / 'program.py'}:topology"
    letters = ["--dead-letters", str(tmp_path / "letters.jsonl")]
    return ["run", place, "--engine", "spark", "--arg", f"folder={tmp_path}", *letters]


def test_a_stream_runs_until_its_data_has_ended(
    program: Sequence[str], spark: SparkSession, tmp_path: Path
) -> None:
    """The summary has the counts of all epochs."""
    finished = stormlet(*program)
    assert finished.returncode == 1
    assert ["count", "6", "7", "6"] in rows(finished.stderr)
    assert "dead letters: 1" in finished.stderr
    assert totals(spark, tmp_path) == expected(*FILES)


def test_a_stream_that_is_stopped_goes_on(
    program: Sequence[str], spark: SparkSession, tmp_path: Path
) -> None:
    """Ctrl-C lets the epoch end that is under way."""
    command = [sys.executable, "-m", "stormlet", *program, "--arg", "seconds=5", "--quiet"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as child:
        await_epoch(tmp_path)
        os.killpg(child.pid, signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    assert child.returncode == 130
    assert errors == b"SIGINT: finishing the epoch that is under way; once more kills\n"
    assert totals(spark, tmp_path) != expected(*FILES)
    assert stormlet(*program).returncode <= 1
    assert totals(spark, tmp_path) == expected(*FILES)


def await_epoch(folder: Path) -> None:
    """Wait until an epoch is done."""
    until = time.monotonic() + PATIENCE
    while not [*folder.glob("checkpoint/stormlet/*/done.json")]:
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("option", [["--staging", "."], ["--seed", "1"]])
def test_an_option_for_batches_is_refused_for_a_stream(program: Sequence[str], option: Sequence[str]) -> None:
    """A stream would not use it."""
    finished = stormlet(*program, *option)
    assert finished.returncode == 2
    assert f"{option[0]} has no effect on a stream" in finished.stderr


# A standalone cluster.


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster of two workers with one core each."""
    folder = tmp_path_factory.mktemp("cluster")
    with ExitStack() as running:
        running.enter_context(
            daemon(folder, "Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        )
        address = address_in(folder / "master.log")
        for number in (1, 2):
            options = ["--host", "127.0.0.1", "-c", "1", "-m", "1g", "--webui-port", "0", "-d", str(folder)]
            running.enter_context(daemon(folder, "Worker", *options, address, log=f"worker{number}.log"))
        yield address


@contextmanager
def daemon(folder: Path, kind: str, *options: str, log: str = "master.log") -> Iterator[None]:
    """One process of the cluster."""
    import pyspark

    command = Path(pyspark.__file__).parent / "bin" / "spark-class"
    name = f"org.apache.spark.deploy.{kind.lower()}.{kind}"
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    with (folder / log).open("wb") as file:
        process = subprocess.Popen([command, name, *options], stdout=file, stderr=file, env=environment)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def address_in(log: Path) -> str:
    """Wait until a master says at which port it listens."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if found := re.search(r"Starting Spark master at (spark://\S+)", log.read_text("utf-8")):
            return found[1]
        time.sleep(0.1)
    raise TimeoutError(log.read_text("utf-8"))


def test_a_cluster_gives_the_same(master: str) -> None:
    """The example's module travels to the workers."""
    here, there = stormlet(*WORD_COUNT[:2]), stormlet(*WORD_COUNT, "--master", master)
    assert (there.stdout, there.returncode) == (here.stdout, 0)


def test_a_stream_on_a_cluster(
    master: str, program: Sequence[str], spark: SparkSession, tmp_path: Path
) -> None:
    """The modules travel to the workers of each epoch, and so do the states."""
    assert stormlet(*program, "--master", master).returncode == 1
    assert totals(spark, tmp_path) == expected(*FILES)


@pytest.fixture
def other_python(tmp_path: Path) -> Path:
    """A Python that has all packages of this one, but for stormlet."""
    folder = tmp_path / "other"
    venv.create(folder, with_pip=False, symlinks=True)
    theirs, ours = packages_of(folder), packages_of(Path(sys.prefix))
    for each in ours.iterdir():
        if "stormlet" not in each.name and not (theirs / each.name).exists():
            (theirs / each.name).symlink_to(each)
    return folder / "bin" / "python"


def packages_of(prefix: Path) -> Path:
    """Its folder of packages."""
    return Path(sysconfig.get_path("purelib", vars={"base": str(prefix), "platbase": str(prefix)}))


@pytest.mark.skipif(sys.platform == "win32", reason="folders are others there")
def test_an_executor_without_a_package_is_one_sentence(master: str, tmp_path: Path) -> None:
    """Also where it is one that Spark itself needs there."""
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    finished = stormlet(*WORD_COUNT, "--master", master, PYSPARK_PYTHON=str(tmp_path / "bare/bin/python"))
    assert (finished.returncode, finished.stdout) == (UNAVAILABLE, "")
    note, refusal = finished.stderr.splitlines()
    assert note.startswith("note: parallelism=2 of bolt 'split' has no effect on Spark")
    assert refusal.startswith("stormlet: an executor has no pyarrow; install stormlet==")


@pytest.mark.skipif(sys.platform == "win32", reason="folders are others there")
def test_a_stream_needs_stormlet_everywhere(master: str, program: Sequence[str], other_python: Path) -> None:
    """An executor without it is refused in one sentence, before the first epoch."""
    finished = stormlet(*program, "--master", master, PYSPARK_PYTHON=str(other_python))
    assert (finished.returncode, finished.stdout) == (UNAVAILABLE, "")
    assert finished.stderr.startswith("stormlet: an executor has no stormlet; install stormlet==")
    assert len(finished.stderr.splitlines()) == 1


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found in /proc")
def test_an_executor_that_is_killed_costs_nothing(master: str) -> None:
    """Spark repeats its work; the ledger adds up, and the example's own check passes."""
    flights = ["run", str(EXAMPLES / "flights.py"), "--arg", "limit=100000", "--engine", "spark"]
    command = [sys.executable, "-m", "stormlet", *flights, "--master", master]
    earlier = executors()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        kill_an_executor(earlier)
        output, _ = child.communicate()
    assert child.returncode == 0
    assert "100,000 flights; computed directly, the tables are the same" in output


def kill_an_executor(earlier: Collection[int]) -> None:
    """One that is three seconds old; those of an earlier test may begin late, and end at once."""
    while True:
        executor = another_executor(earlier)
        time.sleep(3)
        try:
            os.kill(executor, signal.SIGKILL)
            return
        except ProcessLookupError:
            earlier = {*earlier, executor}


def another_executor(earlier: Collection[int]) -> int:
    """The process id of an executor that was not there earlier, once there is one."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if others := executors() - set(earlier):
            return min(others)
        time.sleep(0.1)
    raise TimeoutError("no executor has begun")


def executors() -> set[int]:
    """The process ids of all executors on this machine."""
    found = set[int]()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in words:
            found.add(int(entry.parent.name))
    return found


@pytest.mark.parametrize(
    ("master", "problem"),
    [
        ("nonsense", "Spark's JVM did not start"),
        ("spark://127.0.0.1:1", "Spark did not start with master 'spark://127.0.0.1:1'"),
    ],
)
@pytest.mark.untraced
@pytest.mark.timeout(300)  # Spark asks for a minute
def test_a_wrong_master_is_named(master: str, problem: str) -> None:
    """In one line, without Java's stack."""
    finished = stormlet(*WORD_COUNT, "--master", master)
    assert finished.returncode in (1, 2)
    assert problem in finished.stderr
    assert "\tat " not in finished.stderr
    assert "Traceback" not in finished.stderr
