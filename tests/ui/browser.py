"""A real browser, for tests of the page: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP evil.example 127.0.0.1",
]  # fmt: skip


def missing() -> str:
    """Return what the tests need and is not there; empty if all is."""
    if find_spec("playwright") is None:
        return "playwright: pip install 'stormlet[ui-test]'"
    return "" if CHROMIUM.exists() else "chromium: apt-get install chromium"


def check() -> None:
    """Skip the test where the browser is missing; in CI, fail."""
    if why := missing():
        if "CI" in os.environ:
            pytest.fail(f"tests of the page need {why}")
        pytest.skip(f"needs {why}")


@asynccontextmanager
async def launched() -> AsyncIterator[Any]:
    """A browser, as long as the block lasts."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        try:
            yield browser
        finally:
            await browser.close()


class Look:
    """One page of the browser, and all that its console said."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.console: list[str] = []
        page.on("console", lambda message: self.console.append(message.text))
        page.on("pageerror", lambda error: self.console.append(f"error: {error}"))

    async def text(self, selector: str) -> str:
        """Return the text of the first element that fits."""
        return str(
            await self.page.locator(selector).first.evaluate("each => each.innerText ?? each.textContent")
        )

    async def until(self, condition: str) -> None:
        """Wait until a condition in JavaScript holds; Playwright's own way to wait for one is against the policy."""
        async with asyncio.timeout(60):
            while not await self.page.evaluate(condition):  # noqa: ASYNC110
                await asyncio.sleep(0.05)


@asynccontextmanager
async def looking(browser: Any, address: str, *, quiet: bool = True, **context: Any) -> AsyncGenerator[Look]:
    """Open a page. If ``quiet``, its console must have said nothing at the end: no error, and no breach of the
    policy."""
    opened = await browser.new_context(**{"viewport": {"width": 1400, "height": 1000}, **context})
    look = Look(await opened.new_page())
    try:
        await look.page.goto(address)
        yield look
        if quiet:
            assert look.console == []
    finally:
        await opened.close()
