"""Messages that have come and are not emitted, in the order in which they may be (law R5, R7)."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Iterator
from functools import lru_cache
from inspect import iscoroutine
from itertools import islice

from stormlet.connect.driver.held import Held, Unreadable, is_unreadable
from stormlet.core.settlement.key_order import KeyOrder
from stormlet.core.settlement.prefix import Prefix
from stormlet.core.shortened import shortened, text_of


class Buffer:
    """Messages that have come and are not emitted, in the order in which they may be."""

    def __init__(self, is_ordered: bool) -> None:
        self.bytes = 0
        self.is_ordered = is_ordered
        """True if those with the same key wait for each other."""
        self.unreadable = 0
        """Messages of which nothing can be made; they have no key."""
        self._ready: deque[Held] = deque()
        self._begun: dict[Prefix, int] = {}
        self._order = KeyOrder[Held]()

    def __len__(self) -> int:
        """Return the number of messages, with those that wait for others of their key."""
        return len(self._ready) + (len(self._order) if self.is_ordered else 0)

    @property
    def is_ready(self) -> bool:
        """True if there is one to emit."""
        return bool(self._ready)

    def check_key(self, key: Hashable) -> None:
        """Raise :class:`TypeError`, which says the way out, for a key that has no hash, cannot be compared with those
        that are under way, or is still to be awaited or drained: no two of these are equal."""
        if _is_drained_or_awaited(type(key)):
            raise _not_at_once(key)
        try:
            self._order.is_under_way(key)
        except Exception as error:
            why = text_of(error) if type(error) is TypeError else shortened(error)
            raise TypeError(
                f"ordered_by gave {shortened(key)}, of type {type(key).__name__}, by which no order can be kept "
                f"({why}); let it return a tuple or a text of that"
            ) from error

    def add(self, message: Held) -> None:
        """Keep a message until it may be emitted, or its turn comes if nothing can be made of it."""
        self.bytes += message.size
        if type(message.value) is Unreadable:
            self.unreadable += 1
        if not self.is_ordered or self._order.admit(message.key, message):
            self._ready.append(message)

    def take(self, most: int) -> list[Held]:
        """Take the first messages out, to emit them; none of which nothing can be made, nor what is behind one."""
        ready = self._ready
        if self.unreadable:
            most = next(
                (place for place, each in enumerate(islice(ready, most)) if is_unreadable(each)), most
            )
        return self._begin([ready.popleft() for _ in range(min(most, len(ready)))])

    def take_unreadable(self) -> list[Held]:
        """Take out the first messages, as long as nothing can be made of them."""
        taken: list[Held] = []
        while self.unreadable and self._ready and is_unreadable(self._ready[0]):
            taken.append(self._ready.popleft())
            self.unreadable -= 1
        return self._begin(taken)

    def _begin(self, taken: list[Held]) -> list[Held]:
        for each in taken:
            self.bytes -= each.size
            # Without an order of keys, all that is begun lies before all that is not.
            if self.is_ordered and each.place is not None:
                self._begun[each.place] = max(each.number, self._begun.get(each.place, -1))
        return taken

    def is_overtaken(self, message: Held) -> bool:
        """Return True if others behind it in its partition have been begun, as it waits for one of its key."""
        return message.place is not None and message.number < self._begun.get(message.place, -1)

    def forget(self, places: Iterable[Prefix]) -> None:
        """Nothing more will come of these partitions."""
        for place in places:
            self._begun.pop(place, None)

    def over(self, held: Held) -> bool:
        """A message is no longer under way. Returns True if the next one of its key is ready now."""
        if not self.is_ordered:
            return False
        following = self._order.done(held.key)
        if following is not None:
            self._ready.append(following)
        return following is not None

    def drop(self, gone: Callable[[Held], bool]) -> list[Held]:
        """Take out messages that are no longer to be emitted, wherever they are; return them."""
        dropped = self._order.drop(gone)
        ready, self._ready = self._ready, deque(each for each in self._ready if not gone(each))
        first = [each for each in ready if gone(each)]
        self.bytes -= sum(each.size for each in (*dropped, *first))
        self.unreadable -= sum(map(is_unreadable, (*dropped, *first))) if self.unreadable else 0
        for each in first:  # they were under way for their keys
            self.over(each)
        return [*first, *dropped]


@lru_cache(maxsize=256)
def _is_drained_or_awaited(kind: type) -> bool:
    """Return True for the type of an object that is no key yet. Asking takes longer than all else that is done with a
    key, and keys have few types."""
    return issubclass(kind, Awaitable | Iterator | AsyncIterator)


def _not_at_once(key: object) -> TypeError:
    if iscoroutine(key):
        key.close()  # or Python warns that it was never awaited
    name = type(key).__name__
    return TypeError(
        f"ordered_by gave an object of type {name} instead of a key, which it is to return at once; write a plain "
        "function"
    )
