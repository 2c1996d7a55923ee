"""Revisions of what a page shows, so that it asks once a second and gets only what has changed.

What is shown is a mapping of names to values. A page that says at which revision it is gets those that are newer, and
the names that are gone; one that says nothing, or speaks of another life of the server, gets all.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any, Final

import msgspec

MOST_KEPT: Final = 64
"""The different things that are looked at, of which the last values are kept."""


class Change(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Everything that is new since a revision."""

    revision: str
    whole: bool
    """True if these are all values, whatever was known before."""
    values: dict[str, Any]
    gone: list[str]
    poll_seconds: float | None
    """Seconds after which to ask again; None if nothing will change any more."""


class Revised:
    """The last values of one thing that is looked at."""

    def __init__(self, life: str) -> None:
        self._life = life
        self._number = 0
        self._values: dict[str, tuple[int, object]] = {}
        self._gone: dict[str, int] = {}

    def update(self, values: Mapping[str, object]) -> None:
        """These are the values now."""
        number = self._number + 1
        changed = {
            name: (number, value)
            for name, value in values.items()
            if name not in self._values or self._values[name][1] != value
        }
        gone = dict.fromkeys(self._values.keys() - values.keys(), number)
        if changed or gone:
            self._number = number
        self._values.update(changed)
        for name in gone:
            del self._values[name]
        self._gone = {name: at for name, at in {**self._gone, **gone}.items() if name not in self._values}

    def since(self, revision: str, poll_seconds: float | None) -> Change:
        """Return what has changed since this revision."""
        life, _, number = revision.rpartition("-")
        known = int(number) if life == self._life and number.isdecimal() else 0
        known = known if known <= self._number else 0
        return Change(
            revision=f"{self._life}-{self._number}",
            whole=known == 0,
            values={name: value for name, (at, value) in self._values.items() if at > known},
            gone=sorted(name for name, at in self._gone.items() if at > known > 0),
            poll_seconds=poll_seconds,
        )


class Revisions:
    """The things that pages look at; of those that nobody has looked at for longest nothing is kept."""

    def __init__(self, life: str) -> None:
        self._life = life
        self._kept = OrderedDict[Hashable, Revised]()
        self._begun = 0

    def of(self, thing: Hashable) -> Revised:
        """Return the last values of this."""
        if thing not in self._kept:
            # Numbered, as one that was forgotten and comes again begins at its first revision.
            self._begun += 1
            self._kept[thing] = Revised(f"{self._life}.{self._begun}")
        self._kept.move_to_end(thing)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return self._kept[thing]
