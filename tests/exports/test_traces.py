"""Traces of some messages by OpenTelemetry, as its SDK exports them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextvars import copy_context
from functools import partial
from math import nan
from typing import Any

import pytest
from opentelemetry import trace

from stormlet import BatchBolt, Collector, InvalidConfiguration, Reject, TaskContext, Topology, Tuple
from stormlet.core.traceparent import TRACEPARENT
from stormlet.exports.opentelemetry import Traces
from stormlet.testing.brokers import Broker
from tests.cast import AckLater, Batches, Feeder, Forward, Hold, Join, given, same
from tests.connect.runs import Consumer, quick
from tests.exports.exported import Exported, attributes, five_in_two_bolts, is_below, seconds
from tests.helpers import run_to_end

pytestmark = pytest.mark.simulated_time

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def exported() -> Exported:
    return Exported()


def chain(*bolts: Any, source: Any = None, **options: Any) -> Topology:
    """A spout, and one bolt after the other: ``first``, ``second``."""
    topology = Topology("traced", **options)
    stream: Any = topology.spout("spout", range(1) if source is None else source)
    for name, bolt in zip(("first", "second", "third"), bolts, strict=False):
        stream = topology.bolt(name, bolt, stream.shuffle())
    return topology


async def test_executions_are_spans_below_each_other(exported: Exported) -> None:
    """The message is a span, and each execution one below that of its input's; all end in one trace."""
    await run_to_end(chain(same, same), traces=exported.traces())
    first, second = exported.of("first"), exported.of("second")
    assert is_below(first, exported.of("spout"))
    assert is_below(second, first)
    assert attributes(second) == {
        "topology": "traced", "component": "second", "task": 4, "stream": "first/default", "attempt": 1,
        "queue_wait": 0.0,
    }  # fmt: skip


class Gathered(BatchBolt[int, None]):
    """Does nothing with three at a time."""

    size = 3

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        """Nothing."""


class GatheredLater(BatchBolt[int, None]):
    """The same, a second later."""

    size = 3

    async def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> None:
        """Wait."""
        await asyncio.sleep(1)


@pytest.mark.parametrize("bolt", [Gathered, GatheredLater])
async def test_a_batch_of_traced_messages_is_acked(exported: Exported, bolt: Any) -> None:
    """All of its members, at once."""
    running = await run_to_end(chain(bolt, source=range(7), max_attempts=1), traces=exported.traces())
    counts = running.statistics().components["spout"]
    assert (counts.acked, counts.dead_letters) == (7, 0)


async def later(value: int) -> int:
    await asyncio.sleep(2)
    return value


async def test_times_are_those_of_the_executions(exported: Exported) -> None:
    """An execution of two seconds is a span of two, and one that waits for another has its wait in the queue."""
    await run_to_end(chain(later, later, source=range(2)), traces=exported.traces())
    assert [seconds(span) for span in exported.all_of("first")] == [2.0, 2.0]
    waits = [attributes(span)["queue_wait"] for span in exported.all_of("first")]
    assert waits == pytest.approx([0.0, 2.0], abs=1e-6)
    assert [seconds(span) for span in exported.all_of("spout")] == pytest.approx([4.0, 6.0], abs=1e-6)


@pytest.mark.parametrize("options", [{"concurrency": 3}, {}])
async def test_every_kind_of_bolt_is_traced(exported: Exported, options: dict[str, Any]) -> None:
    """A bolt whose calls run beside each other has spans as others do, and so has what comes of them."""
    await five_in_two_bolts(exported, options)


async def test_joined_inputs_are_links(exported: Exported) -> None:
    """What comes of two messages is below one of the executions, and linked to the other."""
    topology = Topology("joined")
    stream = topology.bolt("join", partial(Join, 2), topology.spout("spout", range(2)).shuffle())
    topology.bolt("after", same, stream.shuffle())
    await run_to_end(topology, traces=exported.traces())
    first, second = exported.all_of("join")
    after = exported.of("after")
    assert is_below(after, first)
    assert [link.context.span_id for link in after.links] == [second.context and second.context.span_id]


