"""The price of being watched: the acked word count with a page open, traces and hooks; a page's part of a core; and for
how long a scrape holds the loop."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import msgspec

from benchmarks.holds import HoldMeter
from stormlet import TaskHook
from stormlet.bench.rounds import PauseMeter
from stormlet.bench.word_count import Count, check, rate, sentences, split
from stormlet.bench.workload import Figures, Workload, expect, run
from stormlet.runtime.run.handle import Running
from stormlet.topology import Topology

EVERY: Final = 1.0
"""Seconds between two questions of a page."""
TASKS: Final = 240
Ask = Callable[[str], Awaitable[bytes]]


# --- the word count, watched ----------------------------------------------------------------------------------------


class HearsAll(TaskHook):
    """Hears of everything, and does nothing."""

    def emit(self, info: object) -> None:
        """Return."""

    bolt_execute = bolt_ack = bolt_fail = spout_ack = spout_fail = emit


def traces(share: float) -> Any:
    """Traces by the SDK, which hands spans to a thread, as it does in a service; they are exported to nowhere."""
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    from stormlet.exports.opentelemetry import Traces

    class Drops(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Drops()))
    return Traces(share, tracer_provider=provider)


def counted(size: int, options: Callable[[], Mapping[str, Any]] = dict, *, page: bool = False) -> Figures:
    """The acked word count with these options of its run; with ``page``, one is open all the time."""
    return run(_counted(size, options(), page))


async def _counted(size: int, options: Mapping[str, Any], page: bool) -> Figures:
    topology = Topology("bench")
    counts: list[Counter[str]] = []
    words = topology.bolt("split", split, topology.spout("sentences", sentences(size)).shuffle())
    topology.bolt("count", partial(Count, counts), words.fields())
    if page:
        pass  # what it imports is no part of its price
    began, cpu_began = time.perf_counter(), time.process_time()
    async with topology.run(**options) as running:
        looking = asyncio.create_task(_look_on(asker(running))) if page else None
        await running.finished()
        cpu, seconds = time.process_time() - cpu_began, time.perf_counter() - began
        if looking is not None:
            expect(looking.done(), False, "the page has stopped")
            looking.cancel()
    check(sum(counts, Counter[str]()), size)
    return {**rate(size, seconds), "tuples_per_cpu_s": rate(size, cpu)["tuples_per_s"]}


async def _look_on(ask: Ask) -> None:
    since = ""
    while True:
        since, poll, _ = await _changes(ask, since)
        await asyncio.sleep(poll)


# --- the page, asked in this process --------------------------------------------------------------------------------


def asker(running: Running) -> Ask:
    """Return a function that gets an address of the page, as a server would call its application."""
    from stormlet import ui

    app = ui.app(running)

    async def ask(address: str) -> bytes:
        path, _, query = address.partition("?")
        body: list[bytes] = []
        scope = {
            "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "root_path": "",
            "query_string": query.encode(), "headers": [(b"host", b"127.0.0.1"), (b"accept-encoding", b"gzip")],
            "scheme": "http",
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80), "http_version": "1.1",
        }  # fmt: skip

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b""}

        async def send(message: Any) -> None:
            expect(message.get("status", 200), 200, address)
            body.append(message.get("body", b""))

        await app(scope, receive, send)
        return b"".join(body)

    return ask


async def _changes(ask: Ask, since: str) -> tuple[str, float, int]:
    """Return the new revision, the seconds after which a page asks again, and the bytes of the answer."""
    body = await ask(f"/api/v1/pages/bench/changes?view=overview&window=1m&since={since}")
    answer = msgspec.json.decode(plain(body))
    return answer["revision"], answer["pollSeconds"], len(body)


def plain(body: bytes) -> bytes:
    """Return what may have been compressed, as it was."""
    return gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body


@asynccontextmanager
async def tasks_at_work() -> AsyncGenerator[tuple[Running, Callable[[], Awaitable[None]]]]:
    """A topology of 240 tasks, and a function that has all of them do something."""
    topology = Topology("bench")
    source = topology.spout("source", outputs=int)
    stage = source
    for number in range(8):
        stage = topology.bolt(
            f"stage-{number}", _same, stage.shuffle(), parallelism=(TASKS - 2) // 8 + (number < 6)
        )
    async with topology.run() as running:

        async def work() -> None:
            for each in [await running.emit(source, number) for number in range(200)]:
                await each

        tasks = sum(len(each.tasks or ()) for each in running.statistics().components.values())
        expect(tasks, TASKS, "tasks")
        yield running, work


def page_240(size: int) -> Figures:
    """So many questions of a page, one a second, while all tasks are at work."""
    return run(_page_240(size))


async def _page_240(size: int) -> Figures:
    took = polls = received = 0.0
    async with tasks_at_work() as (running, work):
        ask = asker(running)
        since, _, _ = await _changes(ask, "")  # the first answer has all of it
        for _ in range(max(size, 1)):
            await asyncio.sleep(EVERY)
            await work()
            began = time.thread_time()
            since, poll, length = await _changes(ask, since)
            took, polls, received = took + time.thread_time() - began, polls + poll, received + length
    return {"core_percent": took / polls * 100, "kb_per_s": received / polls / 1000}


# --- a scrape -------------------------------------------------------------------------------------------------------


SCRAPES: Final = 3


def scrape_tasks(size: int) -> Figures:
    """So many scrapes of 240 tasks."""
    return run(_scrape_tasks(size))


async def _scrape_tasks(size: int) -> Figures:
    async with tasks_at_work() as (running, work):
        await work()
        return await _scraped(running, size, TASKS // 30)


def scrape_components(size: int) -> Figures:
    """Some scrapes of so many components."""
    return run(_scrape_components(size))


async def _scrape_components(size: int) -> Figures:
    topology = Topology("bench")
    source = topology.spout("source", outputs=int)
    for number in range(size):
        topology.bolt(f"bolt-{number}", _same, source.shuffle())
    async with topology.run() as running:
        await (await running.emit(source, 1))
        figures = await _scraped(running, SCRAPES, size)
        running.stop()
        running.stop()  # at once
        return figures


async def _scraped(running: Running, size: int, components: int) -> Figures:
    """Scrape, and see for how long nothing else had a turn, by the wall clock: what is done in threads counts, too."""
    ask, scrapes, bodies = asker(running), list[float](), list[bytes]()
    await ask("/metrics")  # what it imports is no part of its price
    with PauseMeter() as meter:
        holds = HoldMeter(meter, time.perf_counter)
        watching = asyncio.create_task(holds.watch())
        for _ in range(max(size, 1)):
            await asyncio.sleep(0)
            began = time.perf_counter()
            bodies.append(await ask("/metrics"))
            scrapes.append(time.perf_counter() - began)
        watching.cancel()
    for body in bodies:
        executed = plain(body).count(b"\nstormlet_executed_tuples_total{")
        expect(executed > components, True, "all components scraped")
    return {
        "scrape_ms": sorted(scrapes)[len(scrapes) // 2] * 1e3,
        "longest_hold_ms": holds.longest * 1e3,
        "longest_collecting_ms": holds.longest_collecting * 1e3,
    }


def _same(number: int) -> int:
    return number


def _with(name: str, make: Callable[[], Any]) -> Callable[[], Mapping[str, Any]]:
    return lambda: {name: make()}


SENTENCES: Final = 300_000


def _ways() -> Iterator[Workload]:
    for name, label, options, needs in (
        ("none", "not watched", dict, ""),
        ("again", "not watched, again: what differs is noise", dict, ""),
        ("hooks", "with a hook that hears of nothing", _with("hooks", lambda: [TaskHook]), ""),
        ("hooks-all", "with a hook that hears of everything", _with("hooks", lambda: [HearsAll]), ""),
        ("traces-0", "with traces of none", _with("traces", lambda: traces(0)), "opentelemetry"),
        ("traces-1000", "with traces of 1 in 1000", _with("traces", lambda: traces(0.001)), "opentelemetry"),
        ("traces-100", "with traces of 1 in 100", _with("traces", lambda: traces(0.01)), "opentelemetry"),
        ("recorded-100", "with 1 tree in 100 recorded", _with("record_edges", lambda: 0.01), ""),
        ("recorded", "with every tree recorded", _with("record_edges", lambda: 1), ""),
    ):
        yield Workload(
            f"watched-{name}", f"word count, {label}", partial(counted, options=options), SENTENCES, "watched", needs
        )  # fmt: skip


WORKLOADS = (
    *_ways(),
    Workload(
        "watched-page",
        "word count, with a page open",
        partial(counted, page=True),
        SENTENCES,
        "watched",
        "starlette",
    ),
    Workload("page-240", "a page with 240 tasks", page_240, 5, "watched", "starlette"),
    Workload("scrape-240", "a scrape of 240 tasks", scrape_tasks, 20, "watched", "prometheus_client"),
    Workload(
        "scrape-5000", "a scrape of 5,000 components", scrape_components, 5000, "watched", "prometheus_client"
    ),
)
"""The workloads of stormlet itself, and those beside which they stand."""
