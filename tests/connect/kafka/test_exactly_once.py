"""From Kafka to Kafka with ``state=``: each message counts once, and each row is there once (law X8, X9)."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import msgspec
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from stormlet import StartFailed, Topology
from stormlet.connect.address import read_address
from stormlet.connect.kafka import Topics
from stormlet.connect.kafka.producer import Outgoing
from stormlet.connect.kafka.settings import Failures, Security, client_settings
from stormlet.connect.kafka.transactions import Transactions
from stormlet.core.state.outgoing import Epoch
from stormlet.errors import BrokerGivenUp, ConnectionLost, ConnectorError, InvalidTopology
from stormlet.testing.brokers import twin
from tests.brokers.processes import Broker
from tests.connect.kafka.cluster import PARTITIONS, Cluster
from tests.connect.kafka.counting import KEYS, Counted, counting
from tests.connect.kafka.servers import ProxiedKafka

PROGRAM = Path(__file__).with_name("counting.py")


def rows(cluster: Cluster, topic: str) -> list[bytes]:
    """All that was committed, partition by partition."""
    settings = {
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
    }
    consumer = Consumer({"bootstrap.servers": cluster.servers, "group.id": "looks", **settings})
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    found, ended = list[bytes](), 0
    while ended < PARTITIONS:
        for message in consumer.consume(1000, 0.1):
            found += [] if message.error() else [message.value() or b""]
            ended += message.error() is not None
    consumer.close()
    return found


def check(bodies: list[bytes], count: int) -> None:
    """Each number once, and each count of a key once, in order."""
    counted = [msgspec.json.decode(each, type=Counted) for each in bodies]
    assert Counter(each.number for each in counted) == dict.fromkeys(range(count), 1)
    by_key = defaultdict[int, list[int]](list)
    for each in counted:
        by_key[each.number % KEYS].append(each.count)
    assert by_key == {key: list(range(1, count // KEYS + 1)) for key in range(KEYS)}


@pytest.mark.timeout(600)
def test_a_process_that_is_killed_writes_each_row_once(real: Cluster, tmp_path: Path) -> None:
    """At random moments, in the middle of its work: each life leaves something to the next."""
    kills, count, done = int(os.environ.get("TESTS_KILLS", "5")), 0, list[int]()
    read, written = real.topic(), real.topic()
    for life in range(kills):
        real.fill(read, range(count, count + 5000), partitions=4)
        count += 5000
        process = start(real, read, written, tmp_path)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n", (tmp_path / "log").read_text()[-3000:]
        while life % 2 and len(rows(real, written)) == done[-1]:
            assert process.poll() is None, (tmp_path / "log").read_text()[-3000:]
        sleep(random.uniform(0.0, 1.0))
        process.kill()
        process.communicate()
        done.append(len(rows(real, written)))
        assert done[-1] < count, "it was killed when it had nothing more to do"
    print(f"{count} messages; rows after each kill: {done}")
    process = start(real, read, written, tmp_path)
    deadline = monotonic() + 240
    while len(rows(real, written)) < count:
        is_alive = process.poll() is None and monotonic() < deadline
        assert is_alive, (tmp_path / "log").read_text()[-3000:]
    assert process.stdout is not None
    assert (
        process.stdout.readline() == b"ready\n"
    )  # for SIGTERM: all rows may have been there before it began
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0, (tmp_path / "log").read_text()[-3000:]
    process.stdout.close()
    check(rows(real, written), count)


def start(cluster: Cluster, read: str, written: str, folder: Path) -> subprocess.Popen[bytes]:
    """Run the program."""
    with (folder / "log").open("ab") as log:
        state = str(folder / "counts.state")
        command = [sys.executable, str(PROGRAM), cluster.servers, read, written, state]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)


async def until(cluster: Cluster, topic: str, count: int) -> None:
    """Wait for so many rows."""
    async with asyncio.timeout(150):
        while len(await asyncio.to_thread(rows, cluster, topic)) < count:  # noqa: ASYNC110 - it is another program that is watched
            await asyncio.sleep(0.1)


@pytest.mark.asyncio
async def test_a_broker_that_is_killed_has_each_row_once(
    real: Cluster, kafka: Broker, tmp_path: Path
) -> None:
    """The run waits for it, and the next one goes on behind it."""
    read, written = real.topic(), real.topic()
    real.fill(read, range(8000), partitions=4)
    async with counting(real.servers, read, written, str(tmp_path / "state"), lost_after=1.0).run():
        await until(real, written, 100)
        await asyncio.to_thread(kafka.kill)
        await asyncio.sleep(3)
        await asyncio.to_thread(kafka.start)
        await until(real, written, 8000)
    real.fill(read, range(8000, 9000), partitions=4)
    async with counting(real.servers, read, written, str(tmp_path / "state")).run():
        await until(real, written, 9000)
    check(rows(real, written), 9000)


@pytest.mark.asyncio
async def test_what_was_committed_in_the_group_does_not_count(real: Cluster, tmp_path: Path) -> None:
    """A state that begins anew begins with the first message, whatever another run has told the group."""
    read, first, second = real.topic(), real.topic(), real.topic()
    real.fill(read, range(100), partitions=4)
    for written in (first, second):
        async with counting(real.servers, read, written, str(tmp_path / written)).run():
            await until(real, written, 100)
    check(rows(real, second), 100)
    assert sum(real.committed(read)) == 100  # for those who watch the lag


@pytest.mark.asyncio
async def test_a_source_whose_order_may_change_is_refused(tmp_path: Path) -> None:
    """Positions in the state mean that all before them is there."""
    refused: list[tuple[dict[str, Any], str]] = [
        ({"start": "latest"}, 'start="latest"'),
        ({"ordered_by": int}, "ordered_by="),
        ({"start": "latest", "ordered_by": int}, 'ordered_by= and start="latest"'),
    ]
    for options, given in refused:
        topology = counting("nowhere", "read", "written", str(tmp_path / "state"), **options)
        words = f"'numbers' cannot go on where the state ends; leave out {given}, or state=$"
        with pytest.raises(InvalidTopology, match=words):
            async with topology.run():
                pass


@pytest.mark.asyncio
async def test_a_twin_is_refused(tmp_path: Path) -> None:
    """It begins where the group is, and would bring again what is in the state."""
    topology = Topology("twin", state=str(tmp_path / "state"))
    topology.spout("numbers", Topics[int]("kafka://twin", ["numbers"], group="readers", as_=int))
    with twin("kafka://twin"), pytest.raises(StartFailed, match="leave out state="):
        async with topology.run():
            pass


@pytest.mark.asyncio
async def test_a_run_at_a_cluster_in_memory(mock: Cluster, tmp_path: Path) -> None:
    """That of librdkafka, which needs no Java: a topology reads on behind its state."""
    topic, seen = mock.topic(), list[int]()
    for first in (0, 100):
        mock.fill(topic, range(first, first + 100), partitions=4)
        topology = Topology("reading", state=str(tmp_path / "state"), epoch_seconds=0.05)
        numbers = topology.spout("numbers", Topics[int](mock.url, [topic], group="readers", as_=int))
        topology.bolt("see", seen.append, numbers.shuffle())
        async with topology.run(), asyncio.timeout(60):
            while len(seen) < first + 100:  # noqa: ASYNC110 - it is the run that is watched
                await asyncio.sleep(0.05)
    assert sorted(seen) == list(range(200))


OPENED = list[Transactions]()


@pytest.fixture(autouse=True)
def _closes() -> Iterator[None]:
    """What a test has opened is closed after it."""
    yield
    while OPENED:
        OPENED.pop().close()


def transactions(cluster: Cluster, topic: str, **client: object) -> Transactions:
    """Opened, under a name that all of the topic share."""
    address = read_address(cluster.url, where="test")
    options = {name.replace("_", "."): each for name, each in client.items()}
    settings = client_settings(address, Security(), options, "test")
    made = Transactions(settings, topic, f"writers of {topic}", Failures(address, ()), None)
    OPENED.append(made)
    made.open()
    return made


def test_an_epoch_that_comes_again_is_passed_over(real: Cluster) -> None:
    """By whoever has read the note."""
    topic = real.topic()
    for number in (1, 1, 2, 1, 2):
        some = transactions(real, topic)
        some.write(Epoch(number, "line"), [Outgoing(topic, b"%d" % number)])
        some.close()
    assert sorted(rows(real, topic)) == [b"1", b"2"]


def test_an_earlier_writer_is_fenced(real: Cluster) -> None:
    """It has hung, and another run has taken its place: nothing of it is there."""
    topic = real.topic()
    hung, next_one = transactions(real, topic), transactions(real, topic)
    with pytest.raises(BrokerGivenUp, match=f"another run writes under the name 'writers of {topic}'"):
        hung.write(Epoch(1, "line"), [Outgoing(topic, b"hung")])
    next_one.write(Epoch(1, "line"), [Outgoing(topic, b"next")])
    assert rows(real, topic) == [b"next"]
    assert transactions(real, topic).last == Epoch(1, "line")


SHORT = {"transaction_timeout_ms": 4000, "socket_timeout_ms": 3900, "message_timeout_ms": 3900}
"""So that a transaction without a pause ends in time on a machine with other work, too."""


@pytest.fixture
def quick(proxied: ProxiedKafka) -> Iterator[Cluster]:
    """A cluster that ends old transactions at once."""
    with closing(Cluster(proxied.servers)) as cluster:
        yield cluster


def stopped(some: Transactions, topic: str, meanwhile: Callable[[], object] = int) -> Iterator[Outgoing]:
    """A row, in whose transaction the process is stopped for so long that the broker ends it."""
    yield Outgoing(topic, b"2")
    some._producer.flush(30)
    sleep(7)
    meanwhile()


def test_a_transaction_that_takes_too_long_is_written_again(quick: Cluster) -> None:
    """The broker has ended it, and nobody else has written: that is no reason to give up for good."""
    topic = quick.topic()
    some = transactions(quick, topic, **SHORT)
    some.write(Epoch(1, "line", ancestors=[("old", 1)]), [Outgoing(topic, b"1")])
    with pytest.raises(ConnectionLost, match=r"took more than 4 s \(transaction.timeout.ms\)"):
        some.write(Epoch(2, "line"), stopped(some, topic))
    again = transactions(quick, topic, **SHORT)
    again.write(Epoch(2, "line"), [Outgoing(topic, b"2")])
    assert sorted(rows(quick, topic)) == [b"1", b"2"]


def test_a_stopped_writer_whose_place_is_taken_gives_up(quick: Cluster) -> None:
    """The other one has written: a restart would take the name back from it."""
    topic = quick.topic()
    some = transactions(quick, topic, **SHORT)

    def take() -> None:
        transactions(quick, topic, **SHORT).write(Epoch(1, "other"), [Outgoing(topic, b"other")])

    with pytest.raises(BrokerGivenUp):
        some.write(Epoch(1, "line"), stopped(some, topic, take))
    assert rows(quick, topic) == [b"other"]


def test_a_name_that_is_taken_at_the_start_is_said(mock: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs begin at once."""

    class Fenced(Producer):
        def init_transactions(self, *_: object) -> None:
            raise KafkaException(KafkaError(KafkaError._FENCED))

    monkeypatch.setattr("confluent_kafka.Producer", Fenced)
    topic = mock.topic()
    with pytest.raises(BrokerGivenUp, match=f"another run writes under the name 'writers of {topic}'"):
        transactions(mock, topic)


def test_rows_of_another_line_are_refused(real: Cluster) -> None:
    """The state was begun anew, and the topic has the rows of the old one."""
    topic = real.topic()
    some = transactions(real, topic)
    some.write(Epoch(3, "old"), [Outgoing(topic, b"old")])
    with pytest.raises(ValueError, match="began anew"):
        some.write(Epoch(1, "new"), [Outgoing(topic, b"new")])


def test_a_row_that_is_too_large_leaves_nothing(real: Cluster) -> None:
    """The reason is that of the row, and others of its epoch are not there."""
    topic = real.topic()
    some = transactions(real, topic)
    with pytest.raises(ConnectorError, match="MSG_SIZE_TOO_LARGE"):
        some.write(Epoch(1, "line"), [Outgoing(topic, b"small"), Outgoing(topic, b"x" * 2_000_000)])
    assert rows(real, topic) == []
