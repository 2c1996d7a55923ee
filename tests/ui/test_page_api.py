"""Answers to pages that are looked at together."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping, Sequence

import pytest

from stormlet.ui.answers import NotFound
from stormlet.ui.app import recorded_app
from stormlet.ui.views.graph import Graph
from stormlet.ui.views.view import Page, View
from tests.ui.kit import asked

pytestmark = pytest.mark.asyncio


class Counted:
    """A topology whose numbers take long, until they may be there."""

    loop = None
    is_live = True
    state = "running"

    def __init__(self, id: str, *, ready: bool = True) -> None:
        self.id = self.name = id
        self.ready = ready
        self.at_once = self.most_at_once = 0

    def graph(self) -> Graph:
        return Graph(0, 0)

    def values(self, view: View) -> Mapping[str, object]:
        return {"name": self.name}

    def values_in_steps(self, view: View) -> Generator[None, None, Mapping[str, object]]:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        yield
        while not self.ready:
            yield
        self.at_once -= 1
        return self.values(view)


class Shown:
    """Two topologies."""

    def __init__(self) -> None:
        self.slow, self.fast = Counted("slow", ready=False), Counted("fast")

    def all(self) -> Sequence[Page]:
        return [self.slow, self.fast]

    def get(self, id: str) -> Page:
        found = {each.id: each for each in self.all()}
        if id not in found:
            raise NotFound(id)
        return found[id]


async def test_a_slow_page_of_one_topology_does_not_hold_up_another() -> None:
    """Those of one topology are put together one after the other."""
    shown = Shown()
    async with asked(recorded_app(shown)) as client, asyncio.timeout(10):
        slow = [asyncio.ensure_future(client.get("/api/v1/pages/slow/changes")) for _ in range(3)]
        while not shown.slow.at_once:  # noqa: ASYNC110
            await asyncio.sleep(0)
        answer = await client.get("/api/v1/pages/fast/changes")
        assert answer.json()["values"] == {"name": "fast"}
        assert not any(each.done() for each in slow)
        shown.slow.ready = True
        answers = [(await each).json()["values"] for each in slow]
        assert answers == [{"name": "slow"}] * 3
        assert shown.slow.most_at_once == 1
