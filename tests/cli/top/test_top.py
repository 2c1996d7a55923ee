"""`stormlet top`: a run on a terminal, by the REST of its page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from textual.pilot import Pilot
from textual.widgets import DataTable, Input, Static

from stormlet import Running, Topology, ui
from stormlet.cli import main
from stormlet.cli.terminal.address import read_address
from stormlet.cli.terminal.app import Top
from stormlet.cli.terminal.asking import Server, Unanswered
from tests.ui.kit import EVIL, TOKEN, busy, print_nothing, served, until_busy

in_a_loop = pytest.mark.asyncio


@pytest_asyncio.fixture
async def running() -> AsyncGenerator[Running]:
    async with busy().run(dead_letters=lambda letter: None, seed=1) as running:
        await until_busy(running, 10)
        yield running
        running.stop()
        running.stop()


@asynccontextmanager
async def top_of(port: int, size: tuple[int, int] = (140, 34)) -> AsyncGenerator[Pilot[None]]:
    """The view of the page at a port, once it has a picture or says why it has none."""
    app = Top(Server(read_address(str(port), {})))
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: bool(app.seen.picture or app.seen.trouble))
        yield pilot


@asynccontextmanager
async def top_on(running: Running) -> AsyncGenerator[Pilot[None]]:
    async with served(ui.app(running)) as server, top_of(server.port) as pilot:
        yield pilot


async def until(pilot: Pilot[None], seen: Callable[[], bool]) -> None:
    """Wait for an answer of the page."""
    async with asyncio.timeout(60):
        while not seen():
            await asyncio.sleep(0.005)
            await pilot.pause()


def text_of(pilot: Pilot[None], id: str) -> str:
    """What a line shows."""
    return str(pilot.app.query_one(f"#{id}", Static).content)


def rows_of(pilot: Pilot[None], id: str = "components") -> list[list[str]]:
    """What a table shows."""
    table = pilot.app.query_one(f"#{id}", DataTable)
    return [[str(cell) for cell in table.get_row_at(place)] for place in range(table.row_count)]


def names_of(pilot: Pilot[None]) -> list[str]:
    """The components that are shown, without the sign of their state."""
    return [row[0][2:] for row in rows_of(pilot)]


@in_a_loop
async def test_it_shows_the_topology_what_limits_it_and_its_components(running: Running) -> None:
    """As the page does; a name that would move the cursor or be markup is text."""
    async with top_on(running) as pilot:
        assert text_of(pilot, "head").startswith("busy   running   since 20")
        await until(pilot, lambda: "look-up" in text_of(pilot, "sentence"))
        assert names_of(pilot) == ["source", "check", "look-up", EVIL]
        await pilot.press("y")
        assert names_of(pilot) == ["source", "check", "look-up", EVIL, "__acker"]


@in_a_loop
async def test_it_sorts_by_the_column_that_is_chosen(running: Running) -> None:
    """Names from A on, numbers the largest first, and the other way round."""
    async with top_on(running) as pilot:
        await pilot.press("less_than_sign", "greater_than_sign")
        assert names_of(pilot) == sorted(names_of(pilot))
        await pilot.press("r")
        assert names_of(pilot) == sorted(names_of(pilot), reverse=True)
        await pilot.press("less_than_sign")
        assert names_of(pilot)[0] == "check"  # it has two tasks
        assert "Tasks: instances that work side by side" in text_of(pilot, "note")


@in_a_loop
async def test_it_shows_those_whose_name_is_asked_for(running: Running) -> None:
    """Until the filter is dropped."""
    async with top_on(running) as pilot:
        await pilot.press("slash", *"look", "enter")
        assert names_of(pilot) == ["look-up"]
        await pilot.press("escape")
        assert len(names_of(pilot)) == 4
        assert not pilot.app.query_one(Input).display


@in_a_loop
async def test_a_filter_that_finds_nothing_says_so(running: Running) -> None:
    """In the words that were typed."""
    async with top_on(running) as pilot:
        await pilot.press("slash", *"look", "2")
        assert names_of(pilot) == []
        assert text_of(pilot, "note").startswith("No component has 'look2' in its name.  █ executing")


@in_a_loop
async def test_a_small_terminal_has_its_lines_for_the_table(running: Running) -> None:
    """All components are seen on ten lines, also when a column is sorted by; a larger one has the whole legend."""
    async with served(ui.app(running)) as server, top_of(server.port, (40, 10)) as pilot:
        await until(pilot, lambda: "look-up" in text_of(pilot, "sentence"))
        table = pilot.app.query_one("#components", DataTable)
        await until(pilot, lambda: table.scrollable_content_region.height >= 5)
        assert text_of(pilot, "note").startswith("█ exec ▒ await ")
        await pilot.press("greater_than_sign")
        await until(pilot, lambda: text_of(pilot, "note").startswith("Rate: of a spout"))
        await pilot.pause()
        assert table.scrollable_content_region.height >= 5
        await pilot.resize_terminal(100, 30)
        await until(pilot, lambda: text_of(pilot, "note").endswith("· idle   "))


@in_a_loop
async def test_ctrl_c_ends_it(running: Running) -> None:
    """Also while a filter is typed, where it copies elsewhere."""
    async with top_on(running) as pilot:
        await pilot.press("slash", "l", "ctrl+c")
        await until(pilot, lambda: not pilot.app.is_running)


@in_a_loop
async def test_two_topologies_of_one_name_are_told_apart(running: Running) -> None:
    """By the id of the second one."""
    async with busy().run() as other, served(ui.app(running, other)) as server, top_of(server.port) as pilot:
        assert text_of(pilot, "head").startswith("busy   one of 2   running")
        await pilot.press("t")
        await until(pilot, lambda: text_of(pilot, "head").startswith("busy   busy-2, one of 2   running"))
        other.stop()
        other.stop()


@in_a_loop
async def test_the_graph_has_each_component_below_what_it_takes_from(running: Running) -> None:
    """With the stream between them."""
    async with top_on(running) as pilot:
        await pilot.press("g")
        await until(pilot, lambda: any("└─" in row[0] for row in rows_of(pilot)))
        rows = rows_of(pilot)
        assert [row[0].lstrip(" └─")[2:] for row in rows] == ["source", "check", "look-up", EVIL]
        assert [row[1] for row in rows] == ["", "shuffle", "shuffle", "fields"]


@in_a_loop
async def test_a_component_has_its_tasks_and_its_errors_with_their_traceback(running: Running) -> None:
    """And Escape leads back."""
    async with top_on(running) as pilot:
        await pilot.press("down", "enter")
        await until(pilot, lambda: bool(rows_of(pilot, "errors")))
        assert [row[0][2:] for row in rows_of(pilot, "tasks")] == ["check[0]", "check[1]"]
        assert "ValueError('no " in rows_of(pilot, "errors")[0][-1]
        assert "Traceback (most recent call last)" in text_of(pilot, "traceback")
        assert "check" in text_of(pilot, "facts")
        await pilot.press("escape")
        await until(pilot, lambda: len(names_of(pilot)) == 4)


@in_a_loop
async def test_a_pause_lets_the_picture_stand(running: Running) -> None:
    """What is turned to meanwhile is asked for once."""
    async with top_on(running) as pilot:
        await pilot.press("space")
        assert "PAUSED" in text_of(pilot, "head")
        before = rows_of(pilot)
        await until_busy(running, running.statistics().components["source"].acked + 20)
        await pilot.pause()
        assert rows_of(pilot) == before
        await pilot.press("w")
        await until(pilot, lambda: rows_of(pilot) != before)
        assert "window 1 h" in text_of(pilot, "head")


@in_a_loop
async def test_a_picture_that_comes_after_the_pause_is_not_shown(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was asked for before."""
    ask, answered, go_on = Server.ask, asyncio.Event(), asyncio.Event()

    async def late(self: Server, path: str, **query: str) -> Any:
        answer = await ask(self, path, **query)
        answered.set()
        await go_on.wait()
        return answer

    async with top_on(running) as pilot:
        assert isinstance(pilot.app, Top)
        monkeypatch.setattr(Server, "ask", late)
        await until_busy(running, running.statistics().components["source"].acked + 100)
        answered.clear()
        looking = asyncio.create_task(pilot.app.look())
        await answered.wait()
        await pilot.press("space")
        before = rows_of(pilot)
        go_on.set()
        await looking
        assert rows_of(pilot) == before


