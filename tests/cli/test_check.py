"""``stormlet check``: what is warned of, and what is not."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec import Struct
from msgspec.structs import replace

from stormlet import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    Spout,
    SpoutCollector,
    Topology,
    TopologyCrashed,
    Tuple,
)
from stormlet.cli import main
from stormlet.cli.check import report
from stormlet.cli.inspecting.checks import findings
from stormlet.cli.inspecting.checks.finding import Finding
from tests.cli.flows import write
from tests.helpers import run_to_end


class Row(Struct):
    word: str
    tags: set[str]


class Tracked(Spout[int]):
    def next_tuple(self, out: SpoutCollector[int]) -> None:
        out.emit(1, message_id=1)


class Untracked(Spout[int]):
    def next_tuple(self, out: SpoutCollector[int]) -> None:
        out.emit(1)


class Pass(Bolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(tup.value, anchors=tup)
        out.ack(tup)


class Batch(BatchBolt[int, None]):
    within = 5.0

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        pass


def numbers() -> Iterator[int]:
    yield 1


def sink(value: object) -> None:
    pass


def double(value: int) -> int:
    return value * 2


def chain(*logics: Any, source: Any = numbers, outputs: object = None, **configuration: object) -> Topology:
    """A spout and bolts in a row: ``a``, ``b``, …"""
    topology = Topology("chain", **configuration)
    stream = cast("Any", topology).spout("numbers", source, outputs=outputs)
    for place, logic in enumerate(logics):
        stream = topology.bolt("abc"[place], logic, stream.shuffle())
    return topology


def found(topology: Topology) -> list[tuple[str, str | None]]:
    return [(each.rule, each.component) for each in findings(topology.describe())]


def only(topology: Topology) -> Finding:
    (finding,) = findings(topology.describe())
    return finding


@pytest.mark.parametrize(
    "source", [numbers, [1, 2], Tracked, Untracked, partial(Tracked), None, lambda: Tracked()]
)
@pytest.mark.parametrize("logic", [sink, print, Pass, partial(Batch), lambda value: value])
def test_what_is_well_built_is_not_warned_of(source: object, logic: object) -> None:
    """Every kind of source and logic, wired to an end, has no findings."""
    assert found(chain(logic, sink, source=source)) == []


# Wiring.


def looping(*, back: str = "b", source: Any = numbers, **configuration: object) -> Topology:
    topology = Topology("looping", **configuration)
    start = cast("Any", topology).spout("numbers", source, outputs=int)
    a = topology.bolt("a", double, start.shuffle())
    b = topology.bolt("b", double, a.shuffle())
    topology.bolt("end", sink, b.shuffle())
    topology.connect(a, {"a": a, "b": b}[back].shuffle())
    return topology


def test_a_cycle_is_shown_as_the_way_round() -> None:
    """The way through the bolts and back is spelled out, and what bounds it is named."""
    finding = only(looping())
    assert (finding.rule, finding.component) == ("cycle", "a")
    assert finding.problem == (
        "'a' -> 'b' -> 'a' is a cycle: its queues hold nobody back, so only max_spout_pending bounds them"
    )
    assert only(looping(back="a")).problem.startswith("'a' -> 'a' is a cycle: ")


@pytest.mark.parametrize(
    ("source", "configuration"),
    [(numbers, {"max_spout_pending": None}), (Untracked, {}), (numbers, {"ackers": 0})],
)
def test_a_cycle_without_any_bound_says_so(source: Any, configuration: dict[str, object]) -> None:
    """Where messages are not pending, or any number may be, nothing bounds a cycle; only spouts upstream count."""
    topology = looping(source=source, **configuration)
    other = topology.spout("other", numbers, max_spout_pending=None)
    topology.bolt("apart", sink, other.shuffle())
    finding = next(each for each in findings(topology.describe()) if each.rule == "cycle")
    assert finding.problem.endswith("and nothing bounds what 'numbers' sends into them")
    assert finding.advice.startswith("track the messages and set max_spout_pending, and make sure")


def test_cycles_that_hang_together_are_one_finding() -> None:
    """Cycles through one bolt are told of once: a shortest way round, and what it is entangled with."""
    topology = looping()
    (b,) = topology.describe().bolts["end"].inputs
    c = topology.bolt("c", double, b)
    topology.connect(cast("Any", c), c.shuffle())
    apart = [each.problem.partition(":")[0] for each in findings(topology.describe())]
    assert apart == ["'a' -> 'b' -> 'a' is a cycle", "'c' -> 'c' is a cycle"]
    topology.connect(cast("Any", dataclasses.replace(c, id=replace(c.id, component="b"))), c.shuffle())
    together = [
        each.problem.partition(":")[0] for each in findings(topology.describe()) if each.rule == "cycle"
    ]
    assert together == ["'a' -> 'b' -> 'a' is a cycle, entangled with 'c'"]


def test_a_spout_that_nobody_hears() -> None:
    """A spout without subscribers is one finding, however many streams it has."""
    topology = chain(sink)
    topology.spout("alone", Tracked, outputs={"default": int, "errors": None})
    finding = only(topology)
    assert (finding.rule, finding.component) == ("unheard spout", "alone")
    assert "count as acked" in finding.problem


@pytest.mark.parametrize("logic", [double, lambda value: None, print, sink, Batch])
def test_a_default_stream_counts_where_the_code_promises_values(logic: object) -> None:
    """An unused default stream is a finding only for a bolt that is annotated to emit there."""
    expected = [("unused stream", "a")] if logic is double else []
    assert found(chain(logic)) == expected


def test_a_bolt_class_that_never_emits_is_a_sink() -> None:
    """What a class is annotated to emit does not matter where its code shows that it emits nothing."""

    class Silent(BasicBolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            pass

    class Loud(BasicBolt[int, int]):
        def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
            out.emit(tup.value)

    assert found(chain(Silent)) == []
    assert found(chain(Loud)) == [("unused stream", "a")]


def test_a_declared_stream_that_nobody_hears() -> None:
    """A further stream was declared for somebody: unheard, it is a finding, with its type and the way out."""
    topology = Topology("errors")
    stream = topology.spout("numbers", numbers)
    topology.bolt("a", sink, stream.shuffle(), outputs={"errors": Row})
    topology.bolt(
        "b", sink, topology.spout("more", Tracked, outputs={"default": int, "late": None}).shuffle()
    )
    late, errors = findings(topology.describe())
    assert (late.component, errors.component) == ("more", "a")
    assert "stream 'late' of spout 'more'" in late.problem
    assert "stream 'errors' (Row) of bolt 'a'" in errors.problem
    assert errors.advice.startswith("subscribe a bolt to it, or ")


def test_a_host_may_collect_what_nobody_hears() -> None:
    """Downstream of a spout that the host feeds, an unused default stream is what ``collect=`` is for."""
    assert found(chain(double, double, source=None, outputs=int)) == []


# Routing.


@pytest.mark.parametrize(
    ("by", "fault"),
    [
        (("word",), False),
        (("tags",), True),
        ((0, 1), True),
        ((), True),
        ((lambda row: row.tags,), False),
    ],
)
@pytest.mark.parametrize("grouping", ["fields", "partial_key"])
def test_a_key_that_cannot_be_hashed(grouping: str, by: tuple[Any, ...], *, fault: bool) -> None:
    """A key of a type without a stable hash is a finding that names bolt, stream and type."""
    topology = Topology("keys")
    stream = topology.spout("rows", Tracked, outputs=Row)
    topology.bolt("count", sink, getattr(stream, grouping)(*by))
    if not fault:
        assert found(topology) == []
        return
    finding = only(topology)
    assert (finding.rule, finding.component) == ("unroutable key", "count")
    assert f"the {grouping} grouping of bolt 'count' on stream 'default' of 'rows'" in finding.problem
    assert "type set," in finding.problem


def test_tasks_that_a_global_grouping_leaves_idle() -> None:
    """More than one task is a finding only where everything comes by global groupings."""
    topology = Topology("global")
    stream = topology.spout("numbers", numbers)
    topology.bolt("one", sink, stream.global_())
    topology.bolt("idle", sink, stream.global_(), parallelism=3)
    topology.bolt("mixed", sink, stream.global_(), stream.shuffle(), parallelism=3)
    assert found(topology) == [("idle tasks", "idle")]


# Tracking.


@pytest.mark.parametrize(
    ("source", "consequence"),
    [
        (numbers, "none that fails is replayed"),
        ([1], "none that fails is replayed"),
        (Tracked, "its fail is never called"),
        (None, "awaiting one raises NotTracked"),
    ],
)
def test_messages_without_ackers(source: object, consequence: str) -> None:
    """With ackers=0 every spout that tracks is a finding, which says what comes of it."""
    finding = only(chain(sink, source=source, ackers=0))
    assert (finding.rule, finding.component) == ("no ackers", "numbers")
    assert finding.problem.endswith(consequence)


def test_untracked_messages_need_no_ackers() -> None:
    """A spout whose code passes no message_id is content with ackers=0."""
    assert found(chain(sink, source=Untracked, ackers=0)) == []


class Forgetful(Bolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(tup.value)


class Deliberate(Bolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(tup.value, anchors=())
        out.ack(tup)

    def tick(self, out: Collector[int]) -> None:
        out.emit(0)


class Delegating(Bolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(1)
        settle(tup, out)


def settle(tup: Tuple[int], out: Collector[int]) -> None:
    out.ack(tup)


def test_a_bolt_that_forgets_to_anchor_and_to_ack() -> None:
    """Both are findings of their own, and the advice for both is BasicBolt, or the call."""
    unsettled, unanchored = findings(chain(Forgetful, sink).describe())
    assert (unsettled.rule, unanchored.rule) == ("unsettled inputs", "unanchored output")
    assert "out.ack(tup)" in unsettled.advice
    assert "anchors=tup" in unanchored.advice
    assert found(chain(partial(Forgetful), sink)) == found(chain(Forgetful, sink))


@pytest.mark.parametrize("logic", [Deliberate, Delegating, Pass])
def test_what_is_meant_or_cannot_be_seen_is_no_finding(logic: type) -> None:
    """``anchors=()`` says that it is meant; a collector that is handed to other code may do anything there."""
    assert found(chain(logic, sink)) == []


class Tally(BasicBolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Count."""

    def finish(self, out: Collector[int]) -> None:
        out.emit(1)