async def test_a_failure_is_a_status_and_an_event(exported: Exported) -> None:
    """An input that raises has the exception on its span; the message has failed with the kind and the reason."""

    def refuse(value: int) -> None:
        raise Reject("too small")

    await run_to_end(chain(refuse), traces=exported.traces())
    first, spout = exported.of("first"), exported.of("spout")
    assert (first.status.status_code, spout.status.status_code) == (trace.StatusCode.ERROR,) * 2
    assert "too small" in (spout.status.description or "")
    assert [event.name for event in first.events] == ["exception"]
    assert [(event.name, dict(event.attributes or {})) for event in spout.events] == [
        ("failed", {"stormlet.failure": "FAILED"})
    ]


async def test_an_exception_that_cannot_be_printed_is_an_event(exported: Exported) -> None:
    """It fails its message as any other does, and the span has its type."""

    class Sealed(Exception):
        def __str__(self) -> str:
            raise TypeError

        __repr__ = __str__

    def refuse(value: int) -> None:
        raise Sealed

    running = await run_to_end(chain(refuse, max_attempts=1), traces=exported.traces())
    (event,) = exported.of("first").events
    assert (event.attributes or {})["exception.type"].endswith("Sealed")
    assert running.statistics().components["spout"].dead_letters == 1


async def test_replays_are_one_trace(exported: Exported) -> None:
    """Each attempt is a span with its number, and all of them are in the trace of the first."""
    seen: list[int] = []

    def twice(value: int) -> None:
        seen.append(value)
        if len(seen) < 3:
            raise LookupError

    await run_to_end(chain(twice, max_attempts=5), traces=exported.traces())
    first, second, third = exported.all_of("spout")
    assert [attributes(each)["attempt"] for each in (first, second, third)] == [1, 2, 3]
    assert is_below(second, first)
    assert is_below(third, first)
    assert [attributes(each)["attempt"] for each in exported.all_of("first")] == [1, 2, 3]
    assert third.status.status_code is trace.StatusCode.UNSET


async def test_the_host_s_span_is_continued(exported: Exported) -> None:
    """A message that the host emits in a span is below that, whatever the share is."""
    tracer = exported.provider.get_tracer("host")
    topology = Topology("host")
    stream = topology.spout("spout")
    topology.bolt("first", same, stream.shuffle())
    async with topology.run(traces=exported.traces(0)) as running:
        await (await running.emit(stream, 0))
        with tracer.start_as_current_span("request"):
            await (await running.emit(stream, 1))
    assert is_below(exported.of("spout"), exported.of("request"))


async def test_a_span_that_is_not_sampled_is_continued_by_none(exported: Exported) -> None:
    """A message with a ``traceparent`` that is not sampled is not traced, even where all are."""
    feeder = Feeder()
    topology = chain(same, source=given(feeder))
    async with topology.run(traces=exported.traces()):
        assert feeder.out is not None
        for number, flag in enumerate(("00", "01")):
            context = copy_context()
            context.run(TRACEPARENT.set, f"00-{TRACE}-{PARENT}-{flag}")
            context.run(partial(feeder.out.emit, number, message_id=number))
        await asyncio.sleep(1)
    spout = exported.of("spout")
    assert spout.parent is not None
    assert (f"{spout.parent.trace_id:x}", f"{spout.parent.span_id:x}") == (TRACE[1:], PARENT)
    assert attributes(spout)["message_id"] == "1"


async def test_a_header_of_a_delivery_is_continued(exported: Exported) -> None:
    """A message of a broker with a header ``traceparent`` is below the span that it names, and others are not."""
    consumer = Consumer(Broker(), quick)
    header = f"00-{TRACE}-{PARENT}-01"
    for headers in (
        {},
        {"traceparent": header},
        {"traceparent": "nonsense"},
        {"traceparent": header.encode()},
    ):
        consumer.broker.queue("orders").publish(b"1", None, **headers)
    async with consumer.topology.run(traces=exported.traces(0)):
        await asyncio.sleep(10)
    parents = [span.parent and f"{span.parent.span_id:x}" for span in exported.all_of("orders")]
    assert parents == [PARENT, PARENT]


async def test_spans_of_user_code_are_below_its_execution(exported: Exported) -> None:
    """What a bolt's own code traces, such as a call of another service, is a child of the execution."""
    tracer = exported.provider.get_tracer("user")

    async def call(value: int) -> None:
        with tracer.start_as_current_span("call"):
            await asyncio.sleep(1)

    await run_to_end(chain(call), traces=exported.traces())
    assert is_below(exported.of("call"), exported.of("first"))