@in_a_loop
async def test_it_turns_from_one_topology_to_the_next(running: Running) -> None:
    """Of those of the page."""
    topology = Topology("other")
    topology.bolt("print", print_nothing, topology.spout("feed").shuffle())
    async with (
        topology.run() as other,
        served(ui.app(running, other)) as server,
        top_of(server.port) as pilot,
    ):
        await pilot.press("t")
        await until(pilot, lambda: names_of(pilot) == ["feed", "print"])
        assert text_of(pilot, "head").startswith("other   one of 2   running")


@in_a_loop
async def test_a_topology_that_is_gone_leaves_its_last_picture(running: Running) -> None:
    """With the reason, and how old it is; it is asked for again."""
    async with served(ui.app(running)) as server, top_of(server.port) as pilot:
        server.should_exit = True
        app = pilot.app
        assert isinstance(app, Top)
        await until(pilot, lambda: not server.started or not server.servers[0].is_serving())
        while not app.seen.trouble:
            await app.look()
        assert "does not answer" in text_of(pilot, "trouble")
        assert "this is the picture of " in text_of(pilot, "trouble")
        assert names_of(pilot) == ["source", "check", "look-up", EVIL]


@in_a_loop
async def test_a_topology_that_ends_beside_others_stays_chosen(running: Running) -> None:
    """Its last picture stays, too; another one comes when it is asked for, and the same one when it is there again."""
    topology = Topology("other")
    topology.bolt("print", print_nothing, topology.spout("feed").shuffle())
    page = ui.app()
    async with topology.run() as other, served(page) as server:
        with page.showing(running):
            top = top_of(server.port)
            pilot = await top.__aenter__()
            app = pilot.app
            assert isinstance(app, Top)
            page.show(other)
        while not app.seen.trouble:
            await app.look()
        assert text_of(pilot, "trouble").startswith(
            "the topology is gone: there is no topology 'busy'; there are other; t leads to another one; "
            "this is the picture of "
        )
        await app.look()
        assert names_of(pilot) == ["source", "check", "look-up", EVIL]
        with page.showing(running):
            await until(pilot, lambda: not app.seen.trouble)
            assert app.seen.topology == "busy"
        await pilot.press("t")
        await until(pilot, lambda: names_of(pilot) == ["feed", "print"])
        await top.__aexit__(None, None, None)


