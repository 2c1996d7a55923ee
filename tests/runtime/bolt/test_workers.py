"""Workers alone, without a task: what they are given is enough, and what happened is what they return."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from typing import Any, cast

import pytest

from stormlet import BasicBolt, BatchBolt, Bolt, Collector, Tuple
from stormlet.core.schema import schema_of
from stormlet.core.tuples import ACKED, HELD, OPEN, PLAIN, Source, plain_tuple
from stormlet.model.plan import TaskPlan
from stormlet.runtime.bolt.batches import BatchCancelled, BatchRunner, BatchWorker
from stormlet.runtime.bolt.functions import BasicWorker, BoltWorker, FunctionWorker
from stormlet.runtime.bolt.intake import PendingCalls
from stormlet.runtime.bolt.threads import ThreadWorker
from stormlet.runtime.bolt.worker import Raised, Wiring, Worker
from stormlet.runtime.slices import Activity, TimedSlices
from stormlet.runtime.wire.collector import Account, BoltCollector
from stormlet.runtime.wire.outbox import Outbox

pytestmark = pytest.mark.asyncio

PLAN = TaskPlan("work", 1, 0, 1)
SOURCE = Source("numbers", "default", 0, schema_of(None))


def wiring() -> Wiring:
    """All that a worker gets, made by hand."""
    loop = asyncio.get_running_loop()
    account, outlets = Account(), dict[str, Any]()
    outbox = Outbox(loop, loop.call_soon, [], loop.time, pytest.fail)
    return Wiring(
        PLAN, loop, loop.time, copy_context(), TimedSlices(loop, 1.0, loop.time), outbox, outlets,
        BoltCollector(PLAN, loop, outbox, outlets, account), account, PendingCalls(lambda: None), Activity(),
        lambda method, error, values: None, True, lambda error: None,
    )  # fmt: skip


def inputs(*values: int) -> list[Tuple[Any]]:
    """Untracked inputs."""
    return [plain_tuple(value, SOURCE, PLAIN, 0, 0) for value in values]


def check(value: int) -> None:
    """Raise on 2."""
    if value == 2:
        raise LookupError(value)


class Basic(BasicBolt[int, None]):
    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        check(tup.value)


class Plain(Bolt[int, None]):
    def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        check(tup.value)
        out.ack(tup)


class Async(Bolt[int, None]):
    async def execute(self, tup: Tuple[int], out: Collector[None]) -> None:
        check(tup.value)
        out.ack(tup)


class Pairs(BatchBolt[int, None]):
    """Refuses the batch of 2, after it was told to wait, if it was."""

    size = 2
    within = 60.0
    asleep: asyncio.Future[None] | None = None

    def key(self, value: int) -> int:
        return value

    def execute_batch(self, tups: Sequence[Tuple[int]], out: Collector[None]) -> Awaitable[None] | None:
        check(tups[0].value)
        return self.asleep


async def finished(worker: Worker, tups: list[Tuple[Any]]) -> list[Raised]:
    """Work to the end as a task does that lives on, whatever is raised."""
    cursor, all_raised = iter(tups), list[Raised]()
    while True:
        happened = worker.work(cursor)
        raised = happened if isinstance(happened, Raised) or happened is None else await happened
        if raised is not None:
            all_raised.append(raised)
        elif happened is None:
            return all_raised


@pytest.mark.parametrize(
    "make",
    [
        lambda given: FunctionWorker(given, check),
        lambda given: BasicWorker(given, cast("Any", Basic())),
        lambda given: BoltWorker(given, Plain()),
        lambda given: BoltWorker(given, Async()),
        lambda given: ThreadWorker(FunctionWorker(given, check), 1),
    ],
    ids=["function", "basic", "bolt", "async", "thread"],
)
async def test_a_worker_returns_what_user_code_raised_and_goes_on_when_it_is_called_again(
    make: Callable[[Wiring], Worker],
) -> None:
    """The input that failed is left as it was: what becomes of it is for its task to say."""
    tups = inputs(1, 2, 3)
    worker = make(wiring())
    (raised,) = await finished(worker, tups)
    await (worker.cleanup() or asyncio.sleep(0))
    assert (raised.inputs, repr(raised.error)) == ((tups[1],), "LookupError(2)")
    assert [tup.state for tup in tups] == [ACKED, OPEN, ACKED]


async def test_inputs_that_a_thread_has_executed_wait_for_their_task_to_act() -> None:
    """A task that dies of the first one must fail the others, whose outputs were not emitted then."""
    tups, worker = inputs(1, 2, 3, 4), ThreadWorker(FunctionWorker(wiring(), check), 1)
    raised = await cast("Awaitable[Raised | None]", worker.work(tups))
    assert raised is not None
    await worker.cleanup()
    assert [tup.state for tup in tups] == [ACKED, OPEN, OPEN, OPEN]
    assert worker.calling == 2


async def test_a_batch_that_fails_is_raised_with_all_its_members() -> None:
    """It is no batch any more then, and the others are as they were."""
    given = wiring()
    worker = BatchWorker(given, BatchRunner(Pairs(), given))
    tups = inputs(1, 2, 2)
    (raised,) = await finished(worker, tups)
    assert (raised.inputs, repr(raised.error)) == (tups[1:], "LookupError(2)")
    assert [tup.state for tup in tups] == [HELD, HELD, OPEN]
    assert worker.why_held(tups[0]).startswith("in a batch that has 1 of 2")


@pytest.mark.parametrize("method", ["due", "flush", "finish"])
async def test_a_runner_that_is_called_again_goes_on_with_the_batches_that_are_left(method: str) -> None:
    """Each failure is raised by itself, so that the task can act in between."""
    given, bolt = wiring(), Pairs()
    bolt.size, bolt.within = 3, 1e-9
    worker = BatchWorker(given, BatchRunner(bolt, given))
    tups = inputs(1, 2, 3)
    assert await finished(worker, tups) == []
    call = cast("Callable[[Any], Awaitable[None]]", worker.method(method))
    with pytest.raises(Raised) as raised:
        await call(given.out)
    assert raised.value.inputs == [tups[1]]
    await call(given.out)
    assert [tup.state for tup in tups] == [ACKED, HELD, ACKED]


async def test_a_batch_whose_call_is_cancelled_names_its_members() -> None:
    """A call knows only the input that has completed the batch."""
    given, bolt = wiring(), Pairs()
    bolt.asleep = asyncio.get_running_loop().create_future()
    worker, tups = BatchWorker(given, BatchRunner(bolt, given)), inputs(1, 1)
    assert await finished(worker, tups[:1]) == []
    call = asyncio.ensure_future(worker.execute(tups[1], given.out))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(BatchCancelled) as cancelled:
        await call
    assert cancelled.value.members == tups


async def test_a_batch_that_fails_while_it_is_awaited_is_raised_with_all_its_members() -> None:
    """The pause gives what happened, as the call itself would."""
    given, bolt = wiring(), Pairs()
    bolt.asleep = asyncio.get_running_loop().create_future()
    bolt.asleep.set_exception(LookupError("away"))
    tups = inputs(1, 1)
    (raised,) = await finished(BatchWorker(given, BatchRunner(bolt, given)), tups)
    assert (raised.inputs, repr(raised.error)) == (tups, "LookupError('away')")
    assert tups[0].state == HELD
