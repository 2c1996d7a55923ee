"""What the log says of failures: one line for each, then counts."""

from __future__ import annotations

import asyncio
import logging
import traceback
from functools import partial
from pathlib import Path

import pytest

from stormlet import BasicBolt, Bolt, Collector, DeadLetter, Reject, Running, Topology, TopologyCrashed, Tuple
from stormlet.runtime.failure_log import COUNTED_FOR
from tests.cast import Counting, Forget, Refuse, ignore
from tests.helpers import now, run_to_end

LOGGER = "stormlet.runtime.failure_log"


def fail(value: object) -> None:
    raise ValueError(f"no {value}")


def lines(caplog: pytest.LogCaptureFixture, level: int = logging.WARNING) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == LOGGER and each.levelno >= level]


@pytest.mark.simulated_time
async def test_a_flood_of_failures_is_two_lines(caplog: pytest.LogCaptureFixture) -> None:
    """The first failure has its traceback, the thousand others are one count at the end."""
    topology = Topology("flood", max_attempts=1)
    topology.bolt("fail", fail, topology.spout("numbers", range(1001)).shuffle())
    await run_to_end(topology, dead_letters=ignore)
    first, second, counted, counted_letters = lines(caplog)
    assert first == "fail[0] raised ValueError('no 0') on 0"
    assert second == "dead letter of numbers[0]: message 0: failed in fail[0]: ValueError('no 0')"
    assert counted == "execute of fail again, 1,000 more: ValueError('no 1000'); value 1000"
    assert counted_letters.startswith("dead letter of numbers again, 1,000 more: ")
    assert [each.exc_info is not None for each in caplog.records] == [True, False, False, False]


@pytest.mark.simulated_time
async def test_a_failure_has_the_traceback_of_the_first_one_and_the_time_of_the_last() -> None:
    """The others of its kind have none written, which would take longer than to fail."""

    async def fail_late(value: int) -> None:
        await asyncio.sleep(10)
        fail(value)

    topology = Topology("slow", max_attempts=1)
    topology.bolt("fail", fail_late, topology.spout("numbers", range(3)).shuffle())
    running = await run_to_end(topology, dead_letters=ignore)
    (raised,) = (each for each in running.failures() if each.what == "execute")
    assert "in fail_late\n" in raised.traceback
    assert raised.traceback.endswith("ValueError: no 0\n")
    assert (raised.count, raised.at) == (3, 30.0)


@pytest.mark.simulated_time
async def test_classes_that_are_made_at_run_time_are_no_flood(caplog: pytest.LogCaptureFixture) -> None:
    """The first hundred have a line each; the others are one line, a word on that, and a count."""

    def fail_anew(value: int) -> None:
        raise type(f"Error{value}", (Exception,), {})(value)

    topology = Topology("classes", max_attempts=1)
    topology.bolt("fail", fail_anew, topology.spout("numbers", range(300)).shuffle())
    running = await run_to_end(topology, dead_letters=ignore)
    told = [line for line in lines(caplog) if "dead letter" not in line]
    assert told[99:] == [
        "fail[0] raised Error99(99) on 99",
        "fail[0] raised Error100(100) on 100",
        "execute of fail has failed in 100 different ways; further ones are counted together",
        "execute of fail again, 199 more of other kinds, the last: Error299(299); value 299",
    ]
    raised = [each for each in running.failures() if each.what == "execute"]
    assert (len(raised), sum(each.count for each in raised)) == (101, 300)


