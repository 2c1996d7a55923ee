"""The kinds of bugs of the user's that a simulation finds, and may be told to allow."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeAlias, cast, get_args

from stormlet.errors import InvalidConfiguration

Kind = Literal["anchors", "acks", "errors", "values", "replays", "joins", "updates", "order"]
"""Emits without anchors, acks before the end of the work, exceptions after
them, values that are changed afterwards, messages that a spout does
not replay, joins with the replay of a message, lost updates, and results that depend on the order."""
Allow: TypeAlias = bool | Collection[Kind]
"""Kinds that are no bugs, because it is meant so; True: all of them."""


def kinds_allowed(allow: object) -> Collection[str]:
    """The kinds that these are; raises :class:`~stormlet.errors.InvalidConfiguration` naming all kinds if one of them
    is unknown."""
    kinds: tuple[str, ...] = get_args(Kind)
    if isinstance(allow, bool):
        return kinds if allow else ()
    if not isinstance(allow, list | tuple | set | frozenset) or any(
        each not in kinds for each in cast("Collection[object]", allow)
    ):
        raise InvalidConfiguration(
            f"allow must be True, False or a list of {', '.join(kinds)}, not {allow!r}"
        )
    return cast("Collection[str]", allow)
