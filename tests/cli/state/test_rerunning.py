"""``state rerun``: one epoch once more, at one's desk."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stormlet.cli import main
from stormlet.connect import kafka, postgres
from stormlet.model.traits import spout_traits
from tests.cli.flows import write
from tests.cli.state.kept import FILE
from tests.cli.state.test_changing import read

EXECUTED = Path("executed")
OPENING = """
from pathlib import Path
from stormlet import *
class Count(KeyedBolt[str, str, str]):
    total = Value(int, 0)
    def execute(self, tup, out):
        with open("executed", "a") as file:
            file.write(tup.value)
        self.total += 1
        out.emit(tup.value)
    def cleanup(self):
        Path("cleaned").touch()
class Write(Committer[str]):
    def prepare(self, context):
        Path("prepared").touch()
    def commit(self, epoch, rows):
        with open("written", "a") as file:
            file.write("".join(rows))
"""
CLOSING = """
counted = topology.bolt("count", Count, words.fields(), parallelism=2)
topology.bolt("write", Write, counted.global_())
"""
TOPOLOGY = """
topology = Topology("count", state="counts.state", epoch_messages=2, history=1e9)
"""
SPOUT = """
class Shelves(Spout[str]):
    resumable = True
    def open(self, context, out):
        last = context.resume or {}
        self.words = [(shelf, place, word) for shelf, words in enumerate(["abc", "de"])
                      for place, word in enumerate(words) if place > last.get(shelf, -1)]
    def next_tuple(self, out):
        if not self.words:
            raise EndOfStream
        EMIT
    def partition(self, message_id):
        return message_id[0]
    def position_of(self, message_id):
        return message_id[1]
words = topology.spout("words", Shelves)
"""
EMIT = """shelf, place, word = self.words.pop(0)
        out.emit(word, message_id=(shelf, place))"""
EMIT_MANY = """some, self.words = self.words[:5], self.words[5:]
        out.emit_many([each[2] for each in some], message_ids=[each[:2] for each in some])"""
SOURCES = {
    "iterable": 'words = topology.spout("words", list("abcde"))',
    "generator": """
def source():
    yield from "abcde"
words = topology.spout("words", source)""",
    "with resume": """
def source(resume=None):
    yield from "abcde"[0 if resume is None else resume + 1 :]
words = topology.spout("words", source)""",
    "asynchronous": """
async def source(*, resume=None):
    for word in "abcde"[0 if resume is None else resume + 1 :]:
        yield word
words = topology.spout("words", source)""",
    "tasks": """
def source(context):
    yield from ["abc", "de"][context.task_index]
words = topology.spout("words", source, parallelism=2)""",
    "spout": SPOUT.replace("EMIT", EMIT),
    "many at once": SPOUT.replace("EMIT", EMIT_MANY),
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def flow(source: str = SOURCES["iterable"], closing: str = CLOSING) -> None:
    write(OPENING + TOPOLOGY + source + closing)


def run() -> int:
    """Run it to its end, or until it crashes, and forget what it has done to the world outside."""
    code = main(["run", "flow.py", "--quiet"])
    for name in ("executed", "prepared", "written", "cleaned"):
        Path(name).unlink(missing_ok=True)
    return code


def rerun(*options: str) -> int:
    return main(["state", "rerun", "flow.py", str(FILE), *options])


@pytest.mark.parametrize("source", SOURCES)
def test_each_epoch_has_its_messages_and_comes_to_the_same(
    source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever they come from; each is executed once, in the epoch that it was in."""
    flow(SOURCES[source])
    assert run() == 0
    before, last = FILE.read_bytes(), read().epoch
    for epoch in range(1, last + 1):
        assert rerun("--epoch", str(epoch), "--set", "epoch_messages=100") == 0
        assert "no differences from what is in the file\n" in capsys.readouterr().out
    assert sorted(EXECUTED.read_text()) == [*"abcde"]
    assert (FILE.read_bytes(), read().epoch) == (before, last)


def test_a_spout_that_gives_more_at_once_gives_what_was_in_the_epoch() -> None:
    """Up to the last message of each partition; what comes after that is left out."""
    flow(SOURCES["spout"])
    assert run() == 0
    flow(SOURCES["many at once"])
    for epoch, words in (("1", "ab"), ("2", "cd")):
        EXECUTED.unlink(missing_ok=True)
        assert rerun("--epoch", epoch) == 0
        assert sorted(EXECUTED.read_text()) == [*words]


def test_nothing_comes_to_committers(capsys: pytest.CaptureFixture[str]) -> None:
    """They are not opened; their rows are counted."""
    flow()
    assert run() == 0
    assert rerun("--epoch", "2") == 0
    assert "epoch 2 of counts.state again: 2 messages, 2 rows that no committer gets\n" in (
        capsys.readouterr().out
    )
    assert EXECUTED.read_text() == "cd"
    assert not Path("prepared").exists()
    assert not Path("written").exists()


def test_what_other_code_comes_to_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Entry by entry, and the exit code is 1."""
    flow()
    assert run() == 0
    write((OPENING + TOPOLOGY + SOURCES["iterable"] + CLOSING).replace("+= 1", "+= 2"))
    assert rerun("--epoch", "2") == 1
    assert sorted(capsys.readouterr().out.splitlines()[1:]) == [
        "2 changed from what is in the file",
        '~ count.total "c"  1 -> 2',
        '~ count.total "d"  1 -> 2',
    ]


FAILING = """
def odd(word):
    assert word != "d", "odd"
    return word