class Ticking(BasicBolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        """Count."""

    def tick(self, out: Collector[int]) -> None:
        out.emit(1)


class Holding(Bolt[int, int]):
    def __init__(self) -> None:
        self.held: list[Tuple[int]] = []

    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        self.held.append(tup)

    def finish(self, out: Collector[int]) -> None:
        out.emit(1, anchors=self.held)
        for tup in self.held:
            out.ack(tup)


class Write(BatchBolt[int, None]):
    needs_acks = True

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        """Write."""


class WriteFactory:
    needs_acks = True

    def __call__(self) -> Write:
        return Write()


def written(*logics: Any, on_error: Any = "fail", tick: float | None = None) -> Topology:
    topology = Topology("written")
    stream = topology.spout("numbers", numbers)
    for place, logic in enumerate(logics[:-1]):
        stream = topology.bolt("abc"[place], logic, stream.shuffle(), tick=tick)
    topology.bolt("write", logics[-1], stream.shuffle(), on_error=on_error)
    return topology


@pytest.mark.parametrize("write", [Write, partial(Write), WriteFactory()])
def test_what_finish_emits_may_be_lost(write: object) -> None:
    """Below ``finish`` a sink that lives by acks must stop the topology, however far below, as nothing is replayed."""
    finding = only(written(Tally, double, write))
    assert (finding.rule, finding.component) == ("unowned output", "write")
    assert "bolt 'a' emits in finish, what comes of that reaches bolt 'write'" in finding.problem
    assert "on_error='stop'" in finding.advice
    assert found(written(Tally, double, write, on_error="stop")) == []


def test_what_tick_emits_may_be_lost() -> None:
    """The same goes for ``tick``, where it is called."""
    assert found(written(Ticking, Write, tick=1.0)) == [("unowned output", "write")]
    assert "emits in tick" in only(written(Ticking, Write, tick=1.0)).problem
    assert found(written(Ticking, Write)) == []


def test_one_warning_for_each_sink() -> None:
    """Of several bolts above, the nearest is named."""
    assert "bolt 'b' emits" in only(written(Tally, Tally, Write)).problem


@pytest.mark.parametrize("logics", [(Holding, Write), (double, Write), (Tally, Batch), (Tally, sink)])
def test_what_belongs_to_messages_is_replayed(logics: Any) -> None:
    """What is anchored, or is written by nobody who lives by acks, is no finding."""
    assert found(written(*logics)) == []


def test_a_cycle_above_a_sink_is_walked_once() -> None:
    """Its bolts are looked at, and the walk ends."""
    topology = written(Tally, double, Write)
    bolts = topology.describe().bolts
    again = replace(bolts["a"], inputs=(*bolts["a"].inputs, *bolts["write"].inputs))
    looped = replace(topology.describe(), bolts={**bolts, "a": again})
    assert [each.rule for each in findings(looped)] == ["cycle", "unowned output"]


# What is taken for something else.


NEEDED = 3
here = sys.modules[__name__]


class Scale(BasicBolt[int, int]):
    def __init__(self, factor: int) -> None:
        self.factor = factor

    def execute(self, tup: Tuple[int], out: Collector[int]) -> Any:
        out.emit(tup.value * self.factor)


def scaled(value: int = 1) -> object:
    return Scale(value)


def compared(value: object, kind: type = Scale) -> bool:
    return isinstance(value, kind)


@pytest.mark.parametrize(
    "logic",
    [lambda factor=NEEDED: Scale(factor), lambda cls=Scale: cls(1), lambda k=1: here.Scale(k), scaled],
)
def test_a_factory_that_will_be_called_with_a_value(logic: object) -> None:
    """Its parameters have defaults, and its code names a class of bolts: that is told before the first value comes."""
    finding = next(iter(findings(chain(logic, sink).describe())))
    assert (finding.rule, finding.component) == ("mistaken factory", "a")
    assert "with functools.partial(Scale, ...)" in finding.advice


@pytest.mark.parametrize("logic", [compared, lambda value: Scale, lambda value=NEEDED: value + NEEDED, str])
def test_a_function_of_the_value_may_have_defaults(logic: object) -> None:
    """What needs a value, or names no class of bolts, is meant as it is."""
    assert found(chain(logic, sink)) == []


class Gives(BasicBolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> Any:
        if tup.value:
            return tup.value * 2
        return None


class GivesToOthers(Spout[int]):
    def next_tuple(self, out: SpoutCollector[int]) -> Any:
        def double(value: int) -> int:
            return value * 2

        out.emit(double(1), message_id=1)
        return None

    def ack(self, message_id: object) -> Any:
        return "done"


class GivesNext(Spout[int]):
    async def next_tuple(self, out: SpoutCollector[int]) -> Any:
        return [1]


@pytest.mark.parametrize(
    ("logic", "source", "finds"),
    [
        (Gives, numbers, ["execute of 'a' returns a value"]),
        (sink, GivesNext, ["next_tuple of 'numbers' returns a value"]),
        (Pass, GivesToOthers, []),
    ],
)
def test_a_result_that_nothing_takes(logic: object, source: object, finds: list[str]) -> None:
    """Of methods that emit by their collector, where their code shows a value."""
    told = findings(chain(logic, sink, source=source).describe())
    assert [each.problem.partition(",")[0] for each in told if each.rule == "dropped result"] == finds


# Times and limits.


@pytest.mark.parametrize(("timeout", "fault"), [(4.9, True), (5.0, True), (5.1, False), (None, False)])
def test_a_batch_slower_than_the_timeout(timeout: float | None, *, fault: bool) -> None:
    """A batch may wait for less than the message timeout; as long is too long."""
    expected = [("slow batch", "a")] if fault else []
    assert found(chain(Batch, message_timeout=timeout)) == expected


@pytest.mark.parametrize("options", [{"message_timeout": 4}, {"replay_delay": 2, "drain_timeout": 1}])
def test_without_ackers_nothing_times_out_or_is_replayed(options: dict[str, float]) -> None:
    """Only the missing ackers are a finding."""
    assert found(chain(Batch, source=[1], ackers=0, **options)) == [("no ackers", "numbers")]
    assert found(chain(Batch, source=[1], **options)) != []


@pytest.mark.parametrize(
    ("pending", "parallelism", "ackers", "fault"),
    [
        (20, 1, 1, False),
        (21, 1, 1, True),
        (20, 2, 1, True),
        (20, 2, 2, False),
        (None, 1, 1, False),
        (21, 1, 0, False),
    ],
)
def test_more_messages_than_the_ackers_take(
    pending: int | None, parallelism: int, ackers: int, *, fault: bool
) -> None:
    """Spouts that may have more pending than twice the high water of all ackers are a finding."""
    topology = Topology("water", acker_high_water=10, ackers=ackers)
    spout = topology.spout("numbers", Untracked, parallelism=parallelism, max_spout_pending=pending)
    topology.bolt("a", sink, spout.shuffle())
    assert found(topology) == ([("high water", None)] if fault else [])


@pytest.mark.parametrize(
    ("source", "drain", "attempts", "fault"),
    [(numbers, 1, 5, True), (numbers, 2, 5, False), (numbers, None, 5, False), (numbers, 1, 1, False),
     (Tracked, 1, 5, False)],
)  # fmt: skip
def test_a_replay_that_comes_too_late_for_a_drain(
    source: object, drain: float | None, attempts: int, *, fault: bool
) -> None:
    """A reliable source whose first replay waits longer than a drain lasts is a finding."""
    topology = chain(sink, source=source, replay_delay=2, drain_timeout=drain, max_attempts=attempts)
    assert found(topology) == ([("late replay", "numbers")] if fault else [])


@pytest.mark.parametrize(
    ("source", "options", "fault"),
    [
        (numbers, {}, True),
        ([1], {}, True),
        (numbers, {"max_restarts": 5}, False),
        (numbers, {"max_attempts": 3}, False),
        (numbers, {"max_attempts": 4}, True),
        (numbers, {"restart_window": 0.6}, False),
        (numbers, {"replay_delay": 10.0, "replay_delay_max": 10.0, "restart_window": 30.0}, False),
        (numbers, {"replay_delay": 10.0, "replay_delay_max": 10.0, "restart_window": 31.0}, True),
        (Tracked, {}, False),
        (None, {}, False),
    ],
)
def test_a_message_that_always_raises(source: Any, options: dict[str, Any], *, fault: bool) -> None:
    """A bolt that is restarted less often than a message of the engine's is attempted is a finding, wherever the spout
    is."""
    topology = Topology("poison", **options)
    doubled = topology.bolt("double", double, topology.spout("numbers", source, outputs=int).shuffle())
    topology.bolt("last", sink, doubled.shuffle(), on_error="restart")
    assert found(topology) == ([("poison message", "last")] if fault else [])


@pytest.mark.simulated_time
@pytest.mark.parametrize(("restarts", "crashes"), [(4, True), (5, False)])
async def test_what_is_said_of_messages_that_always_raise_is_so(restarts: int, *, crashes: bool) -> None:
    """With as many restarts as attempts, the message becomes a dead letter."""

    def poison(value: int) -> None:
        raise ValueError(value)

    topology = Topology("poison")
    ones = topology.spout("ones", [1])
    topology.bolt("poison", poison, ones.shuffle(), on_error="restart", max_restarts=restarts)
    assert found(topology) == ([("poison message", "poison")] if crashes else [])
    if crashes:
        with pytest.raises(TopologyCrashed):
            await run_to_end(topology)
    else:
        assert (await run_to_end(topology)).statistics().components["ones"].dead_letters == 1


# The command.

FINE = """
    topology = Topology("fine")
    words = topology.bolt("split", str.split, topology.spout("lines", ["a b"]).shuffle(), parallelism=2)
    topology.bolt("print", print, words.shuffle())
    """

UNHEARD = """
    topology = Topology("unheard")
    topology.bolt("print", print, topology.spout("lines", ["a b"]).shuffle())
    topology.spout("nobody listens to this one", [1])
    """


def test_one_line_says_that_it_is_fine(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a finding there is nothing but the headline, on standard output."""
    write(FINE)
    assert main(["check", "flow.py"]) == 0
    assert capsys.readouterr() == ("fine: 1 spout, 2 bolts, 4 tasks, 1 acker; no warnings\n", "")


def test_warnings_fail_only_when_strict(capsys: pytest.CaptureFixture[str]) -> None:
    """A warning is told of on standard output; the exit code is 0, and 1 with ``--strict``."""
    write(UNHEARD)
    assert main(["check", "flow.py"]) == 0
    output = capsys.readouterr()
    assert output.out.startswith("unheard: 2 spouts, 1 bolt, 3 tasks, 1 acker; 1 warning\n\nunheard spout: ")
    assert "\n  -> subscribe a bolt to it, or leave it out\n" in output.out
    assert output.err == ""
    assert main(["check", "flow.py", "--strict"]) == 1
    write(FINE)
    assert main(["check", "flow.py", "--strict"]) == 0


def test_settings_count(capsys: pytest.CaptureFixture[str]) -> None:
    """What is checked is what would run: with ``--set``, and names of Storm's that do nothing are told of."""
    write(FINE)
    assert main(["check", "flow.py", "--strict", "--set", "ackers=0", "--set", "topology.debug=true"]) == 1
    out = capsys.readouterr().out
    assert ", 0 ackers; 2 warnings\n" in out
    assert "ignored: --set: topology.debug has no effect: " in out
    assert "no ackers: ackers=0: the messages of spout 'lines' " in out


@pytest.mark.parametrize(
    ("text", "arguments", "error"),
    [
        ("topology = Topology('empty')", [], "does not have any spout"),
        (FINE, ["--set", "ackers=-1"], "--set: ackers=-1: expected an integer >= 0"),
        (FINE, ["--set", "replay_delay=40"], "replay_delay=40.0 is above replay_delay_max=30.0"),
    ],
)
def test_an_invalid_topology_is_2(
    text: str, arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What could not run is an error, not a warning."""
    write(text)
    assert main(["check", "flow.py", *arguments]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert error in output.err


def test_no_component_is_made() -> None:
    """Neither constructors nor factories nor generators of the user's run, nor is an iterable begun."""
    write(
        """
        from stormlet import BasicBolt, Spout
        from pathlib import Path
        def touch(name):
            Path(name).touch()
        class Source(Spout[int]):
            def __init__(self): touch("spout")
            def next_tuple(self, out): out.emit(1, message_id=1)
        class Logic(BasicBolt[int, None]):
            def __init__(self): touch("bolt")
            def execute(self, tup, out): pass
        def generator():
            touch("generator")
            yield 1
        class Endless:
            def __iter__(self):
                touch("iterable")
                return iter([1])
        def factory():
            touch("factory")
            return Logic()
        topology = Topology("untouched")
        streams = [topology.spout(str(n), each) for n, each in enumerate([Source, generator, Endless()])]
        topology.bolt("logic", Logic, *(each.shuffle() for each in streams))
        topology.bolt("factory", factory, streams[0].shuffle())
        """
    )
    for command in ("check", "describe", "graph"):
        assert main([command, "flow.py"]) == 0
    assert sorted(each.name for each in Path().iterdir() if each.suffix != ".py" and each.is_file()) == []


def test_findings_fit_the_terminal() -> None:
    """Blocks are wrapped and indented, and an id cannot write anything but text to the terminal."""
    finding = Finding("cycle", "a", "the bolt 'evil\x1b[2J\nname' " + "goes round " * 20, "break it " * 20)
    lines = report("name: 1 spout", [finding], 60).splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[:2] == ["name: 1 spout; 1 warning", ""]
    assert lines[2].startswith("cycle: the bolt 'evil\\x1b[2J\\nname' goes")
    assert all(line.startswith("  ") for line in lines[3:])
    assert sum(line.startswith("  -> ") for line in lines) == 1
