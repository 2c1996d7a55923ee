"""The rules by which a bottleneck is found, on figures made by hand; ``tests/runtime/run/test_bottlenecks.py`` judges
them on topologies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from msgspec import structs

from stormlet.report.bottleneck import Bottleneck, BottleneckKind, bottleneck
from stormlet.report.connections import Connection
from stormlet.report.figures import Figures, figures_between
from stormlet.report.limits import ComponentFacts
from stormlet.report.statistics import (
    EpochStatistics,
    LoopStatistics,
    Progress,
    Statistics,
    TaskStatistics,
    of_component,
)
from tests.report.numbers import edge, spent, statistics, times


@dataclass
class Case:
    """A topology for a hundred seconds: what its tasks have spent, its queues and its plan."""

    spouts: Mapping[str, TaskStatistics | Sequence[TaskStatistics]]
    bolts: Mapping[str, TaskStatistics | Sequence[TaskStatistics]] = field(default_factory=dict)
    facts: Mapping[str, ComponentFacts] = field(default_factory=dict)
    full: Sequence[str] = ()
    """Bolts with full queues."""
    grouping: str = "shuffle"
    held: tuple[float, float] | None = None
    """The parts of the time in which the loop was held at all, and by the topology."""
    probes: int = 100
    acker: TaskStatistics = field(default_factory=TaskStatistics)
    epoch: EpochStatistics | None = None

    def figures(self) -> Figures:
        """Of the hundred seconds."""
        made = statistics(__acker=self.acker, **self.spouts, **self.bolts)
        edges = [edge("lines", bolt, self.grouping, fullest=float(bolt in self.full)) for bolt in self.bolts]
        held = self.held
        loop = (
            None
            if held is None
            else LoopStatistics(100, round(held[0] * 100), times(*[0.0] * self.probes), held[1] * 100, 100.0)
        )
        return figures_between(
            Statistics({}), Statistics(made.components, self.epoch, edges=edges, loop=loop), 100.0
        )

    def plan(self) -> Mapping[str, ComponentFacts]:
        """The facts, where they are not said to be others."""
        spouts = {id: ComponentFacts(is_spout=True, max_pending=1000) for id in self.spouts}
        return {**spouts, **{id: ComponentFacts() for id in self.bolts}, **self.facts}


LIMITED = {"lines": spent(limited=0.9, pending=1000)}
OTHER = spent(awaiting=0.1)


def found(case: Case) -> Bottleneck | None:
    return bottleneck(case.figures(), case.plan())


def named(case: Case) -> tuple[BottleneckKind, str]:
    one = found(case)
    assert one is not None
    return one.kind, one.component


def sentence(case: Case) -> str:
    return str(found(case))


AWAITS = Case(
    LIMITED, {"geocode": spent(awaiting=0.97, pending=9, executed=50), "other": OTHER}, full=["geocode"]
)
COMPUTES = Case(LIMITED, {"parse": spent(executing=0.91), "other": spent(executing=0.05)})
LOOP = Case(LIMITED, {id: spent(executing=0.24) for id in ("a", "b", "c")} | {"d": spent(executing=0.26)})
THREADS = Case(
    LIMITED,
    {"resize": spent(executing=0.98, pending=9, executed=50)},
    {"resize": ComponentFacts(has_threads=True, concurrency=4)},
    full=["resize"],
)
SKEW = Case(
    LIMITED,
    {
        "count": [
            spent(awaiting=0.1, executed=10),
            spent(awaiting=0.98, executed=70, pending=9),
            spent(executed=20),
        ]
    },
    grouping="fields",
)
OTHERS = Case({"lines": spent()}, {"split": spent(executing=0.1)}, held=(0.7, 0.1))
SOURCE = Case({"lines": spent(executing=0.95)}, {"split": OTHER})
PENDING = Case(LIMITED, {"split": OTHER})
ACKERS = Case(LIMITED, {"split": spent(executing=0.2)}, acker=spent(executing=0.7))


@pytest.mark.parametrize(
    ("case", "kind", "component", "words"),
    [
        (
            AWAITS,
            BottleneckKind.AWAITS,
            "geocode",
            "'geocode' awaits 97 % of its time and the queue before it is full: raise its concurrency (now 1)",
        ),
        (
            COMPUTES,
            BottleneckKind.COMPUTES,
            "parse",
            (
                "'parse' computes 91 % of the time: make its code cheaper, give it executor=\"thread\" if it leaves "
                "the GIL, or run on Spark; more tasks do not help in one process"
            ),
        ),
        (
            LOOP,
            BottleneckKind.LOOP,
            "d",
            (
                "all components together hold the loop 98 % of the time, 'd' most of all with 26 %: make tuples "
                'fewer and larger, give it executor="thread" if it leaves the GIL, or run on Spark; more tasks do not '
                "help in one process"
            ),
        ),
        (
            THREADS,
            BottleneckKind.THREADS,
            "resize",
            (
                "all 4 threads of 'resize' are busy 98 % of the time: raise its concurrency (now 4), unless it "
                "computes in Python, where threads take turns"
            ),
        ),
        (
            SKEW,
            BottleneckKind.SKEW,
            "count",
            (
                "one of 3 tasks, count[1], has 70 % of the tuples and is busy 98 % of its time: choose a grouping that "
                "spreads them better than fields, such as partial_key, or a finer key"
            ),
        ),
        (
            OTHERS,
            BottleneckKind.OTHERS,
            "",
            "other code holds the loop 60 % of the time: move it to a thread or a process, or let it await more often",
        ),
        (
            SOURCE,
            BottleneckKind.SOURCE,
            "lines",
            (
                "the source gives no more: 'lines' computes 95 % of the time; make its code cheaper, or await what it "
                "waits for"
            ),
        ),
        (
            PENDING,
            BottleneckKind.PENDING,
            "lines",
            (
                "'lines' waits 90 % of its time, as 1,000 messages are pending, and nothing is busy: raise its "
                "max_spout_pending (now 1000)"
            ),
        ),
        (
            ACKERS,
            BottleneckKind.ACKERS,
            "__acker",
            (
                "the ackers hold the loop 70 % of the time: make tuples fewer and larger, or anchor less of them; more "
                "ackers do not help in one process"
            ),
        ),
    ],
    ids=lambda value: value.value if isinstance(value, BottleneckKind) else "",
)
def test_each_limit_has_its_sentence(case: Case, kind: BottleneckKind, component: str, words: str) -> None:
    """It names the component, and what to turn."""
    assert found(case) == Bottleneck(component=component, kind=kind, sentence=words)


@pytest.mark.parametrize(
    "case",
    [
        Case({"lines": spent(awaiting=0.99)}, {"split": OTHER}),
        Case({"lines": spent(pending=999, limited=0.1)}, {"split": spent(awaiting=0.95)}),
        Case({"lines": spent(executing=0.3)}, {"split": spent(executing=0.55)}),
        Case({"lines": spent()}, {"split": OTHER}, held=(0.45, 0.05)),
        Case({"lines": spent(limited=0.4, blocked=0.05)}, {"split": spent(awaiting=0.7, pending=9)}),
        Case({"lines": spent(limited=0.4)}, {"split": spent(awaiting=0.95, pending=1)}),
        Case({}, {}),
        Case({"lines": TaskStatistics()}, {"split": TaskStatistics()}),
    ],
    ids=["slow source", "keeps pace", "two thirds", "host", "bursts", "nothing waits", "nothing", "start"],
)
def test_what_keeps_pace_is_well(case: Case) -> None:
    """Nothing is said where no source is held up, however busy a bolt is."""
    assert found(case) is None


def test_the_busiest_of_the_crowded_bolts_is_it() -> None:
    """One that waits for room itself is not, nor one before which no queue is full."""
    bolts = {
        "first": spent(awaiting=0.3, blocked=0.7),
        "second": spent(awaiting=0.9),
        "third": spent(awaiting=0.95),
    }
    assert named(Case(LIMITED, bolts, full=["first", "second"])) == (BottleneckKind.AWAITS, "second")


def test_full_queues_alone_tell_of_a_bolt() -> None:
    """A host that emits waits itself, and its spout is never limited."""
    assert named(replace(AWAITS, spouts={"lines": spent()}))[1] == "geocode"
    assert found(replace(AWAITS, spouts={"lines": spent()}, full=[])) is None


def test_so_do_messages_that_are_pending() -> None:
    """As many as may be, at the end of the window, of all tasks together."""
    case = replace(AWAITS, spouts={"lines": [spent(pending=500), spent(pending=500)]}, full=[])
    assert named(
        replace(case, facts={"lines": ComponentFacts(is_spout=True, max_pending=500, parallelism=2)})
    )
    assert (
        found(replace(case, facts={"lines": ComponentFacts(is_spout=True, max_pending=501, parallelism=2)}))
        is None
    )
    assert found(replace(case, facts={"lines": ComponentFacts(is_spout=True)})) is None


def test_a_run_that_has_ended_is_judged_by_its_times() -> None:
    """Nothing is pending any more; more may have been than there are places, as the source was held up."""
    ended = {"lines": spent(limited=0.9)}
    case = Case(ended, {"geocode": spent(awaiting=0.97)})
    assert named(case) == (BottleneckKind.AWAITS, "geocode")
    facts = {"lines": ComponentFacts(is_spout=True, max_pending=8), "geocode": ComponentFacts(concurrency=8)}
    assert named(replace(case, facts=facts)) == (BottleneckKind.PENDING, "lines")
    assert found(replace(case, spouts={"lines": spent()})) is None


def test_a_run_that_has_ended_tells_no_number_of_what_is_pending() -> None:
    """Nor that none waits for its epoch."""
    case = replace(PENDING, spouts={"lines": spent(limited=0.9)}, epoch=EpochStatistics(3, 1.0, 0, {}))
    assert named(case) == (BottleneckKind.PENDING, "lines")
    assert "its max_spout_pending was reached, and nothing was busy: raise" in sentence(case)


def test_places_are_raised_where_there_are_several() -> None:
    """Concurrency alone for one task, either for several; the number of full queues is told."""
    two = replace(AWAITS, facts={"geocode": ComponentFacts(parallelism=2, concurrency=8)})
    assert sentence(two).endswith("raise its concurrency (now 8) or parallelism (now 2)")
    assert "of its time: raise" in sentence(replace(AWAITS, full=[]))


@pytest.mark.parametrize(("number", "words"), [(2, "2 queues before it are"), (3, "3 queues before it are")])
def test_the_full_queues_before_it_are_counted(number: int, words: str) -> None:
    """Whatever there is beside them."""
    figures = AWAITS.figures()
    edges = [each for each in figures.edges if each.consumer == "geocode"] * number
    one = bottleneck(structs.replace(figures, edges=edges), AWAITS.plan())
    assert f"97 % of its time and {words} full: raise" in str(one)


def test_one_of_several_queues_is_not_the_queue() -> None:
    """Another one is half full."""
    figures = AWAITS.figures()
    (edge,) = (each for each in figures.edges if each.consumer == "geocode")
    edges = [structs.replace(edge, fullest=fullest) for fullest in (1.0, 0.5)]
    one = bottleneck(structs.replace(figures, edges=edges), AWAITS.plan())
    assert "and a queue before it is full: raise" in str(one)


@pytest.mark.parametrize(
    ("fullest", "waited", "words"),
    [
        (1.0, 0.5, "the queue before it is full"),
        (0.9, 0.0, "the queue before it is full"),
        (0.62, 0.5, "the queue before it is 62 % full"),
        (0.5, 0.0, "the queue before it is 50 % full"),
        (0.1, 0.3, "its inputs wait for room 30 % of the time"),
    ],
)
def test_a_queue_is_called_as_full_as_it_is(fullest: float, waited: float, words: str) -> None:
    """Where it is emptier now, the part of the time is told in which somebody has waited for room."""
    figures = AWAITS.figures()
    edges = [
        structs.replace(each, fullest=fullest, waited=waited)
        for each in figures.edges
        if each.consumer == "geocode"
    ]
    one = bottleneck(structs.replace(figures, edges=edges), AWAITS.plan())
    assert f"97 % of its time and {words}: raise" in str(one)


def test_a_bolt_that_computes_a_part_of_a_loop_that_has_time_left() -> None:
    """Its own code is what takes long, whatever its places are."""
    case = Case(LIMITED, {"parse": spent(executing=0.5, awaiting=0.35)}, held=(0.6, 0.5), full=["parse"])
    assert named(case) == (BottleneckKind.COMPUTES, "parse")
    assert "computes 50 % of its time and the queue" in sentence(case)


def test_more_places_do_not_help_where_nothing_waits() -> None:
    """All calls that there may be are under way; more messages must be pending first."""
    facts = {"geocode": ComponentFacts(concurrency=8)}
    bolts = {number: {"geocode": spent(awaiting=0.97, pending=number, executed=50)} for number in (8, 9)}
    kinds = [named(Case(LIMITED, bolts[number], facts))[0] for number in (8, 9)]
    assert kinds == [BottleneckKind.PENDING, BottleneckKind.AWAITS]


def test_a_single_thread_is_told_as_one() -> None:
    """No plural; threads do not fill the loop."""
    one = replace(THREADS, facts={"resize": ComponentFacts(has_threads=True)})
    assert sentence(one).startswith(
        "the thread of 'resize' is busy 98 % of the time: raise its concurrency (now 1)"
    )


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (
            replace(AWAITS, bolts={"geocode": spent(awaiting=0.97, pending=9)}),
            "'geocode' awaits 97 % of its time ",
        ),
        (
            replace(THREADS, bolts={"resize": spent(executing=0.98, pending=9)}),
            "all 4 threads of 'resize' are busy 98 ",
        ),
    ],
    ids=["awaits", "threads"],
)
def test_more_places_do_not_help_calls_that_do_not_come_back(case: Case, words: str) -> None:
    """They would be filled, too."""
    assert sentence(case).startswith(words)
    assert ", and none of its calls has come back in 100 s: give what they wait for a time limit" in sentence(
        case
    )


def test_threads_may_also_compute() -> None:
    """There, a limit of time alone would not help."""
    case = replace(THREADS, bolts={"resize": spent(executing=0.98, pending=9)})
    assert sentence(case).endswith("a time limit, or cut their work into smaller pieces")


def test_calls_of_another_task_have_come_back() -> None:
    """The sentence is about all of a bolt."""
    tasks = [spent(awaiting=0.98, pending=9), spent(awaiting=0.95, pending=9, executed=4000)]
    case = Case(LIMITED, {"geocode": tasks}, {"geocode": ComponentFacts(parallelism=2)}, full=["geocode"])
    assert "raise its concurrency (now 1) or parallelism (now 2)" in sentence(case)


def test_a_call_may_take_seconds() -> None:
    """In a short window, none may have come back."""
    case = replace(AWAITS, bolts={"geocode": spent(awaiting=0.97, pending=9)})
    for seconds, way_out in ((29.0, "raise its concurrency"), (31.0, "a time limit")):
        figures = structs.replace(case.figures(), seconds=seconds)
        assert way_out in str(bottleneck(figures, case.plan()))


def test_tuples_of_one_task_may_take_longer() -> None:
    """Where it has no more of them than the others."""
    bolts = {"count": [spent(awaiting=0.1, executed=50), spent(awaiting=0.98, executed=50, pending=9)]}
    assert named(Case(LIMITED, bolts)) == (BottleneckKind.SKEW, "count")
    assert "count[1], is busy 98 % of its time, and the others are not: its tuples take longer" in sentence(
        Case(LIMITED, bolts)
    )
    assert "take longer" in sentence(Case(LIMITED, {"count": [spent(awaiting=0.9, pending=9), spent()]}))


def test_even_work_is_no_skew() -> None:
    """All tasks are about as busy: more of them help."""
    assert (
        named(Case(LIMITED, {"count": [spent(awaiting=0.98, pending=9), spent(awaiting=0.9)]}))[0]
        is BottleneckKind.AWAITS
    )


def test_skew_on_a_full_loop_is_no_reason() -> None:
    """Keys that are spread better would compute as long on the same loop."""
    case = replace(SKEW, bolts={"count": [spent(executing=0.9, executed=90), spent(executed=10)]})
    assert named(case) == (BottleneckKind.COMPUTES, "count")


def test_few_probes_tell_nothing() -> None:
    """In the first seconds, chance and the start of the program would be told."""
    assert named(replace(OTHERS, probes=50))[0] is BottleneckKind.OTHERS
    assert found(replace(OTHERS, probes=49)) is None


def test_other_code_comes_first() -> None:
    """What it leaves of the loop makes everything else look slow."""
    assert named(replace(AWAITS, held=(0.6, 0.05)))[0] is BottleneckKind.OTHERS
    assert named(replace(AWAITS, held=(0.5, 0.05)))[0] is BottleneckKind.AWAITS
    assert (
        named(replace(COMPUTES, bolts={"parse": spent(executing=0.4)}, held=(0.85, 0.4)))[0]
        is BottleneckKind.OTHERS
    )


def test_a_source_that_has_more_is_told() -> None:
    """By its lag, if that is more than it has in hand and than what it gives in a while; or by what it reports."""

    def of(lag: int | None = None, progress: Progress | None = None, awaiting: float = 0.95) -> object:
        task = spent(awaiting=awaiting, emitted=1000, pending=10)
        connections = {} if lag is None else {1: Connection(address="x", lag={"0": lag})}
        component = of_component({1: task}, {} if progress is None else {1: progress}, connections)
        figures = figures_between(Statistics({}), Statistics({"lines": component}), 100.0)
        return bottleneck(figures, {"lines": ComponentFacts(is_spout=True)})

    assert of() is None
    assert of(lag=110) is None
    assert str(of(lag=5000)).startswith(
        "the source gives no more: 'lines' awaits 95 % of its time with 5,000 messages at its broker; have it read"
    )
    assert "95 % of its time; have it read" in str(of(progress=Progress(5, 9)))
    assert of(progress=Progress(9, 9)) is None
    assert of(lag=5000, awaiting=0.5) is None


def test_littles_law_is_told() -> None:
    """So many pending messages, that take so long, are so many a second."""
    task = structs.replace(spent(limited=0.9, pending=10, acked=500), complete_times=times(2.0))
    assert sentence(Case({"lines": task})).endswith("; a message takes 2 s, so that they make 5 a second")


def test_failures_fill_the_pending_messages() -> None:
    """More of them would not help; what fails is named."""
    spouts = {"lines": spent(limited=0.9, pending=1000, failed=90, acked=10)}
    case = Case(spouts, {"split": spent(failed=1), "store": spent(failed=89)})
    assert named(case) == (BottleneckKind.FAILURES, "store")
    assert sentence(case).startswith(
        "most attempts of 'lines' fail, most of them in 'store', and it waits 90 %"
    )
    assert named(Case(spouts)) == (BottleneckKind.FAILURES, "lines")


def test_a_slow_taker_of_dead_letters_is_told() -> None:
    """Most of what is pending waits for it, and it alone; most attempts may fail or not."""
    spouts = {"lines": spent(limited=0.9, pending=100, giving_up=60, failed=10, acked=90)}
    case = Case(spouts, {"split": spent(failed=1), "store": spent(failed=9)})
    assert named(case) == (BottleneckKind.DEAD_LETTERS, "lines")
    assert sentence(case) == (
        "'lines' waits 90 % of its time, as 60 of 100 pending messages wait for dead_letters= to return: have it "
        "return sooner, such as by writing many letters at once, or mend what fails in 'store'"
    )
    all_fail = {"lines": spent(limited=0.9, pending=100, giving_up=60, failed=90, acked=10)}
    assert named(Case(all_fail)) == (BottleneckKind.DEAD_LETTERS, "lines")


def test_a_taker_of_dead_letters_that_holds_the_loop_is_told() -> None:
    """Where most of the time of its spout goes there; else it is the source that computes."""
    lines = structs.replace(spent(executing=0.9, failed=9), letter_seconds=45.0)
    case = Case({"lines": lines}, {"split": spent(failed=1), "store": spent(failed=8)})
    assert named(case) == (BottleneckKind.DEAD_LETTERS, "lines")
    assert sentence(case) == (
        "dead_letters= holds the loop 45 % of the time, with what 'lines' gives up: have it return sooner, such as by "
        "handing its letters to a thread, or mend what fails in 'store'"
    )
    less = replace(case, spouts={"lines": structs.replace(lines, letter_seconds=44.0)})
    assert named(less) == (BottleneckKind.SOURCE, "lines")


def test_letters_that_are_the_fewer_are_not_the_reason() -> None:
    """Nor are any where the source is not held up."""
    few = {"lines": spent(limited=0.9, pending=100, giving_up=49, failed=90, acked=10)}
    assert named(Case(few)) == (BottleneckKind.FAILURES, "lines")
    assert found(Case({"lines": spent(limited=0.1, pending=100, giving_up=60)})) is None


def test_messages_that_wait_for_their_epoch_are_told() -> None:
    """Nothing is busy, and most of what is pending is done."""
    case = replace(PENDING, epoch=EpochStatistics(3, 1.0, 900, {}))
    assert named(case) == (BottleneckKind.EPOCHS, "lines")
    assert "900 messages wait for their epoch" in sentence(case)
    assert named(replace(PENDING, epoch=EpochStatistics(3, 1.0, 100, {})))[0] is BottleneckKind.PENDING


def test_a_committer_that_is_busy_is_told() -> None:
    """It cannot have more tasks or calls; nothing waits in its queue, but messages do in the next epoch."""
    case = replace(
        AWAITS,
        spouts={"lines": spent()},
        full=[],
        facts={"geocode": ComponentFacts(by_epochs=True)},
        epoch=EpochStatistics(3, 1.0, 900, {}),
    )
    assert named(case) == (BottleneckKind.EPOCHS, "geocode")
    assert "writes epochs 97 % of its time" in sentence(case)
    assert found(replace(case, epoch=EpochStatistics(3, 1.0, 0, {}))) is None
    assert found(replace(case, epoch=None)) is None
    assert found(replace(case, bolts={"geocode": spent(awaiting=0.85)})) is None


def test_ackers_that_are_full_are_told() -> None:
    """Attempts fail as their acker holds as many trees as it may."""
    case = Case({"lines": spent(limited=0.9, failed=100, overflowed=90, acked=20)}, {"split": OTHER})
    assert named(case) == (BottleneckKind.ACKERS, "lines")
    assert "90 % of the failed attempts of 'lines' find the ackers full" in sentence(case)


def test_one_of_several_spouts_may_be_limited() -> None:
    """Or one task of a spout; the one that waits most is named."""
    spouts = {"a": spent(limited=0.6), "b": [spent(limited=0.9), spent()], "c": spent()}
    assert named(Case(spouts)) == (BottleneckKind.PENDING, "b")


def test_tasks_that_are_not_known_are_not_needed() -> None:
    """The means of the component stand for them."""
    figures = COMPUTES.figures()
    bare = {id: structs.replace(each, tasks={}) for id, each in figures.components.items()}
    one = bottleneck(structs.replace(figures, components=bare), COMPUTES.plan())
    assert one == found(COMPUTES)
