"""Delays of flights by carrier and by route, as ``examples/flights.py`` has them: in process, on Spark, with ``merge``,
by hand in ``mapInArrow``, and in Spark SQL.

All read the same Parquet files of generated flights. What is measured is the CPU time of the whole process tree, the
JVM and its Python workers included, and the wall time on two local cores.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import pyarrow as pa

from benchmarks.memory import peak_mib
from benchmarks.processes import children_peak_mib, cpu_seconds
from stormlet import BasicBolt, Collector, Stream, Topology, Tuple
from stormlet.bench.workload import Figures, expect
from stormlet.spark import DataFrameSpout, run_on_spark, spark_session
from stormlet.spark.session import active_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CORES: Final = 2
WARM: Final = 336_776
"""Flights of the two rounds before: a JVM is slow at first."""
COLUMNS: Final = ("carrier", "origin", "destination", "delay")
SUMS: Final = "table string, group string, flights long, arrived long, total long, worst long"
Table = list[tuple[object, ...]]


class Flight(msgspec.Struct, frozen=True):
    """One flight that was scheduled."""

    carrier: str
    origin: str
    destination: str
    delay: int | None


class Delays(msgspec.Struct, frozen=True):
    """The delays of a group of flights, in minutes."""

    group: str
    flights: int = 0
    arrived: int = 0
    total: int = 0
    worst: int = 0

    def plus(self, delay: int | None) -> Delays:
        """The same with one more flight."""
        if delay is None:
            return Delays(self.group, self.flights + 1, self.arrived, self.total, self.worst)
        worst = max(self.worst, delay)
        return Delays(self.group, self.flights + 1, self.arrived + 1, self.total + delay, worst)


def carrier(flight: Flight) -> str:
    """What one table groups by."""
    return flight.carrier


def route(flight: Flight) -> str:
    """What the other groups by."""
    return f"{flight.origin}-{flight.destination}"


def both(one: Delays, other: Delays) -> Delays:
    """Those of both together."""
    return Delays(
        one.group,
        one.flights + other.flights,
        one.arrived + other.arrived,
        one.total + other.total,
        max(one.worst, other.worst),
    )


def single(group_of: Callable[[Flight], str], flight: Flight) -> Delays:
    """Those of one flight."""
    delay = flight.delay
    return (
        Delays(group_of(flight), 1) if delay is None else Delays(group_of(flight), 1, 1, delay, max(delay, 0))
    )


class Tally(BasicBolt[Flight, Delays]):
    """Adds up flights, one by one."""

    def __init__(self, group_of: Callable[[Flight], str]) -> None:
        self.group_of = group_of
        self.groups: dict[str, Delays] = {}

    def execute(self, tup: Tuple[Flight], out: Collector[Delays]) -> None:
        """Add one flight."""
        group = self.group_of(tup.value)
        self.groups[group] = self.groups.get(group, Delays(group)).plus(tup.value.delay)

    def finish(self, out: Collector[Delays]) -> None:
        """Hand on the results."""
        for delays in self.groups.values():
            out.emit(delays)


class Totals(BasicBolt[Delays, Delays]):
    """Adds up delays, of which several may have become one before."""

    def __init__(self) -> None:
        self.groups: dict[str, Delays] = {}

    merge = staticmethod(both)

    def execute(self, tup: Tuple[Delays], out: Collector[Delays]) -> None:
        """Add some."""
        value = tup.value
        have = self.groups.get(value.group)
        self.groups[value.group] = value if have is None else both(have, value)

    def finish(self, out: Collector[Delays]) -> None:
        """Hand on the results."""
        for delays in self.groups.values():
            out.emit(delays)


Made = tuple[Topology, Stream[Delays], Stream[Delays]]


def plain(source: Any) -> Made:
    """Every flight goes to both tables."""
    topology = Topology("flights")
    flights: Stream[Flight] = topology.spout("flights", source, outputs=Flight)
    carriers = topology.bolt("carriers", partial(Tally, carrier), flights.fields("carrier"), parallelism=2)
    by_route = flights.fields("origin", "destination")
    return topology, carriers, topology.bolt("routes", partial(Tally, route), by_route, parallelism=4)


def merging(source: Any) -> Made:
    """A function makes delays of each flight, and those of one group are merged before they are sent."""
    topology = Topology("flights")
    flights: Stream[Flight] = topology.spout("flights", source, outputs=Flight)
    tables: list[Stream[Delays]] = []
    for name, group_of, tasks in (("carriers", carrier, 2), ("routes", route, 4)):
        each = topology.bolt(f"of {name}", partial(single, group_of), flights.shuffle(), outputs=Delays)
        tables.append(topology.bolt(name, Totals, each.fields("group"), parallelism=tasks))
    return topology, tables[0], tables[1]


def partial_sums(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The combiner by hand: the delays of one partition of flights."""
    tables: dict[str, dict[str, Delays]] = {"carriers": {}, "routes": {}}
    for flight in records(batches):
        for name, group_of in (("carriers", carrier), ("routes", route)):
            delays, groups = single(group_of, flight), tables[name]
            have = groups.get(delays.group)
            groups[delays.group] = delays if have is None else both(have, delays)
    yield sums(tables)


