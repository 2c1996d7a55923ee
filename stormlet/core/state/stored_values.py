"""Values in stores that others keep, changed once by each epoch: Trident's two rules as pure functions.

Such a store cannot be part of the commit of an epoch. So a value is stored with the number of the epoch that has
changed it last, and an epoch that comes again, as after a crash between the two, is recognised by its number.

- :func:`transactional` is for epochs that bring the same again under the same number: then the value stays as it is.
  What a committer gets is such an epoch, as its rows are durable before it is called.
- :func:`opaque` is for epochs that may bring something else under the same number: the change is made anew, from the
  value before.

``update`` makes all changes of one epoch at once, from the value before, None at first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

V = TypeVar("V")


class Transactional(msgspec.Struct, Generic[V], frozen=True):
    """A value, and the epoch that has changed it last."""

    epoch: int
    value: V


class Opaque(msgspec.Struct, Generic[V], frozen=True):
    """A value, the epoch that has changed it last, and the value before that."""

    epoch: int
    value: V
    previous: V | None = None


def transactional(
    stored: Transactional[V] | None, epoch: int, update: Callable[[V | None], V]
) -> Transactional[V]:
    """Return the value after this epoch: as it is stored, if the epoch has changed it already.

    Raises :class:`ValueError` for an epoch before the one that has changed it last.
    """
    if stored is None:
        return Transactional(epoch, update(None))
    _check(stored.epoch, epoch)
    return stored if stored.epoch == epoch else Transactional(epoch, update(stored.value))


def opaque(stored: Opaque[V] | None, epoch: int, update: Callable[[V | None], V]) -> Opaque[V]:
    """Return the value after this epoch: changed anew from the value before, if the epoch has changed it already.

    Raises :class:`ValueError` for an epoch before the one that has changed it last.
    """
    before = value_before(stored, epoch)
    return Opaque(epoch, update(before), before)


def value_before(stored: Opaque[V] | None, epoch: int) -> V | None:
    """Return the value from which an epoch begins; None if there is none.

    Raises :class:`ValueError` for an epoch before the one that has changed it last.
    """
    if stored is None:
        return None
    _check(stored.epoch, epoch)
    return stored.previous if stored.epoch == epoch else stored.value


def _check(stored: int, epoch: int) -> None:
    if epoch < stored:
        raise ValueError(
            f"epoch {epoch} comes after epoch {stored} has changed the value: another run writes to this store, or the "
            f"state was rewound; let one run write to it, or take the value back to epoch {epoch}"
        )