counted = topology.bolt("count", Count, words.fields(), parallelism=2)
odd = topology.bolt("odd", odd, counted.shuffle(), on_error="fail")
topology.bolt("write", Write, odd.global_())
"""


def test_what_a_crash_has_cut_short_is_run_again(capsys: pytest.CaptureFixture[str]) -> None:
    """By default: the epoch after the last, from what the sources give next. Mended, it says what it changes."""
    write(OPENING + TOPOLOGY + SOURCES["iterable"] + FAILING.replace('"fail"', '"stop"'))
    assert run() == 1
    capsys.readouterr()
    assert rerun() == 1
    shown = capsys.readouterr().err
    assert "AssertionError: odd" in shown
    flow()
    assert rerun() == 0
    assert sorted(capsys.readouterr().out.splitlines()[1:]) == [
        '+ count.total "c"  1',
        '+ count.total "d"  1',
        "2 added by this epoch",
    ]
    assert read().epoch == 1


def test_a_message_that_is_given_up_is_given_up_again(capsys: pytest.CaptureFixture[str]) -> None:
    """All attempts take place, on simulated time. It had spoilt an epoch, and was tried alone (law X7)."""
    write(OPENING + TOPOLOGY.replace("history", "max_attempts=3, history") + SOURCES["iterable"] + FAILING)
    assert run() == 1
    assert rerun("--epoch", "3") == 0
    assert "1 message, 1 dead letter\nno differences" in capsys.readouterr().out
    assert EXECUTED.read_text() == "ddd"


TIMED = """
import asyncio
rung = asyncio.Event()
class Remind(KeyedBolt[str, str, None]):
    rung = Value(int, 0)
    def execute(self, tup, out):
        self.set_timer(self.now + 0.05)
    def on_timer(self, at, out):
        self.rung += 1
        rung.set()
async def source():
    yield "a"
    await rung.wait()
words = topology.spout("words", source)
topology.bolt("remind", Remind, words.fields())
"""


def test_timers_that_have_fired_in_the_epoch_fire(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where it had no message."""
    write(OPENING + TOPOLOGY.replace("history", "epoch_seconds=0.01, history") + TIMED)
    assert run() == 0
    assert read().epoch == 2
    assert rerun("--epoch", "2") == 0
    assert "0 messages\nno differences from what is in the file" in capsys.readouterr().out


def test_there_may_be_nothing_more(capsys: pytest.CaptureFixture[str]) -> None:
    """It is said."""
    flow()
    assert run() == 0
    assert rerun() == 0
    assert "epoch 4 of counts.state again: nothing has happened\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    "trait", ["redelivers = True\n    def ack(self, id): pass", "resumable = lets_go = True"]
)
def test_a_broker_is_left_alone(trait: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It would give other messages, and lose them; so would one that lets go of what was durable."""
    flow(SPOUT.replace("EMIT", EMIT).replace("resumable = True", trait))
    assert run() == 0
    assert rerun() == 2
    assert "spout 'words' takes its messages from a broker" in capsys.readouterr().err
    assert not EXECUTED.exists()


def test_sources_at_brokers_are_left_alone() -> None:
    """Topics of Kafka, too: their client has a clock of its own, and the group would be told."""
    url = "kafka://k1"
    assert spout_traits(kafka.Topics(url, ["orders"], group="g")).lets_go
    assert spout_traits(postgres.Changes(url, slot="s", publication="p")).lets_go


def test_a_stream_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """It would be told that a batch is done, which the state has not."""
    flow(SPOUT.replace("EMIT", EMIT))
    assert run() == 0
    flow(SPOUT.replace("EMIT", EMIT).replace("resumable = True", "resumable = cuts_epochs = True"))
    assert rerun() == 2
    assert "spout 'words' takes its epochs from a source that cuts them" in capsys.readouterr().err
    assert not EXECUTED.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epoch", "9"], "counts.state has no epoch 9; its last is 3, and the next one is 4\n"),
        (["--epoch", "0"], "--epoch"),
    ],
)
def test_an_epoch_that_is_not_there_is_2(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says which there are."""
    flow()
    assert run() == 0
    assert rerun(*options) == 2
    assert message in capsys.readouterr().err


def test_an_epoch_whose_beginning_is_not_kept_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """RocksDB has the last one alone, after which the next can be run."""
    flow()
    place = "counts.rocksdb"
    assert main(["run", "flow.py", "--quiet", "--state", place, "--set", "history=0"]) == 0
    again = ["state", "rerun", "flow.py", place, "--set", "history=0"]
    assert main([*again, "--epoch", "2"]) == 2
    assert main(again) == 0
    assert "epoch 4 of counts.rocksdb again: nothing has happened\n" in capsys.readouterr().out


def test_a_program_is_loaded_once() -> None:
    """One may add to the topology of a module that it imports, which would have each component twice."""
    text = OPENING + TOPOLOGY + SOURCES["iterable"] + CLOSING
    Path("based.py").write_text(text)
    write('from based import *\ntopology.bolt("more", print, counted.shuffle())\n')
    assert run() == 0
    del sys.modules["based"]
    assert rerun("--epoch", "1") == 0
