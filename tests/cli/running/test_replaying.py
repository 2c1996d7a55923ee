"""Dead letters that are fed again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stormlet import (
    BasicBolt,
    Collector,
    DeadLetter,
    DirectStream,
    EndOfStream,
    Failure,
    FailureKind,
    Reject,
    Spout,
    SpoutCollector,
    StormletError,
    TargetError,
    To,
    Topology,
    TopologyCrashed,
    Tuple,
)
from stormlet.cli.running import replaying as failed_again
from stormlet.cli.running.replaying import Replay
from stormlet.report.letter_records import LetterRecord
from stormlet.runtime.dead_letters import LetterFile, read_lines
from tests.cast import wait_for_ever
from tests.helpers import run_to_end

LETTERS = Path("dead.jsonl")
REST = Path("rest.jsonl")
REFUSED = Failure(FailureKind.FAILED, "work", 3, "no use")


class Order(msgspec.Struct, frozen=True):
    """A record."""

    number: int


class Orders(Spout[int]):
    """Hears of its own messages."""

    heard: list[object]

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        raise EndOfStream

    def ack(self, message_id: object) -> None:
        self.heard.append(message_id)


class Work:
    """A bolt that is told what to do with each value, and notes what it got."""

    def __init__(self, **behaviour: Any) -> None:
        self.behaviour = behaviour
        self.seen: list[object] = []

    def __call__(self, value: object) -> Any:
        self.seen.append(value)
        what = self.behaviour.get(str(value))
        if isinstance(what, Exception):
            raise what
        return what


def letters(
    *values: object, component: str = "numbers", stream: str = "default", origin: object = None
) -> None:
    file = LetterFile(LETTERS)
    for number, value in enumerate(values):
        file.write(DeadLetter(component, value, number, 5, REFUSED, origin, (REFUSED,), stream))


def flow(work: Any, **options: Any) -> Topology:
    def numbers() -> Iterator[int]:
        yield -1  # would be seen if the spout were asked

    topology = Topology("flow", **options)
    topology.bolt("work", work, topology.spout("numbers", numbers).shuffle())
    return topology


async def feed(topology: Topology, rest: Path | None = None, **settings: Any) -> Replay:
    replay = Replay(LETTERS, topology, settings, rest)
    async with topology.run(active=False, dead_letters=rest, **settings) as running:
        await replay.through(running)
    return replay


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def records(path: Path) -> list[LetterRecord]:
    return [line.record() for line in read_lines(path)]


@pytest.mark.simulated_time
async def test_every_letter_is_emitted_again_in_order() -> None:
    """The spouts are not asked for anything; the file stays as it is."""
    letters(*range(2500))
    before = lines(LETTERS)
    work = Work()
    replay = await feed(flow(work, max_spout_pending=10))
    assert work.seen == list(range(2500))
    assert replay.all_acked
    assert replay.summary() == "dead letters of dead.jsonl: 2,500 acked, 0 failed again, 0 not tried"
    assert lines(LETTERS) == before


@pytest.mark.simulated_time
async def test_what_a_run_wrote_is_fed_to_the_next() -> None:
    """Values come back as the records they were, on the stream they were emitted on, with their origin."""

    def orders() -> Iterator[Order | To[object]]:
        yield Order(1)
        yield To((2, b"raw"), stream="raw")

    def topology(logic: Any) -> Topology:
        made = Topology("orders", max_attempts=1)
        stream = made.spout("orders", orders, outputs={"default": Order, "raw": ["id", "bytes"]})
        made.bolt("orders-work", logic, stream.shuffle())
        made.bolt("raw-work", logic, stream.named("raw").fields("id"))
        return made

    await run_to_end(
        topology(Work(**{"Order(number=1)": Reject(), "(2, b'raw')": Reject()})), dead_letters=LETTERS
    )
    work = Work()
    replay = await feed(topology(work))
    assert (replay.acked, work.seen) == (2, [Order(1), (2, b"raw")])


@pytest.mark.simulated_time
async def test_what_fails_again_is_a_dead_letter_again() -> None:
    """It has its spout's attempts anew, and the new file has its id, its whole history and the attempts of both
    runs."""
    letters("good", "bad")
    replay = await feed(flow(Work(bad=ZeroDivisionError("again")), max_attempts=3), REST)
    assert (replay.acked, replay.failed_again, replay.all_acked) == (1, 1, False)
    assert replay.summary().endswith(
        "1 acked, 1 failed again, 0 not tried; what was not acked is in rest.jsonl"
    )
    (record,) = records(REST)
    assert (bytes(record.message_id), record.attempts, record.rebuilt_value({})) == (b"1", 8, "bad")
    assert (record.failed_in, record.exception) == ("work", "ZeroDivisionError('again')")
    assert record.history[0] == str(REFUSED)
    assert record.history[-1].endswith("ZeroDivisionError('again')")


@pytest.mark.simulated_time
async def test_without_a_file_the_log_says_what_failed_again(caplog: pytest.LogCaptureFixture) -> None:
    """One line for each distinct failure, with the line of the file; in the end, how many others were like it."""
    letters("good", "bad", "worse", *["bad"] * 1200)
    with caplog.at_level(logging.ERROR, failed_again.__name__):
        await feed(flow(Work(bad=Reject("no use"), worse=ZeroDivisionError("oh")), max_attempts=1))
    said = [each.getMessage() for each in caplog.records if each.name == failed_again.__name__]
    assert sorted(said[:2]) == [
        "dead.jsonl:2 failed again: failed in work[0]: Reject('no use')",
        "dead.jsonl:3 failed again: failed in work[0]: ZeroDivisionError('oh')",
    ]
    assert said[2:] == ["dead.jsonl: 1,200 more failed again like line 2; --dead-letters FILE keeps them"]


def test_kinds_beyond_a_hundred_are_counted_together(caplog: pytest.LogCaptureFixture) -> None:
    """Exception classes that are made at run time are no flood of lines."""
    log = failed_again.FailedAgain("flow", Path("dead.jsonl"))
    for line in range(1, 1001):
        error = type(f"Error{line}", (Exception,), {})()
        log.add(line, "work", Failure(FailureKind.FAILED, "work", 3, exception=error))
    log.close()
    said = [each.getMessage() for each in caplog.records]
    assert said[100].startswith("dead.jsonl:101 failed again: ")
    assert said[101:] == [
        "dead.jsonl: 899 more failed again in other ways, after line 101; --dead-letters FILE keeps them"
    ]


@pytest.mark.simulated_time
async def test_a_spout_class_hears_nothing_of_them() -> None:
    """They are messages of the host (law C4)."""
    Orders.heard = []
    letters(1)
    topology = Topology("class")
    topology.bolt("work", Work(), topology.spout("numbers", Orders).shuffle())
    replay = await feed(topology)
    assert (replay.acked, Orders.heard) == (1, [])


@pytest.mark.simulated_time
async def test_the_origin_is_the_old_one() -> None:
    """A bolt sees where the message came from at first."""
    seen: list[object] = []

    class Note(BasicBolt[object, None]):
        def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
            seen.append(tup.origin)

    letters(1, origin=("topic", 7))
    await feed(flow(Note))
    assert seen == [("topic", 7)]


@pytest.mark.simulated_time
async def test_a_stop_keeps_what_was_not_tried() -> None:
    """What is under way is finished; the letters that follow are in the new file unchanged."""
    letters(*range(10))

    async def work(value: int) -> None:
        await asyncio.sleep(1)
        if value == 2:
            running.stop()

    topology = flow(work, max_spout_pending=1)
    replay = Replay(LETTERS, topology, {}, REST)
    async with topology.run(active=False, dead_letters=REST) as running:
        await replay.through(running)
    assert replay.acked + replay.not_tried == 10
    assert 3 <= replay.acked <= 4
    assert lines(REST) == lines(LETTERS)[replay.acked :]


@pytest.mark.simulated_time
async def test_a_cancelled_run_keeps_what_was_under_way() -> None:
    """Letters without an outcome are no failures: a second stop leaves them for the next time."""
    letters(*range(3))

    topology = flow(wait_for_ever, message_timeout=None)
    replay = Replay(LETTERS, topology, {}, REST)
    async with topology.run(active=False, dead_letters=REST) as running:
        asyncio.get_running_loop().call_later(1, running.stop)
        asyncio.get_running_loop().call_later(2, running.stop)
        await replay.through(running)
    assert (replay.acked, replay.failed_again, replay.not_tried) == (0, 0, 3)
    assert sorted(lines(REST)) == lines(LETTERS)


@pytest.mark.simulated_time
async def test_a_crash_keeps_what_was_not_acked() -> None:
    """An exception that no tuple answers for ends the run, and no letter is lost from sight."""
    letters(*range(3))
    topology = Topology("crash")
    numbers = topology.spout("numbers", None)
    topology.bolt("work", Work(**{"1": ZeroDivisionError()}), numbers.shuffle(), on_error="stop")
    replay = Replay(LETTERS, topology, {}, REST)
    with pytest.raises(TopologyCrashed):
        async with topology.run(active=False, dead_letters=REST) as running:
            await replay.through(running)
    assert replay.acked + replay.not_tried == 3
    assert replay.not_tried == len(records(REST)) > 0


@pytest.mark.simulated_time
async def test_an_emit_that_is_refused_is_a_failure() -> None:
    """A value that a grouping cannot deal out fails alone, and the others go on."""
    letters({"key": 1}, {}, {"key": 2})
    topology = Topology("keys")
    keyed = topology.spout("numbers", None).fields(lambda value: value["key"])
    topology.bolt("work", Work(), keyed, parallelism=2)
    replay = await feed(topology, REST)
    assert (replay.acked, replay.failed_again) == (2, 1)
    assert "KeyError('key')" in records(REST)[0].reason


@pytest.mark.simulated_time
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
async def test_a_full_disk_is_an_error_that_names_the_file() -> None:
    """What failed again and cannot be written is not passed over."""
    letters("bad")
    with pytest.raises(StormletError, match="/dev/full cannot be written: No space left on device"):
        await feed(flow(Work(bad=Reject())), Path("/dev/full"))


@pytest.mark.parametrize(
    ("letter", "reason"),
    [
        ({"component": "words"}, "the topology has no spout 'words', only 'numbers', 'direct', 'strict'"),
        ({"stream": "errors"}, "spout 'numbers' has no stream 'errors', only 'default'"),
        ({"component": "direct"}, "stream 'default' of 'direct' is direct"),
        (
            {"component": "strict", "value": (1, 2)},
            "its value does not fit stream 'default' of 'strict': Expected 1",
        ),
        ({"value": object()}, "its value could not be written so that it can be rebuilt"),
        ({"origin": object()}, "its origin could not be written so that it can be rebuilt"),
    ],
)
def test_a_letter_that_cannot_be_emitted_is_refused_before_the_start(
    letter: dict[str, Any], reason: str
) -> None:
    """The message names the line and the reason, and the new file is not touched."""
    letters(1)
    values: dict[str, Any] = {
        "component": "numbers",
        "value": 2,
        "stream": "default",
        "origin": None,
        **letter,
    }
    LetterFile(LETTERS).write(DeadLetter(message_id=1, attempts=1, failure=REFUSED, **values))
    topology = flow(Work())
    topology.spout("direct", None, outputs=DirectStream())
    topology.spout("strict", None, outputs=["a"])
    with pytest.raises(TargetError) as caught:
        Replay(LETTERS, topology, {}, REST)
    assert f"1 of the lines in dead.jsonl cannot be fed again\n  line 2: {reason}" in str(caught.value)
    assert not REST.exists()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"value_type": "nowhere.Order"}, "there is no class nowhere.Order in any loaded module"),
        ({"value": "x"}, "it is no int: Expected `int`, got `str`"),
        ({"time": None}, "it is no dead letter of this version: Expected `datetime`, got `null`"),
    ],
)
def test_a_line_that_was_changed_is_refused(change: dict[str, Any], reason: str) -> None:
    """A file may have been edited, or its topology may have changed."""
    letters(1)
    LETTERS.write_bytes(msgspec.json.encode(msgspec.json.decode(LETTERS.read_bytes()) | change))
    with pytest.raises(TargetError, match=reason):
        Replay(LETTERS, flow(Work()), {})


def test_many_lines_that_are_refused_are_not_all_listed() -> None:
    """Five are enough to see what is wrong."""
    letters(*[object()] * 7)
    with pytest.raises(TargetError) as caught:
        Replay(LETTERS, flow(Work()), {})
    assert str(caught.value).count("\n  line ") == 5
    assert "\n  and 2 more\n" in str(caught.value)


def test_files_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    """A missing file, a directory, and one file for both ends."""
    with pytest.raises(TargetError, match=r"dead\.jsonl cannot be read: No such file"):
        Replay(LETTERS, flow(Work()), {})
    with pytest.raises(TargetError, match="cannot be read: Is a directory"):
        Replay(tmp_path, flow(Work()), {})
    letters(1)
    REST.symlink_to(LETTERS)
    with pytest.raises(TargetError, match="cannot be fed again and appended to at once"):
        Replay(LETTERS, flow(Work()), {}, REST)
    with pytest.raises(
        TargetError, match=r"--dead-letters missing/rest\.jsonl cannot be written: No such file"
    ):
        Replay(LETTERS, flow(Work()), {}, Path("missing/rest.jsonl"))


def test_without_ackers_nothing_is_fed() -> None:
    """Nobody would know whether a letter can be forgotten."""
    letters(1)
    with pytest.raises(TargetError, match="with ackers=0 nobody knows"):
        Replay(LETTERS, flow(Work()), {"ackers": 0})