@pytest.mark.simulated_time
async def test_every_failure_is_there_at_debug(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever wants each of them sets the level (law B4)."""
    topology = Topology("debug", max_attempts=1)
    topology.bolt("fail", fail, topology.spout("numbers", range(5)).shuffle())
    with caplog.at_level(logging.DEBUG, LOGGER):
        await run_to_end(topology)
    raised = [each for each in lines(caplog, logging.DEBUG) if "raised" in each]
    assert raised == [f"fail[0] raised ValueError('no {number}') on {number}" for number in range(5)]


@pytest.mark.simulated_time
async def test_counts_are_told_while_it_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """A failure that repeats is counted some seconds after its first repetition, not only at the end."""
    topology = Topology("goes on", max_attempts=1)
    numbers = topology.spout("numbers", outputs=int)
    topology.bolt("fail", fail, numbers.shuffle())
    told: list[float] = []

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "again" in record.getMessage():
                told.append(now())

    handler = Notes()
    logging.getLogger(LOGGER).addHandler(handler)
    try:
        async with topology.run() as running:
            for _ in range(3):
                tree = await running.emit(numbers, 1)
                with pytest.raises(Exception, match="no 1"):
                    await tree
            await asyncio.sleep(COUNTED_FOR * 3)
    finally:
        logging.getLogger(LOGGER).removeHandler(handler)
    assert told == [COUNTED_FOR]


@pytest.mark.simulated_time
async def test_other_places_are_other_failures(caplog: pytest.LogCaptureFixture) -> None:
    """Two lines of code that raise the same type have a log line each."""

    def pick(value: int) -> None:
        if value % 2:
            raise ValueError("odd")
        raise ValueError("even")

    topology = Topology("two", max_attempts=1)
    topology.bolt("pick", pick, topology.spout("numbers", range(10)).shuffle())
    running = await run_to_end(topology, dead_letters=ignore)
    assert [line for line in lines(caplog) if "raised" in line] == [
        "pick[0] raised ValueError('even') on 0",
        "pick[0] raised ValueError('odd') on 1",
    ]
    raised = [each for each in running.failures() if each.what == "execute"]
    assert [(each.kind, each.count, each.value) for each in raised] == [
        ("ValueError", 5, "8"),
        ("ValueError", 5, "9"),
    ]
    here = Path(__file__).name
    assert all(each.place.startswith(f"{here}:") for each in raised)


@pytest.mark.simulated_time
async def test_a_record_has_its_fields(caplog: pytest.LogCaptureFixture) -> None:
    """Topology, component, task and message id are fields of the record."""
    topology = Topology("fields", max_attempts=1)
    topology.bolt("fail", fail, topology.spout("numbers", ["only"]).shuffle())
    await run_to_end(topology)
    (raised, buried) = caplog.records
    fields = ("topology", "component", "task", "message_id")
    assert [getattr(raised, name) for name in fields] == ["fields", "fail", 3, 0]
    assert [getattr(buried, name) for name in fields] == ["fields", "numbers", 2, 0]


def test_what_has_no_effect_is_warned_of_with_its_fields(caplog: pytest.LogCaptureFixture) -> None:
    """A handler that writes the fields of every record can write these, too."""
    topology = Topology("fields", **{"topology.workers": 2})
    topology.spout("numbers", [1], **{"topology.debug": True})
    with pytest.warns(RuntimeWarning, match="never entered"):
        topology.run(**{"topology.debug": True})
    fields = ("topology", "component", "task", "message_id")
    assert [[getattr(each, name) for name in fields] for each in caplog.records] == [
        ["fields", None, None, None],
        ["fields", "numbers", None, None],
        ["fields", None, None, None],
    ]


@pytest.mark.simulated_time
@pytest.mark.parametrize("ackers", [0, 1, 3])
async def test_the_message_id_is_that_of_the_spout(ackers: int, caplog: pytest.LogCaptureFixture) -> None:
    """A bolt's failure names the message that a Spout class gave its id, where there are ackers that know it."""
    topology = Topology("ids", ackers=ackers)
    topology.bolt("fail", fail, topology.spout("counting", Counting).shuffle())
    with caplog.at_level(logging.DEBUG, LOGGER):
        await run_to_end(topology)
    raised = [each for each in caplog.records if "raised" in each.getMessage()]
    expected = [0, 1, 2] if ackers else [None, None, None]
    assert [getattr(each, "message_id", "") for each in raised] == expected


class Unreachable(BasicBolt[object, None]):
    """Raises the same exception at every input, as what awaits one future does."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
        """Raise it."""
        self._raise()

    def tick(self, out: Collector[None]) -> None:
        """Raise it."""
        self._raise()

    def _raise(self) -> None:
        raise self.error


def frames(error: BaseException) -> list[str]:
    return [each.name for each in traceback.extract_tb(error.__traceback__)]


@pytest.mark.simulated_time
async def test_an_exception_that_is_raised_again_has_the_frames_of_one_raise() -> None:
    """Python would add those of each raise, and keep all their local variables, for as long as anybody keeps it."""
    error = OSError("unreachable")
    topology = Topology("again", max_attempts=3)
    numbers = topology.spout("numbers", range(50))
    topology.bolt("bolt", partial(Unreachable, error), numbers.shuffle())
    running = await run_to_end(topology, dead_letters=ignore)
    assert running.statistics().components["bolt"].failed == 150
    assert frames(error)[1:] == ["execute", "_raise"]


@pytest.mark.simulated_time(allow_leaks=["inputs", "trees", "errors"])
async def test_so_has_one_that_tasks_die_of() -> None:
    """Also where several tasks die of one exception, each in its own way."""
    error = OSError("unreachable")
    topology = Topology("again", max_restarts=1000, restart_window=1e6)
    topology.bolt("ticked", partial(Unreachable, error), topology.spout("fed").shuffle(), tick=1.0)
    once = topology.spout("once", range(3))
    topology.bolt("restarted", partial(Unreachable, error), once.shuffle(), on_error="restart")
    async with topology.run() as running:
        await asyncio.sleep(1000)
        assert running.statistics().components["ticked"].restarts > 50
        assert frames(error).count("_raise") <= 2


@pytest.mark.simulated_time
async def test_user_code_that_calls_itself_keeps_its_frames(caplog: pytest.LogCaptureFixture) -> None:
    """What is left out is earlier raises alone: a recursion stands in the log as it was."""

    def recurse(value: int) -> None:
        if not value:
            raise ValueError
        recurse(value - 1)

    topology = Topology("recursion", max_attempts=1)
    topology.bolt("recurse", recurse, topology.spout("numbers", [10]).shuffle())
    await run_to_end(topology, dead_letters=ignore)
    (error,) = [each.exc_info[1] for each in caplog.records if each.exc_info]
    assert error is not None
    assert frames(error).count("recurse") == 11


@pytest.mark.simulated_time
async def test_a_timeout_names_who_holds_the_tuple(caplog: pytest.LogCaptureFixture) -> None:
    """No exception has told of a timeout, so the log does."""
    topology = Topology("late", max_attempts=2, message_timeout=5)
    topology.bolt("keep", Forget, topology.spout("words", ["a"]).shuffle())
    await run_to_end(topology)
    first, letter, again = lines(caplog)
    assert first == "message 0 of words[0] failed: timeout, held by 'keep'; value 'a'"
    assert letter.startswith("dead letter of words[0]: message 0, value 'a', attempt 2: timeout")
    assert again == "message of words again, 1 more: timeout, held by 'keep'; value 'a'"


@pytest.mark.simulated_time
async def test_an_explicit_fail_is_told_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    """What a bolt fails without an exception is told once; of a Spout class only the id is known."""
    topology = Topology("refused")
    topology.bolt("refuse", partial(Refuse, "not today"), topology.spout("counting", Counting).shuffle())
    await run_to_end(topology)
    first, again = lines(caplog)
    assert first == "message 0 of counting[0] failed: failed in refuse[0]: not today"
    assert again == "message of counting again, 2 more: failed in refuse[0]: not today"


@pytest.mark.simulated_time
async def test_an_exception_is_told_once_not_twice(caplog: pytest.LogCaptureFixture) -> None:
    """The bolt's line is enough: the failed message has none of its own."""

    def reject(value: object) -> None:
        raise Reject("never")

    topology = Topology("once")
    topology.bolt("reject", reject, topology.spout("words", ["a"]).shuffle())
    await run_to_end(topology, dead_letters=ignore)
    assert [line.split(":")[0] for line in lines(caplog)] == [
        "reject[0] raised Reject('never') on 'a'",
        "dead letter of words[0]",
    ]


class Huge(BasicBolt[str, None]):
    """Raises."""

    def execute(self, tup: Tuple[str], out: Collector[None]) -> None:
        """Raise with the value in the message."""
        raise ValueError(tup.value)


@pytest.mark.simulated_time
async def test_values_are_shortened(caplog: pytest.LogCaptureFixture) -> None:
    """A value of ten million characters does not become a line of ten million characters."""
    topology = Topology("huge", max_attempts=1)
    topology.bolt("huge", Huge, topology.spout("words", ["x" * 10_000_000]).shuffle())
    await run_to_end(topology)
    assert max(len(line) for line in lines(caplog)) < 1000


async def fail_once(topology: Topology) -> Running:
    topology.bolt("fail", fail, topology.spout("numbers", [1]).shuffle())
    return await run_to_end(topology)


@pytest.mark.simulated_time
async def test_nothing_is_left_when_it_ends() -> None:
    """The count that waits to be told leaves no timer behind."""
    running = await fail_once(Topology("end", max_attempts=3))
    assert [each.count for each in running.failures() if each.what == "execute"] == [3]
    assert now() < COUNTED_FOR


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_the_place_is_the_users_line() -> None:
    """Where stormlet raises because of what user code asks for, that code's line is the place."""

    class Settles(Bolt[object, None]):
        def execute(self, tup: Tuple[object], out: Collector[None]) -> None:
            out.ack(tup)
            out.ack(tup)

    topology = Topology("place")
    topology.bolt("settles", Settles, topology.spout("one", [1]).shuffle())
    running = await run_to_end(topology)
    (failure,) = running.failures()
    assert failure.kind == "AlreadySettled"
    assert failure.place.startswith(f"{Path(__file__).name}:")


@pytest.mark.simulated_time(allow_leaks=["errors"])
async def test_a_sentence_of_stormlets_has_no_place() -> None:
    """Where no line of the user's had a part, a line of the engine's would only mislead."""
    topology = Topology("placeless")
    topology.bolt("note", print, topology.spout("sets", [{1}]).fields())
    with pytest.raises(TopologyCrashed, match="UnroutableKey"):
        async with topology.run() as running:
            await running.finished()
    (failure,) = running.failures()
    assert (failure.kind, failure.place) == ("UnroutableKey", "")


@pytest.mark.simulated_time
async def test_a_letter_that_its_sink_did_not_keep_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """Where the sink hangs until the topology ends, each letter has a line with its value."""

    async def hang(letter: DeadLetter) -> None:
        await asyncio.sleep(1000)

    topology = Topology("hangs", max_attempts=1, drain_timeout=1)
    topology.bolt("fail", fail, topology.spout("numbers", [7, 8]).shuffle())
    async with topology.run(dead_letters=hang):
        await asyncio.sleep(1)
    unkept = [line for line in lines(caplog) if "not kept by its sink" in line]
    assert [line.split("value ")[1].split(",")[0] for line in unkept] == ["7", "8"]


@pytest.mark.simulated_time
async def test_dead_letters_for_different_reasons_are_different(caplog: pytest.LogCaptureFixture) -> None:
    """What one bolt raises by different types is not one failure with the last reason."""

    def refuse(value: int) -> None:
        raise Reject("odd") if value % 2 else ValueError("even")

    topology = Topology("reasons", max_attempts=1)
    topology.bolt("refuse", refuse, topology.spout("numbers", range(4)).shuffle())
    running = await run_to_end(topology, dead_letters=ignore)
    letters = [each for each in running.failures() if each.what == "dead letter"]
    assert sorted((each.kind, each.count) for each in letters) == [
        ("FAILED refuse Reject", 2),
        ("FAILED refuse ValueError", 2),
    ]
