"""The ``view`` command: a snapshot of the page, opened later."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from stormlet.cli.running.page import check_installed

if TYPE_CHECKING:
    from stormlet.ui.snapshot import Snapshot

EXAMPLES = """\
stormlet view orders-2026-11-25T034500.json
stormlet view snapshot.json --ui 8081"""


def view(
    file: Annotated[Path, Parameter(show_default=False)],
    /,
    *,
    ui: Annotated[str, Parameter(metavar="[HOST:]PORT")] = "0",
) -> int:
    """Open a snapshot that was saved from the page of a run, in a browser, until Ctrl-C.

    Parameters
    ----------
    file
        What the button "snapshot" has saved, or api/v1/snapshot.json of the page.
    ui
        The port of this machine; any that is free by default.
    """
    check_installed("view")
    from stormlet.ui.snapshot import read_snapshot

    snapshot = read_snapshot(file)
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(snapshot, ui))
    return 0


async def _serve(snapshot: Snapshot, ui: str) -> None:
    from stormlet.ui.app import recorded_app
    from stormlet.ui.server import check_bind, listening, read_bind, serving
    from stormlet.ui.snapshot import Recorded

    bind = read_bind(ui, "--ui")
    check_bind(bind, None, "leave the address out, as a snapshot is shown to this machine alone")
    async with serving(recorded_app(Recorded(snapshot)), listening(bind)) as address:
        print(f"page: {address}", file=sys.stderr, flush=True)
        await asyncio.Event().wait()
