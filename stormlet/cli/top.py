"""The ``top`` command: a run in the terminal, by the REST of its page."""

from __future__ import annotations

import asyncio
import os
import sys
from importlib.util import find_spec

from stormlet.cli.errors import FAILED
from stormlet.cli.terminal.address import USUAL, read_address
from stormlet.cli.terminal.asking import Server, Unanswered
from stormlet.errors import InvalidConfiguration

EXAMPLES = """\
stormlet top
stormlet top 8081
stormlet top 'https://orders.example/topologies/#token=TOKEN'"""


def top(url: str = USUAL, /) -> int:
    """Watch a run in this terminal, by the page that run --ui or stormlet.ui.app serves.

    Parameters
    ----------
    url
        A port of this machine, HOST:PORT, or the address of the page. The token is that of the address, else that of
        STORMLET_UI_TOKEN.
    """
    check_installed()
    from stormlet.cli.terminal.app import Top

    server = Server(read_address(url, os.environ))
    try:
        asyncio.run(server.ask("api/v1/pages"))
    except Unanswered as error:
        print(f"stormlet: {error}", file=sys.stderr)
        return FAILED
    if not sys.stdout.isatty():
        raise InvalidConfiguration("top needs a terminal; elsewhere, ask the REST, or 'run --json-summary'")
    if not sys.stderr.isatty():
        raise InvalidConfiguration("top draws on standard error, which is no terminal here; leave '2>' out")
    Top(server).run()
    return 0


def check_installed() -> None:
    """Raise :class:`~stormlet.errors.InvalidConfiguration` if textual is missing."""
    if find_spec("textual") is None:
        raise InvalidConfiguration("top needs textual: pip install 'stormlet[top]'")