async def test_a_share_is_traced(exported: Exported) -> None:
    """Of 4,000 messages about a tenth is traced, each with all of its executions; another run traces the same."""
    for _ in range(2):
        await run_to_end(chain(same, same, source=range(4000)), traces=exported.traces(0.1), seed=7)
    count = len(exported.all_of("spout"))
    assert 2 * 320 < count < 2 * 480
    assert count % 2 == 0
    assert len(exported.all_of("second")) == count


async def test_nothing_is_traced_without_a_share(exported: Exported) -> None:
    """With a share of 0 nothing is exported, and every message takes the plain way."""
    lineages = list[object]()

    class Looks(Forward):
        def execute(self, tup: Tuple[Any], out: Any) -> None:
            lineages.append(tup.lineage)
            super().execute(tup, out)

    await run_to_end(chain(Looks, source=range(10)), traces=exported.traces(0))
    assert len(set(map(id, lineages))) == 1
    assert not exported.spans


async def test_spans_of_held_inputs_end_with_their_calls(exported: Exported) -> None:
    """A bolt that holds its input for three seconds has executed it in no time; the message takes three."""
    await run_to_end(chain(partial(AckLater, 3.0)), traces=exported.traces())
    assert seconds(exported.of("first")) == 0
    assert seconds(exported.of("spout")) == pytest.approx(3.0)


async def test_batches_are_traced(exported: Exported) -> None:
    """Members of a batch have a span each, and no message is lost by tracing."""
    running = await run_to_end(chain(partial(Batches, 2), source=range(4)), traces=exported.traces())
    assert len(exported.all_of("first")) == 4
    assert running.statistics().components["spout"].acked == 4


async def test_what_is_left_over_is_exported(exported: Exported) -> None:
    """A message without an outcome ends with the topology, as an error."""
    async with chain(Hold).run(traces=exported.traces(), drain_timeout=1) as running:
        await asyncio.sleep(5)
        running.stop()
        running.stop()
    assert exported.of("spout").status.status_code is trace.StatusCode.ERROR


async def test_spans_are_exported_when_the_message_is_over(exported: Exported) -> None:
    """While a message is open none of its spans is exported, and then all are."""
    async with chain(same, partial(AckLater, 3.0)).run(traces=exported.traces()):
        await asyncio.sleep(2)
        assert not exported.spans
        await asyncio.sleep(2)
        assert {span.name for span in exported.spans} == {"spout", "first", "second"}


async def test_without_a_provider_nothing_happens() -> None:
    """Where the host has no SDK, the API does nothing, and messages go on as they are."""
    running = await run_to_end(chain(same, source=range(10)), traces=Traces(1.0))
    assert running.statistics().components["spout"].acked == 10


@pytest.mark.parametrize("share", [-0.1, 1.5, nan, True, "x"])
async def test_a_wrong_share_is_refused(share: Any) -> None:
    """A share is from 0 to 1."""
    with pytest.raises(InvalidConfiguration, match="from 0 to 1"):
        Traces(share)


@pytest.mark.parametrize("share", [5e-324, 1e-20, 0.5, 0.999999])
async def test_any_share_is_counted(exported: Exported, share: float) -> None:
    """A share that is next to none, or next to all, is a count of messages as others are."""
    await run_to_end(chain(same, source=range(10)), traces=exported.traces(share), seed=1)
    count = len(exported.all_of("spout"))
    assert (count > 8) is (share > 0.9)
    assert (count == 0) is (share < 0.1)


async def test_tasks_of_a_spout_trace_each_their_share(exported: Exported) -> None:
    """Four tasks count down each for itself, and about a tenth of the messages of all is traced."""

    def thousand(context: TaskContext) -> Iterator[int]:
        yield from range(1000 * context.task_index, 1000 * (context.task_index + 1))

    topology = Topology("tasks")
    topology.bolt("first", same, topology.spout("spout", thousand, parallelism=4).shuffle())
    await run_to_end(topology, traces=exported.traces(0.1), seed=3)
    tasks = [attributes(span)["task"] for span in exported.all_of("spout")]
    assert len(set(tasks)) == 4
    assert 320 < len(tasks) < 480
