"""Connections to brokers in the live view, in the lines of progress and in the closing summary."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from stormlet.cli import main
from stormlet.cli.running.live import closing_summary, live_view
from stormlet.cli.running.meter import Frame
from stormlet.cli.running.presenter import progress_line
from stormlet.report.connections import Connection, ConnectionState
from tests.cli.figures import FRAME
from tests.cli.flows import write

MQ = "amqp://shop:***@mq"
READY = Connection(address=MQ, state=ConnectionState.READY, since=9.0, lag={"orders": 12_340})
SILENT = Connection(address=MQ, state=ConnectionState.READY)
DRAINING = Connection(address=MQ, state=ConnectionState.DRAINING, oldest=2.0)
LOST = Connection(address=MQ, state=ConnectionState.RECONNECTING, since=12.3, attempt=4, error="refused")


def connected(*connections: Connection, **others: Connection) -> Frame:
    """A frame with the connections of ``orders``, and one of each other component."""
    return replace(FRAME, connections={"orders": connections, **{id: (each,) for id, each in others.items()}})


def lines(frame: Frame, width: int = 100) -> list[str]:
    return [line.plain for line in live_view(frame, (), "", width, 24)]


@pytest.mark.parametrize(
    ("connections", "line"),
    [
        ([READY], f"orders: ready at {MQ}, lag 12.3 k"),
        ([READY, READY], f"orders: ready at {MQ}, lag 12.3 k"),
        ([SILENT], f"orders: ready at {MQ}"),
        ([DRAINING], f"orders: draining at {MQ}, the oldest unsettled for 2.0 s"),
        ([LOST], f"orders: reconnecting for 12.3 s at {MQ}, attempt 4: refused"),
        ([READY, LOST], f"orders: reconnecting in 1 of 2 tasks for 12.3 s at {MQ}, attempt 4: refused"),
    ],
)
def test_the_view_has_state_and_lag(connections: list[Connection], line: str) -> None:
    """A queue that two tasks share is counted once."""
    assert line in lines(connected(*connections))


def test_a_broker_that_is_away_comes_first() -> None:
    """Of more components than there is room for."""
    shown = [line for line in lines(connected(READY, b=READY, c=READY, d=READY, away=LOST)) if MQ in line]
    assert [line.partition(":")[0] for line in shown] == ["away", "orders", "b", "c"]


def test_the_view_stays_within_the_terminal() -> None:
    """However narrow it is, and whatever the broker says."""
    shown = lines(connected(msgspec.structs.replace(LOST, error="no\n\x1b[2Jqueue")), 20)
    assert max(map(len, shown)) <= 20
    assert all(line.isprintable() for line in shown)


@pytest.mark.parametrize(("connection", "said"), [(READY, False), (DRAINING, False), (LOST, True)])
def test_lines_of_progress_have_what_is_away(connection: Connection, said: bool) -> None:
    """And nothing of the others, as they are many."""
    line = progress_line(connected(connection))
    assert line.endswith("tuples/s; orders is reconnecting" if said else "tuples/s")


def test_the_summary_has_the_counts_of_all_tasks() -> None:
    """Those that are 0 are left out."""
    first = Connection(address=MQ, received=12_340, settled=12_300, redelivered=40, reconnects=1)
    shown = [line.plain for line in closing_summary(connected(first, first), (), None)]
    assert f"orders: 24,680 received, 24,600 settled, 80 redelivered, 2 reconnects at {MQ}" in shown


def test_a_run_ends_with_its_connections(capsys: pytest.CaptureFixture[str]) -> None:
    """In the summary, by way of the statistics."""
    write(
        """
        from stormlet.testing.brokers import Broker, TwinSource

        broker = Broker("redis-7")
        for number in range(3):
            broker.queue("orders").publish(b"%d" % number)
        broker.queue("orders").finished = True
        topology = Topology("flow")
        orders = topology.spout("orders", TwinSource[bytes](broker, "orders", finite=True))
        topology.bolt("work", bytes.decode, orders.shuffle())
        """
    )
    assert main(["run", "flow.py"]) == 0
    assert "orders: 3 received, 3 settled at twin://broker" in capsys.readouterr().err.splitlines()