@in_a_loop
async def test_a_component_of_a_topology_that_is_gone_is_no_other_one(running: Running) -> None:
    """It has the figures of the last picture, and nothing of the component that was opened before."""
    topology = Topology("other")
    topology.bolt("print", print_nothing, topology.spout("feed").shuffle())
    page = ui.app()
    page.show(running)
    async with topology.run() as other, served(page) as server, top_of(server.port) as pilot:
        with page.showing(other):
            await pilot.press("down", "enter")
            await until(pilot, lambda: bool(rows_of(pilot, "errors")))
            await pilot.press("escape", "t")
            await until(pilot, lambda: names_of(pilot) == ["feed", "print"])
        app = pilot.app
        assert isinstance(app, Top)
        await until(pilot, lambda: bool(app.seen.trouble))
        await pilot.press("down", "enter")
        assert text_of(pilot, "facts").partition("  ")[0][2:] == "print"
        assert "print[0]" not in text_of(pilot, "facts")
        assert rows_of(pilot, "tasks") == rows_of(pilot, "errors") == []
        assert text_of(pilot, "traceback") == ""
        assert text_of(pilot, "failures") == "Its tasks and errors were not told yet."


@in_a_loop
async def test_a_spout_whose_messages_fail_elsewhere_has_no_errors_of_its_own() -> None:
    """It does not say that nothing has failed."""
    async with busy(max_attempts=100).run() as running:
        async with top_on(running) as pilot:
            await pilot.press("enter")
            await until(pilot, lambda: "has failed in this window" in text_of(pilot, "facts"))
            await until(pilot, lambda: text_of(pilot, "failures") == "No errors of its own.")
            assert [row[0][2:] for row in rows_of(pilot, "tasks")] == ["source[0]"]
        running.stop()
        running.stop()


@in_a_loop
async def test_a_token_that_is_missing_or_wrong_is_asked_for(running: Running) -> None:
    """By the name of the variable, and without the one that was given."""
    async with served(ui.app(running, token=TOKEN)) as server:
        for text, words in {
            "": "needs a token: set STORMLET_UI_TOKEN",
            "#token=wrong": "refuses the token",
        }.items():
            with pytest.raises(Unanswered, match=words) as raised:
                await Server(read_address(f"{server.port}{text}", {})).ask("api/v1/pages")
            assert "wrong" not in str(raised.value)
        assert await Server(read_address(f"{server.port}#token={TOKEN}", {})).ask("api/v1/pages")


def test_it_says_that_nobody_answers(capsys: pytest.CaptureFixture[str]) -> None:
    """Before the terminal is taken."""
    assert main(["top", "127.0.0.1:9"]) == 1
    assert capsys.readouterr().err == "stormlet: http://127.0.0.1:9/ does not answer: Connection refused\n"


@in_a_loop
async def test_it_needs_a_terminal_to_draw_on(
    running: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Which is that of standard error: the screen would stay black."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    async with served(ui.app(running)) as server:
        assert await asyncio.to_thread(main, ["top", str(server.port)]) == 2
    assert "top draws on standard error, which is no terminal here; leave '2>' out" in capsys.readouterr().err


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Where textual is missing."""
    monkeypatch.setattr("stormlet.cli.top.find_spec", lambda name: None)
    assert main(["top"]) == 2
    assert "top needs textual: pip install 'stormlet[top]'" in capsys.readouterr().err