def final_sums(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What comes after the exchange."""
    tables: dict[str, dict[str, Delays]] = {"carriers": {}, "routes": {}}
    for batch in batches:
        for name, *fields in zip(*[column.to_pylist() for column in batch.columns], strict=True):
            delays, groups = Delays(*fields), tables[cast("str", name)]
            have = groups.get(delays.group)
            groups[delays.group] = delays if have is None else both(have, delays)
    yield sums(tables)


def records(batches: Iterable[pa.RecordBatch]) -> Iterator[Flight]:
    """The flights of record batches."""
    for batch in batches:
        yield from map(Flight, *[batch.column(name).to_pylist() for name in COLUMNS])


def sums(tables: Mapping[str, Mapping[str, Delays]]) -> pa.RecordBatch:
    """One record batch of both tables."""
    rows = [
        (name, *msgspec.structs.astuple(each)) for name, groups in tables.items() for each in groups.values()
    ]
    columns = list(zip(*rows, strict=True)) or [()] * 6
    kinds = [pa.string(), pa.string(), *[pa.int64()] * 4]
    names = [each.split()[0] for each in SUMS.split(", ")]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=names)


class Files:
    """Generated flights in Parquet files."""

    def __init__(self, session: SparkSession, folder: str, count: int, hot: float = 0.0) -> None:
        """A part ``hot`` of them is of one carrier, and on one route."""
        chance = [f"(hash(id, {salt}) & 2147483647)" for salt in range(5)]
        hit = f"{chance[4]} % 1000 < {round(hot * 1000)}"
        rows = session.range(0, count, 1, 2 * CORES).selectExpr(
            f"if({hit}, 'carrier 0', concat('carrier ', {chance[0]} % 16)) AS carrier",
            f"if({hit}, 'EWR', element_at(array('EWR', 'JFK', 'LGA'), 1 + cast({chance[1]} % 3 AS int))) AS origin",
            f"if({hit}, 'X0', concat('X', {chance[2]} % 75)) AS destination",
            f"if({chance[3]} % 36 = 0, NULL, {chance[3]} % 400 - 60) AS delay",
        )
        self.path = f"{tempfile.mkdtemp(dir=folder)}/flights"
        rows.write.parquet(self.path)
        self.frame: DataFrame = session.read.parquet(self.path)
        self._session = session

    def in_process(self, make: Callable[[Any], Made]) -> Table:
        """The tables by one process."""
        found: Table = []

        def flights() -> Iterator[Flight]:
            dataset: Any = import_module("pyarrow.dataset").dataset(self.path, format="parquet")
            yield from records(dataset.to_batches(columns=list(COLUMNS), batch_size=10_000))

        topology, carriers, routes = make(flights)
        for each in (carriers, routes):
            topology.bolt(f"rows of {each.component}", _taking(found), each.global_())

        async def run() -> None:
            async with topology.run() as running:
                await running.finished()

        asyncio.run(run())
        return sorted(found)

    def on_spark(self, make: Callable[[Any], Made]) -> Table:
        """The tables by the same topology on Spark."""
        topology, carriers, routes = make(DataFrameSpout(self.frame, as_=Flight))
        result = run_on_spark(topology, self._session, streams=[carriers, routes])
        return _table(row for each in (carriers, routes) for row in result.stream(each).collect())

    def by_hand(self) -> Table:
        """The tables by ``mapInArrow``."""
        parts = self.frame.mapInArrow(partial_sums, SUMS).repartition(6, "table", "group")
        return _table(row[1:] for row in parts.mapInArrow(final_sums, SUMS).collect())

    def by_sql(self) -> Table:
        """The tables by Spark SQL."""
        groups = ("carrier", "concat(origin, '-', destination)")
        sums = "count(*), count(delay), coalesce(sum(delay), 0), greatest(coalesce(max(delay), 0), 0)"
        self.frame.createOrReplaceTempView("flights")
        queries = (f"SELECT {group}, {sums} FROM flights GROUP BY {group}" for group in groups)
        return _table(row for query in queries for row in self._session.sql(query).collect())


def spark_engine(size: int) -> Figures:
    """CPU and wall seconds of each way, and what follows from them. Every way must give the same tables."""
    with _flights() as make:
        warm, files = make(min(size, WARM)), make(size)
        ways: Mapping[str, Callable[[Files], Table]] = {
            "in_process": lambda each: each.in_process(plain),
            "on_spark": lambda each: each.on_spark(plain),
            "merged": lambda each: each.on_spark(merging),
            "by_hand": Files.by_hand,
            "sql": Files.by_sql,
        }
        for way in (*ways.values(), *ways.values()):
            way(warm)
        figures, tables = dict[str, float](), dict[str, Table]()
        for name, way in ways.items():
            cpu, began = cpu_seconds(), time.perf_counter()
            tables[name] = way(files)
            figures[f"{name}_wall_s"] = time.perf_counter() - began
            figures[f"{name}_cpu_s"] = cpu_seconds() - cpu
    for name, table in tables.items():
        expect(table, tables["sql"], f"tables of {name}")
    figures["on_spark_over_in_process"] = figures["on_spark_cpu_s"] / figures["in_process_cpu_s"]
    figures["merged_over_by_hand"] = figures["merged_cpu_s"] / figures["by_hand_cpu_s"]
    figures["cores"] = cores_to_be_faster(
        figures["on_spark_cpu_s"], figures["on_spark_wall_s"], figures["in_process_wall_s"]
    )
    return figures


def cores_to_be_faster(cpu: float, wall: float, other_wall: float) -> float:
    """The number of cores from which a run is faster than another one, which has one core. It took so long on
    :data:`CORES`: a part s that runs alone, and a part p that all cores share, of which cpu = s + p and
    wall = s + p / CORES. On n cores it takes s + p / n. 0 if no number of cores suffices."""
    shared = min(cpu, max(0.0, (cpu - wall) / (1 - 1 / CORES)))
    alone = cpu - shared
    return max(1.0, shared / (other_wall - alone)) if other_wall > alone else 0.0


def spark_engine_flat(size: int) -> Figures:
    """Peak memory of the driver's Python and of the workers, in MiB, after a run with a tenth, and after one with
    all."""
    with _flights() as make:
        figures = dict[str, float]()
        for name, count in (("_early", size // 10), ("", size)):
            make(count).on_spark(plain)
            figures[f"driver_peak_mib{name}"] = peak_mib()
            figures[f"worker_peak_mib{name}"] = children_peak_mib("python")
    return figures


def spark_engine_skew(size: int) -> Figures:
    """Wall seconds where nine of ten flights have one key, beside flights that are spread, with and without ``merge``;
    and the peak memory of the task that has the key."""
    with _flights() as make:
        warm, figures = make(min(size, WARM)), dict[str, float]()
        for ways in (merging, plain):
            warm.on_spark(ways)
        for name, hot in (("even", 0.0), ("skewed", 0.9)):
            files = make(size, hot)
            for prefix, ways in (("merged_", merging), ("", plain)):
                began = time.perf_counter()
                files.on_spark(ways)
                figures[f"{prefix}{name}_wall_s"] = time.perf_counter() - began
        figures["worker_peak_mib"] = children_peak_mib("python")
        figures["merged_skewed_over_even"] = figures["merged_skewed_wall_s"] / figures["merged_even_wall_s"]
    return figures


@contextmanager
def _flights() -> Generator[Callable[..., Files]]:
    """A session, and a function that makes files in it."""
    active = active_session()
    session = active or spark_session(f"local[{CORES}]", **{"spark.driver.memory": "2g"})
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield partial(Files, session, folder)
    finally:
        if active is None:
            session.stop()


def _table(rows: Iterable[Any]) -> Table:
    return sorted(tuple(row) for row in rows)


def _taking(found: Table) -> Callable[[Delays], None]:
    def take(delays: Delays) -> None:
        found.append(msgspec.structs.astuple(delays))

    return take
