"""The sessions of a source task, one after another (law R3, R8).

*A lost connection is no crash.* What was lost with one comes again by the broker, so it is withdrawn here: its trees go
on, but a failed one is not replayed, nor buried by two owners. Where receipts survive a connection, everything goes on
instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from stormlet.connect.address import Address
from stormlet.connect.driver.connecting import LOSSES, Connecting, leave
from stormlet.connect.driver.context import SourceTask, consumer_name, random_of
from stormlet.connect.driver.ending import end
from stormlet.connect.driver.holding import Holding
from stormlet.connect.driver.options import SourceSettings
from stormlet.connect.driver.partitions import Partitions
from stormlet.connect.driver.reading import Reading
from stormlet.connect.driver.settling import Settling
from stormlet.connect.driver.status import Status
from stormlet.connect.session import Session, SourceContext
from stormlet.core.settlement.credit import UNLIMITED, Credit
from stormlet.errors import BrokerGivenUp
from stormlet.model.components import TaskContext


class Serving:
    """The sessions of one source task."""

    def __init__(
        self,
        context: TaskContext,
        address: Address,
        connect: Callable[[Address, SourceContext], Awaitable[Session]],
        *,
        settings: SourceSettings,
        credit: Credit,
        resume: Mapping[str, str] | None,
        reading: Reading,
        settling: Settling,
        holding: Holding,
        partitions: Partitions,
        status: Status,
        has_lag: bool,
    ) -> None:
        """``resume`` has the names of the last messages that are over for the state, by place, and changes as
        they do; ``has_lag``: the broker has one."""
        self.session: Session | None = None
        """The one that stands, if one does."""
        self._context = context
        self._address = address
        self._connect = connect
        self._credit = credit
        self._resume = resume
        self._reading = reading
        self._settling = settling
        self._holding = holding
        self._partitions = partitions
        self._status = status
        self._lag_every = settings.lag_every if has_lag else None
        self._random = random_of(context)
        self._connecting = Connecting(address, status, self._random, settings.reconnects, settings.give_up)

    async def begin(self) -> None:
        """Connect for the first time; an error fails the start (law R8)."""
        self.session = await self._connecting.first(self._connected)

    async def keep(self) -> None:
        """Run one session after another."""
        while (session := self.session) is not None and (lost := await self._run(session)) is not None:
            self.session = None
            self._lose()
            await leave(session)
            if self._status.is_draining and not self._settling.survive:
                return  # nothing can be settled any more
            self.session = await self._connecting.again(self._connected, lost)
            self._settling.catch_up()

    async def tell(self, session: Session) -> None:
        """Tell the broker what is noted, until the connection is lost, which raises."""
        await self._settling.tell(session, self._partitions.balance)

    async def _connected(self) -> Session:
        """Make a connection."""
        context = self._context
        task = SourceTask(
            topology=context.topology,
            component=context.component,
            task_index=context.task_index,
            parallelism=context.parallelism,
            consumer=consumer_name(context),
            connection=self._holding.receipts.connected(),
            random=self._random,
            credit=UNLIMITED if self._credit.most is None else self._credit.most,
            resume=self._resume,
            take=self._partitions.assign,
            revoke=self._partitions.revoke,
            lose=self._partitions.lose,
        )
        return await self._connect(self._address, task)

    async def _run(self, session: Session) -> Exception | None:
        """Run a session until it is lost: return the error that says so."""
        works = [self._read(session), self.tell(session)]
        if self._lag_every is not None:
            works.append(self._watch_lag(session, self._lag_every))
        tasks = [asyncio.get_running_loop().create_task(work) for work in works]
        try:
            while tasks:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    tasks.remove(task)
                    task.result()
        except BrokerGivenUp as error:
            raise BrokerGivenUp(self._connecting.words(error)) from None
        except LOSSES as error:
            return error
        finally:
            await end(tasks)  # of a connection that is lost, or at the end: no read is spoilt by that
        return None

    async def _read(self, session: Session) -> None:
        """Read, once the broker knows what was settled before: it may deliver all else that is under way."""
        if self._settling.survive:
            await self._settling.caught_up.wait()
        await self._reading.read(session)

    async def _watch_lag(self, session: Session, every: float) -> None:
        while True:
            self._status.lag = await session.lag()
            await asyncio.sleep(every)

    def _lose(self) -> None:
        """The connection is lost, and with it whatever does not survive it."""
        if self._settling.survive:
            self._holding.receipts.lost()
            self._settling.forget()
            return
        self._partitions.lose_all()
        self._holding.withdraw(list(self._holding.receipts))
        self._status.stale += self._settling.forget()
        self._holding.all_are_read = False
