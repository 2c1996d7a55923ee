"""What the source code of components says of their emits, and what it leaves open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from stormlet import BasicBolt, Bolt, Collector, Spout, SpoutCollector, TaskContext, Tuple
from stormlet.drawing.anchoring import code_of, is_untied

T = TypeVar("T", bound=Callable[..., object])


def override(method: T) -> T:
    return method


def wrapped(method: Callable[..., Any]) -> Callable[..., Any]:
    return method


class Silent(Spout[int]):
    def next_tuple(self, out: SpoutCollector[int]) -> None:
        pass


class Untied(Spout[int]):
    def next_tuple(self, out: SpoutCollector[int]) -> None:
        out.emit(1)
        out.emit(2, message_id=None)


class Tied(Spout[int]):
    def next_tuple(self, out: SpoutCollector[int]) -> None:
        out.emit(1)
        out.emit(2, message_id=2)


class ByStream(Spout[int]):
    def next_tuple(self, out: SpoutCollector[int]) -> None:
        out.emit(1, message_id=1)
        out.emit(2, stream="log")


class Computed(Spout[int]):
    name = "log"

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        out.emit(1, message_id=1, stream=self.name)
        out.emit(2, stream="log")


class Spread(Spout[int]):
    def next_tuple(self, out: SpoutCollector[int]) -> None:
        options: dict[str, Any] = {"message_id": 1}
        out.emit(1, **options)


class HandsOut(Spout[int]):
    def next_tuple(self, out: SpoutCollector[int]) -> None:
        out.emit(1)
        help_out(out)


def help_out(out: SpoutCollector[int]) -> None:
    out.emit(1, message_id=1)


class Keeps(Spout[int]):
    def open(self, context: TaskContext, out: SpoutCollector[int]) -> None:
        self.out = out

    def next_tuple(self, out: SpoutCollector[int]) -> None:
        out.emit(1)


class Aliases(Spout[int]):
    def next_tuple(self, out: SpoutCollector[int]) -> None:
        out.emit(1)
        emit = out.emit
        emit(2, message_id=2)


class Wrapped(Spout[int]):
    @wrapped
    def next_tuple(self, out: SpoutCollector[int]) -> None:
        out.emit(1)


class Overrides(Spout[int]):
    @override
    def next_tuple(self, out: SpoutCollector[int]) -> None:
        out.emit(1)


def elsewhere(self: object, out: SpoutCollector[int]) -> None:
    out.emit(1, message_id=1)


class Assigned(Untied):
    next_tuple = elsewhere  # type: ignore[assignment]


class Child(Untied):
    def ack(self, message_id: object) -> None:
        pass


class TiedChild(Untied):
    def helper(self, out: SpoutCollector[int]) -> None:
        out.emit_threadsafe(1, message_id=1)


class Asynchronous(Spout[int]):
    async def next_tuple(self, out: SpoutCollector[int]) -> None:
        def later() -> None:
            out.emit(1)

        later()


Generated = type("Generated", (Spout,), {"next_tuple": elsewhere})


@pytest.mark.parametrize(
    ("spout", "stream", "untied"),
    [
        (Silent, "default", False),
        (Untied, "default", True),
        (Untied, "other", False),
        (Tied, "default", False),
        (ByStream, "default", False),
        (ByStream, "log", True),
        (Computed, "log", False),
        (Spread, "default", False),
        (HandsOut, "default", False),
        (Keeps, "default", False),
        (Aliases, "default", False),
        (Wrapped, "default", False),
        (Overrides, "default", True),
        (Assigned, "default", False),
        (Child, "default", True),
        (TiedChild, "default", False),
        (Asynchronous, "default", True),
        (Generated, "default", False),
        (None, "default", False),
    ],
)
def test_a_stream_is_untied_only_where_the_code_shows_it(
    spout: type | None, stream: str, *, untied: bool
) -> None:
    """Every emit to the stream must be seen, and none may carry the keyword; all that is not seen counts as tied."""
    assert is_untied(spout, stream, "message_id") is untied


class Join(Bolt[int, int]):
    def execute(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.emit(1, anchors=[tup])
        out.emit(2, anchors=(), stream="log")

    def finish(self, out: Collector[int]) -> None:
        out.emit(3, anchors=[], stream="log")


class Settles(Join):
    def settle(self, tup: Tuple[int], out: Collector[int]) -> None:
        out.fail_threadsafe(tup)


def test_anchors_are_read_like_message_ids() -> None:
    """An empty tuple or list of anchors ties nothing."""
    assert not is_untied(Join, "default", "anchors")
    assert is_untied(Join, "log", "anchors")


def test_the_code_says_where_it_emits_and_whether_it_settles() -> None:
    """Each emit knows its method; a base's code is part of a class."""
    code = code_of(Join)
    assert code is not None
    assert [(each.method, each.stream) for each in code.emits] == [
        ("execute", "default"),
        ("execute", "log"),
        ("finish", "log"),
    ]
    assert not code.settles
    settling = code_of(Settles)
    assert settling is not None
    assert settling.settles
    assert len(settling.emits) == 3


def test_the_interfaces_themselves_do_nothing() -> None:
    """Nothing is read of stormlet's own classes."""
    for interface in (Bolt, BasicBolt, Spout):
        code = code_of(interface)
        assert code is not None
        assert (code.emits, code.settles) == ((), False)
