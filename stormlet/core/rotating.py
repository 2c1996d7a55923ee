"""The seeds' ``RotatingMap``: expiry in cohorts, without a timestamp per entry.

It behaves as a map and holds several buckets. ``put`` relocates a key to the newest bucket, the nursery;
``rotate`` moves every bucket one step towards its end and hands out the oldest one, death row (seed 000,
"Pending tuples and the RotatingMap"). With *n* buckets an untouched key is handed out by the *n*-th
``rotate`` after its last ``put``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class RotatingMap(Generic[K, V]):
    """A map whose entries expire in cohorts.

    ``on_expired``, if given, is called with every key and value that a rotation drops, as Storm's
    ``ExpiredCallback`` is. Raises :class:`ValueError` for fewer than two buckets: one bucket would drop
    entries that have just been put.
    """

    __slots__ = ("_make_bucket", "_on_expired", "buckets")

    def __init__(
        self,
        buckets: int = 3,
        on_expired: Callable[[K, V], object] | None = None,
        *,
        make_bucket: Callable[[], dict[K, V]] = dict[K, V],
    ) -> None:
        if buckets < 2:
            raise ValueError(f"a RotatingMap needs at least 2 buckets, not {buckets}")
        self.buckets: deque[dict[K, V]] = deque(make_bucket() for _ in range(buckets))
        """The buckets, newest first."""
        self._on_expired = on_expired
        self._make_bucket = make_bucket

    def put(self, key: K, value: V) -> None:
        """Set ``key`` in the newest bucket and remove it from any other."""
        for bucket in self.buckets:  # a key is in one of them at most
            if bucket.pop(key, None) is not None:
                break
        self.buckets[0][key] = value

    def get(self, key: K) -> V | None:
        """Return the value of ``key``, or None; reading does not refresh it."""
        # From the newest, as most entries are taken out long before they grow old.
        for bucket in self.buckets:
            if key in bucket:
                return bucket[key]
        return None

    def pop(self, key: K) -> V | None:
        """Remove ``key`` and return its value, or None."""
        for bucket in self.buckets:
            if key in bucket:
                return bucket.pop(key)
        return None

    def rotate(self) -> dict[K, V]:
        """Drop the oldest bucket and return it, after calling ``on_expired`` for each of its entries."""
        newest = self._make_bucket()  # first, as what it raises must leave all as it was
        oldest = self.buckets.pop()
        self.buckets.appendleft(newest)
        # After the shift, so that an entry which a callback puts enters the new nursery.
        if self._on_expired is not None:
            for key, value in oldest.items():
                self._on_expired(key, value)
        return oldest

    def __contains__(self, key: object) -> bool:
        return any(key in bucket for bucket in self.buckets)

    def __len__(self) -> int:
        return sum(map(len, self.buckets))
