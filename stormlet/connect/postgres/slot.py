"""A replication slot and its publication: found or made, read, and advanced."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from stormlet.connect.postgres.connection import Connection, quoted, translated
from stormlet.errors import BrokerRefused, ConnectionLost

PLUGIN: Final = "pgoutput"
IN_USE: Final = "55006"
"""The error of a slot that another connection is at."""
PATIENCE: Final = 600.0
"""Seconds for statements at the slot, which read all of the WAL since its restart."""
ALONE_WITHIN: Final = 10.0
"""Seconds within which the server notices that a process before has died: it looks every 2 s, unless it is busy."""
OLDEST: Final = 140_000
"""The first version that notices while it reads WAL that its client is gone."""

SESSION: Final = {
    "DateStyle": "ISO",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "client_connection_check_interval": "2s",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
"""Values are printed alike whoever reads, and the server notices soon that a reader is gone."""
SET: Final = "SELECT set_config(name, value, false) FROM unnest($1::text[], $2::text[]) AS s(name, value)"
SERVER: Final = """SELECT current_setting('wal_level') AS level, current_setting('server_version_num')::int AS version,
getdatabaseencoding() AS encoding, current_database() AS database"""
SLOT: Final = """SELECT plugin, database, wal_status, confirmed_flush_lsn AS confirmed
FROM pg_replication_slots WHERE slot_name = $1"""
PUBLICATION: Final = "SELECT 1 AS there FROM pg_publication WHERE pubname = $1"
MAKE: Final = "SELECT pg_create_logical_replication_slot($1, 'pgoutput')"
ALONE: Final = "SELECT pg_try_advisory_lock(hashtext('stormlet slot'), hashtext($1)) AS alone"
END: Final = "SELECT pg_current_wal_flush_lsn() AS lsn"
LAG: Final = """SELECT pg_current_wal_lsn() - confirmed_flush_lsn AS lag, pg_current_wal_lsn() - restart_lsn AS kept
FROM pg_replication_slots WHERE slot_name = $1"""
PEEK: Final = """SELECT data FROM pg_logical_slot_peek_binary_changes($1, NULL, $2,
'proto_version', '1', 'publication_names', $3)"""
ADVANCE: Final = "SELECT end_lsn FROM pg_replication_slot_advance($1, $2)"


class Slot:
    """A slot, of which one connection reads and tells, and the other one knows about the server meanwhile."""

    def __init__(self, reader: Connection, control: Connection, name: str, publication: str) -> None:
        self.name = name
        self._reader = reader
        self._control = control
        self._publication = publication

    async def begin(self, create: bool | Sequence[str]) -> int:
        """Find the slot, or make it, and keep others away from it; return the position up to which it is done."""
        with translated(self._control.address, connecting=True):
            for connection in (self._control, self._reader):
                await connection.ask(SET, list(SESSION), list(SESSION.values()))
            (server,) = await self._control.ask(SERVER)
            self._check_server(server)
            await self._publish(create)
            found = await self._control.ask(SLOT, self.name)
            if not found and create is not False:
                await self._reader.ask(MAKE, self.name, within=PATIENCE)
                found = await self._control.ask(SLOT, self.name)
            confirmed = self._confirmed(found, str(server["database"]))
            await self._be_alone()
        return confirmed

    def refuse(self, why: str) -> BrokerRefused:
        """Return an error that names the server."""
        return BrokerRefused(f"{self._control.address}: {why}")

    def _check_server(self, server: Mapping[str, Any]) -> None:
        if server["version"] < OLDEST:
            raise self.refuse("changes are captured from Postgres 14 or later")
        if server["level"] != "logical":
            raise self.refuse(
                f"wal_level is {server['level']!r}, and changes are captured only with wal_level=logical: "
                "ALTER SYSTEM SET wal_level = logical, and restart the server"
            )
        if server["encoding"] == "SQL_ASCII":
            raise self.refuse("the database has the encoding SQL_ASCII, in which text may be anything")

    async def _publish(self, create: bool | Sequence[str]) -> None:
        name = quoted_one(self._publication)
        if await self._control.ask(PUBLICATION, self._publication):
            return
        if create is False:
            raise self.refuse(
                f"there is no publication {self._publication!r}: create=True makes it, or "
                f"CREATE PUBLICATION {name} FOR ALL TABLES"
            )
        tables = "ALL TABLES" if create is True else f"TABLE {', '.join(map(quoted, create))}"
        async with self._control.alone(f"stormlet publication {self._publication}"):
            await self._control.execute(f"CREATE PUBLICATION {name} FOR {tables}")

    def _confirmed(self, found: Sequence[Mapping[str, Any]], database: str) -> int:
        if not found:
            raise self.refuse(
                f"there is no replication slot {self.name!r}: create=True makes it, or "
                f"SELECT pg_create_logical_replication_slot('{self.name}', '{PLUGIN}')"
            )
        (slot,) = found
        if slot["plugin"] != PLUGIN:
            kind = "physical" if slot["plugin"] is None else f"of the plugin {slot['plugin']!r}"
            raise self.refuse(f"the replication slot {self.name!r} is {kind}, and must be of {PLUGIN!r}")
        if slot["database"] != database:
            raise self.refuse(f"the replication slot {self.name!r} is of the database {slot['database']!r}")
        if slot["wal_status"] == "lost":
            raise self.refuse(
                f"the replication slot {self.name!r} has lost changes, as it was behind by more than "
                "max_slot_wal_keep_size: drop it, copy the tables, and begin with a new one"
            )
        return int(slot["confirmed"])

    async def _be_alone(self) -> None:
        until = asyncio.get_running_loop().time() + ALONE_WITHIN
        while not (await self._control.ask(ALONE, self.name))[0]["alone"]:
            if asyncio.get_running_loop().time() >= until:
                raise ConnectionLost(
                    f"{self._control.address}: somebody else reads the replication slot {self.name!r}, which one run "
                    "does at a time"
                )
            await asyncio.sleep(0.1)

    async def end(self) -> int:
        """Return the position of the end of the WAL."""
        (row,) = await self._control.rows(END)
        return int(row["lsn"])

    async def peek(self, most: int, *, connecting: bool = False) -> Sequence[bytes] | None:
        """Return the messages of the next transactions that are not done, of so many as have ``most`` messages, and the
        rest of the last one; None if another connection is at the slot."""
        rows = await self._at_slot(
            PEEK, self.name, most, quoted_one(self._publication), connecting=connecting
        )
        return None if rows is None else [row["data"] for row in rows]

    async def advance(self, lsn: int) -> bool:
        """All up to there is done. Returns False if another connection is at the slot."""
        return await self._at_slot(ADVANCE, self.name, lsn) is not None

    async def _at_slot(
        self, statement: str, *arguments: object, connecting: bool = False
    ) -> Sequence[Mapping[str, Any]] | None:
        with translated(self._reader.address, connecting=connecting):
            try:
                return await self._reader.ask(statement, *arguments, within=PATIENCE)
            except Exception as error:
                if getattr(error, "sqlstate", None) != IN_USE:
                    raise
                return None

    async def lag(self) -> tuple[int, int]:
        """Return the bytes of WAL that are not done, and those that the server keeps for the slot."""
        rows = await self._control.rows(LAG, self.name)
        if not rows:
            raise ConnectionLost(f"{self._control.address}: the replication slot {self.name!r} is gone")
        return int(rows[0]["lag"] or 0), int(rows[0]["kept"] or 0)

    async def close(self) -> None:
        """Disconnect."""
        await self._reader.close()
        await self._control.close()


def quoted_one(name: str) -> str:
    """Return a name without a schema, as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def lsn_text(lsn: int) -> str:
    """Return a position as Postgres writes it, such as ``0/15D6A88``."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
