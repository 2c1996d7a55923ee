"""Processes that share a topic, of which some are killed: nothing is lost, and little comes twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic, sleep

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.connect.kafka.cluster import Cluster
from tests.connect.kafka.worker import MOST_A_SECOND, PENDING, SETTLE_EVERY

WORKER = Path(__file__).with_name("worker.py")
SLOWEST_COMMIT = 1.0
"""Seconds that a broker may take for one while others need the machine."""
MOST_AGAIN = PENDING + MOST_A_SECOND * (SETTLE_EVERY + SLOWEST_COMMIT)
"""Messages that come again after a kill. Without commits all would: tens of thousands."""


class Workers:
    """Processes, and the lines that they have written."""

    def __init__(self, cluster: Cluster, topic: str, folder: Path, protocol: str) -> None:
        self._servers = cluster.servers
        self._group = f"readers of {topic}"
        self._command = [sys.executable, str(WORKER), cluster.servers, topic]
        self._folder = folder
        self._protocol = protocol
        self._started = 0
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        """Start one more."""
        self._started += 1
        process = self._process(self._folder / str(self._started))
        self.running.append(process)
        return process

    def _process(self, output: Path) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen([*self._command, str(output), self._protocol], stderr=log)

    def kill(self, process: subprocess.Popen[bytes], number: int = signal.SIGKILL) -> None:
        """End one, and wait for its end."""
        process.send_signal(number)
        process.wait(60)
        self.running.remove(process)

    def written(self, number: int) -> int:
        """Return the number of lines of one of them, from 1."""
        output = self._folder / str(number)
        return output.read_bytes().count(b"\n") if output.exists() else 0

    def lines(self) -> Counter[bytes]:
        """Return how often each message was written."""
        files = [each for each in self._folder.iterdir() if each.name != "log"]
        return Counter(line for file in files for line in file.read_bytes().splitlines())

    def wait_until_joined(self, count: int) -> None:
        """Wait until so many of them have partitions."""
        admin = AdminClient({"bootstrap.servers": self._servers})
        deadline = monotonic() + 120
        while self._owners(admin) < count:
            assert monotonic() < deadline, (self._folder / "log").read_text()[-3000:]
            sleep(0.2)

    def _owners(self, admin: AdminClient) -> int:
        described = admin.describe_consumer_groups([self._group], request_timeout=30)[self._group]
        try:
            members = described.result(30).members
        except KafkaException:  # there is no such group yet
            return 0
        return sum(bool(each.assignment and each.assignment.topic_partitions) for each in members)

    def wait_for(self, enough: Callable[[Counter[bytes]], bool], within: float = 240.0) -> None:
        """Wait until they have written enough."""
        deadline = monotonic() + within
        while not enough(self.lines()):
            assert monotonic() < deadline, (self._folder / "log").read_text()[-3000:]
            assert all(each.poll() is None for each in self.running), (self._folder / "log").read_text()[
                -3000:
            ]
            sleep(0.1)


def longer(than: int, lines: Counter[bytes]) -> bool:
    """True if there are more."""
    return len(lines) > than


@contextmanager
def workers(cluster: Cluster, topic: str, folder: Path, protocol: str) -> Iterator[Workers]:
    """Processes that are gone afterwards."""
    found = Workers(cluster, topic, folder, protocol)
    try:
        yield found
    finally:
        for each in list(found.running):
            found.kill(each)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_two_processes_one_killed_one_joining(real: Cluster, tmp_path: Path, protocol: str) -> None:
    """Of 150,000 messages none is lost, and no more come twice than were pending, with those not yet committed."""
    topic, count = real.topic(), 150_000
    with workers(real, topic, tmp_path, protocol) as some:
        first, _ = some.start(), some.start()
        some.wait_until_joined(2)  # else the first might have read all that there is before the second is up
        real.fill(topic, range(count), partitions=4)
        some.wait_for(lambda lines: len(lines) > count // 4 and min(some.written(1), some.written(2)) > 5000)
        some.kill(first)
        some.start()
        some.wait_for(lambda lines: len(lines) > count // 2)
        some.start()  # a rebalance with trees open
        began = monotonic()
        some.wait_for(lambda lines: len(lines) == count)
        rate = count / 2 / (monotonic() - began)
        for each in list(some.running):
            some.kill(each, signal.SIGTERM)
        lines = some.lines()
    twice = lines.total() - count
    print(f"{protocol}: {count} of {count}, {twice} twice, the second half at {rate:,.0f}/s")
    assert set(lines) == {str(number).encode() for number in range(count)}
    assert twice <= MOST_AGAIN
    assert sum(real.committed(topic)) == count


@pytest.mark.timeout(900)
def test_a_process_killed_again_and_again(real: Cluster, tmp_path: Path) -> None:
    """At whatever moment: another goes on where it has come to, and repeats little."""
    kills = int(os.environ.get("TESTS_KILLS", "2"))
    topic, count = real.topic(), 20_000 * (kills + 1)
    real.fill(topic, range(count), partitions=4)
    seen = 0
    with workers(real, topic, tmp_path, "classic") as some:
        for _ in range(kills):
            process = some.start()
            some.wait_for(partial(longer, seen))
            sleep(random.uniform(0, 1.0))
            some.kill(process)
            seen = len(some.lines())
        last = some.start()
        some.wait_for(lambda lines: len(lines) == count)
        some.kill(last, signal.SIGTERM)
        twice = some.lines().total() - count
    print(f"{kills} kills: {count} of {count}, {twice} twice")
    assert twice <= kills * MOST_AGAIN
    assert sum(real.committed(topic)) == count
