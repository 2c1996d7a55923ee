"""The recipe of HTTP calls."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

import httpx
import pytest

from examples.recipes import http_calls as recipe
from examples.recipes.http_calls import Fetch, fetched
from stormlet import DeadLetter
from tests.examples.runs import RunExample
from tests.helpers import run_to_end


def test_it_fetches_all_pages(run_example: RunExample) -> None:
    """All 200 pages arrive, and the server's threads end with the run."""
    before = threading.enumerate()
    outcome = run_example("recipes/http_calls.py")
    assert outcome.lines == ["200 pages fetched"]
    assert outcome.code == 0
    for thread in set(threading.enumerate()) - set(before):
        thread.join(60)
        assert not thread.is_alive()


def test_an_overloaded_server_is_called_again() -> None:
    """Over real connections every tenth page is refused at first, and succeeds at the second call."""
    recipe.Shop.calls.clear()  # which other tests of this process may have made
    running = asyncio.run(run_to_end(fetched(pages=30)))
    paths = running.statistics().components["paths"]
    assert (paths.acked, paths.failed, paths.dead_letters) == (30, 3, 0)


def test_what_does_not_exist_is_a_dead_letter(run_example: RunExample) -> None:
    """Pages that the server does not have are given up, and the exit code says so."""
    outcome = run_example("recipes/http_calls.py", "--arg", "pages=9", "--arg", "missing=2")
    assert outcome.lines == ["9 pages fetched"]
    assert outcome.code == 1


class Host:
    """Answers each path with its statuses, one after the other, after a second."""

    def __init__(self, statuses: dict[str, list[int]]) -> None:
        self.statuses = statuses
        self.calls = Counter[str]()
        self.under_way = 0
        self.most = 0

    async def answer(self, request: httpx.Request) -> httpx.Response:
        """One call."""
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(1)
        self.under_way -= 1
        path = request.url.path
        statuses = self.statuses.get(path, [200])
        self.calls[path] += 1
        status = statuses[min(self.calls[path], len(statuses)) - 1]
        if status == 0:
            raise httpx.ConnectError("no answer")
        return httpx.Response(status, text=path)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    """Answers instead of the server."""
    host = Host({})

    class FetchFromHost(Fetch):
        async def prepare(self, context: Any) -> None:
            transport = httpx.MockTransport(host.answer)
            self.client = httpx.AsyncClient(base_url="http://host", transport=transport)

    monkeypatch.setattr(recipe, "FetchFromShop", FetchFromHost)
    return host


@pytest.mark.simulated_time
async def test_fifty_calls_are_under_way_at_a_time(host: Host) -> None:
    """200 calls of a second each take four seconds, fifty at a time."""
    loop = asyncio.get_running_loop()
    await run_to_end(fetched(pages=200), seed=1)
    assert host.most == 50
    assert loop.time() == pytest.approx(4.0, abs=0.1)


@pytest.mark.simulated_time
async def test_what_may_be_better_next_time_is_retried(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    """Server errors, 429, 408 and connections that fail are called again until they succeed."""
    host.statuses = {"/0": [500, 503, 200], "/1": [429, 200], "/2": [408, 200], "/3": [0, 200], "/4": [200]}
    await run_to_end(fetched(pages=5), seed=1)
    assert host.calls == {"/0": 3, "/1": 2, "/2": 2, "/3": 2, "/4": 1}
    assert capsys.readouterr().out == "5 pages fetched\n"


@pytest.mark.simulated_time
@pytest.mark.parametrize("status", [301, 400, 401, 404, 410, 422])
async def test_the_own_fault_is_rejected(host: Host, status: int) -> None:
    """A client error or a redirect is called once and given up with path and status."""
    host.statuses = {"/0": [status, 200]}
    letters: list[DeadLetter] = []
    await run_to_end(fetched(pages=2), seed=1, dead_letters=letters.append)
    assert host.calls == {"/0": 1, "/1": 1}
    assert [letter.value for letter in letters] == ["/0"]
    assert f"/0 answers {status}" in str(letters[0].failure)
