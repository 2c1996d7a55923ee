"""A snapshot: all that the page shows, in a file that opens later."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from stormlet import Running, ui
from stormlet.cli import main
from stormlet.ui.app import recorded_app
from stormlet.ui.snapshot import Recorded, read_snapshot
from tests.ui.kit import EVIL, asked, busy, until_busy


async def saved(running: Running, path: Path) -> dict[str, Any]:
    """Save a snapshot; return the values of a page at that moment."""
    async with asked(ui.app(running)) as client:
        path.write_bytes((await client.get("/api/v1/snapshot.json")).content)  # noqa: ASYNC240 - a test has time
        change = await client.get(
            "/api/v1/pages/busy/changes", params={"view": "component", "component": EVIL}
        )
        return dict(change.json()["values"])


@pytest.mark.asyncio
async def test_a_snapshot_shows_what_was_there(tmp_path: Path) -> None:
    """Its pages are those of the run, with the time when they were taken; and nothing is asked for again."""
    path = tmp_path / "snapshot.json"
    async with busy().run(dead_letters=lambda letter: None, seed=1) as running:
        await until_busy(running, 10)
        running.deactivate()
        values = await saved(running, path)
        running.stop()
        running.stop()
    async with asked(recorded_app(Recorded(read_snapshot(path)))) as client:
        assert (await client.get("/api/v1/pages")).json() == [
            {"id": "busy", "name": "busy", "state": "inactive"}
        ]
        change = (
            await client.get("/api/v1/pages/busy/changes", params={"view": "component", "component": EVIL})
        ).json()
        assert change["pollSeconds"] is None
        assert change["values"].pop("taken")
        assert change["values"].keys() == values.keys()
        assert change["values"]["facts"] == values["facts"]
        assert len((await client.get("/api/v1/pages/busy/graph")).json()["nodes"]) == 4
        for view in ("errors", "trees", "letters", "settings"):
            shown = await client.get("/api/v1/pages/busy/changes", params={"view": view, "window": "1h"})
            assert {"about", "c/check"} < shown.json()["values"].keys()
        missing = await client.get(
            "/api/v1/pages/busy/changes", params={"view": "component", "component": "x"}
        )
        assert missing.json()["errorMessage"] == "the snapshot has no page of 'x'"
        assert (await client.get("/api/v1/pages/other/graph")).status_code == 404


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no json", "is no snapshot of the page"),
        ('{"a": 1}', "is no snapshot of the page"),
        ('{"snapshot": 99, "taken": "2026-01-01T00:00:00Z", "topologies": []}', "of another version"),
        (None, "cannot be read: No such file"),
    ],
)
def test_what_is_no_snapshot_is_refused(
    text: str | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the reason."""
    path = tmp_path / "snapshot.json"
    if text is not None:
        path.write_text(text, "utf-8")
    assert main(["view", str(path)]) == 2
    assert words in capsys.readouterr().err


def test_it_is_opened_for_this_machine_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No token would make up for that."""
    path = tmp_path / "snapshot.json"
    path.write_text('{"snapshot": 1, "taken": "2026-01-01T00:00:00Z", "topologies": []}', "utf-8")
    assert main(["view", str(path), "--ui", "0.0.0.0:0"]) == 2
    words = "leave the address out, as a snapshot is shown to this machine alone\n"
    assert capsys.readouterr().err.endswith(words)


def test_it_opens_in_a_browser_until_ctrl_c(tmp_path: Path) -> None:
    """``stormlet view FILE`` says where."""
    path = tmp_path / "snapshot.json"
    path.write_text('{"snapshot": 1, "taken": "2026-01-01T00:00:00Z", "topologies": []}', "utf-8")
    command = [sys.executable, "-m", "stormlet", "view", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        try:
            assert run.stderr is not None
            found = re.search(r"page: (http://127\.0\.0\.1:\d+/)\n", run.stderr.readline())
            assert found is not None
            assert "stormlet" in httpx.get(found[1], trust_env=False).text
            run.send_signal(signal.SIGINT)
            assert run.wait(60) == 0
        finally:
            run.kill()
