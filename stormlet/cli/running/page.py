"""The page of a run: its options, and its server beside the run."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from socket import socket
from typing import TYPE_CHECKING, Final

from stormlet.errors import InvalidConfiguration

if TYPE_CHECKING:
    from collections.abc import Callable

    from stormlet.ui import App

TOKEN: Final = "STORMLET_UI_TOKEN"
"""The environment variable that has the token: on the command line, everybody on the machine could read it."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page, and the socket that it will be at."""

    app: App
    listener: socket
    fragment: str
    """The end of its address, which hands the token to the page."""
    origins: Mapping[str, str]

    @asynccontextmanager
    async def served(self, say: Callable[[str], object]) -> AsyncGenerator[None]:
        """Serve it in the block, and say where."""
        from stormlet.ui.server import serving

        async with serving(self.app, self.listener) as address:
            say(f"page: {address}{self.fragment}")
            yield


def open_page(
    ui: str | None, *, values: bool, control: bool, hosts: tuple[str, ...], origins: Mapping[str, str]
) -> Page | None:
    """Return the page that the options ask for; None if they do not.

    Raises :class:`~stormlet.errors.InvalidConfiguration` for an address that cannot be, one that is open to others
    without a token, and options without ``--ui``.
    """
    if ui is None:
        for option, given in {
            "--ui-show-values": values,
            "--ui-control": control,
            "--ui-host": hosts,
        }.items():
            if given:
                raise InvalidConfiguration(f"{option} is for the page; add --ui PORT")
        return None
    check_installed("--ui")
    from stormlet.ui import app
    from stormlet.ui.server import check_bind, listening, read_bind

    bind = read_bind(ui, "--ui")
    token = os.environ.get(TOKEN) or None
    check_bind(
        bind,
        token,
        f"set {TOKEN} to a long random text, or leave the address out to have it for this machine alone",
    )
    made = secrets.token_urlsafe() if control and token is None else None
    page = app(token=token or made, hosts=hosts, show_values=values, changes=control)
    fragment = f"#token={made}" if made else f"#token=${TOKEN}" if token else ""
    return Page(page, listening(bind), fragment, origins)


def check_installed(what: str) -> None:
    """Raise :class:`~stormlet.errors.InvalidConfiguration` if the packages of the page are missing."""
    if any(find_spec(each) is None for each in ("starlette", "uvicorn")):
        raise InvalidConfiguration(f"{what} needs Starlette and uvicorn: pip install 'stormlet[ui]'")
