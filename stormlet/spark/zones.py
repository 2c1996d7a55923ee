"""Spark's names of time zones, as Python's zones."""

from __future__ import annotations

import re
from datetime import timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from stormlet.errors import InvalidTopology

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?")


def zone_of(name: str) -> tzinfo:
    """The zone of ``spark.sql.session.timeZone``: a region, or an offset such as ``GMT+8`` or ``-01:30``.

    Raises :class:`~stormlet.errors.InvalidTopology` for a name that Python does not know.
    """
    if name == "Z":
        return ZoneInfo("UTC")
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        sign, hours, minutes, seconds = offset.groups(default="0")
        ahead = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
        return timezone(ahead if sign == "+" else -ahead)
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise InvalidTopology(
            f"spark.sql.session.timeZone is {name!r}, which Python's zoneinfo does not know; set a region such as "
            f"'Europe/Berlin' or an offset such as '+02:00', or install the package tzdata"
        ) from None
