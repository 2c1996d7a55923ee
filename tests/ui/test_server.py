"""The server beside a run, over real sockets, and the options of ``run`` that start it."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from stormlet import ui
from stormlet.cli import main
from stormlet.errors import InvalidConfiguration
from stormlet.ui.server import Bind, check_bind, listening, read_bind, serving
from tests.cli.flows import write
from tests.helpers import until
from tests.ui.kit import TOKEN, busy, served, until_busy

ENDLESS = """
    async def numbers():
        import asyncio
        for number in range(10**9):
            yield number
            await asyncio.sleep(0.001)
    topology = Topology("endless")
    topology.bolt("print", str, topology.spout("numbers", numbers).shuffle())
    """
in_a_loop = pytest.mark.asyncio


@pytest.mark.parametrize(
    ("text", "bind"),
    [
        ("8080", Bind("127.0.0.1", 8080)),
        ("0.0.0.0:80", Bind("0.0.0.0", 80)),
        ("[::1]:0", Bind("::1", 0)),
        ("a.example:65535", Bind("a.example", 65_535)),
    ],
)
def test_a_port_is_enough(text: str, bind: Bind) -> None:
    """Without an address it is one of this machine alone."""
    assert read_bind(text, "--ui") == bind


@pytest.mark.parametrize("text", ["", "x", ":80", "host:", "65536", "-1", "1.5", "a:b", "٣"])
def test_what_is_no_port_is_refused(text: str) -> None:
    """With an example of what is one."""
    with pytest.raises(InvalidConfiguration, match=r"such as 8080 or 0\.0\.0\.0:8080"):
        read_bind(text, "--ui")


@pytest.mark.parametrize("text", ["::1", "::", "::1:8080", "fe80::1:80", "[::1:80", "::1]:80"])
def test_an_address_with_colons_needs_brackets(text: str) -> None:
    """Else its end is taken for the port."""
    with pytest.raises(
        InvalidConfiguration, match=r"--ui \S+: write a port, .* in brackets, as in \[::1\]:8080"
    ):
        read_bind(text, "--ui")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "a.example"])
def test_a_page_for_others_needs_a_token(host: str) -> None:
    """It is refused before anything starts."""
    check_bind(Bind(host, 1), TOKEN, "set it")
    with pytest.raises(InvalidConfiguration, match=r"works on; set it$"):
        check_bind(Bind(host, 1), None, "set it")


def test_a_port_in_use_is_named() -> None:
    """And the way out."""
    words = "another program is there; choose another port, or 0"
    with listening(Bind("127.0.0.1", 0)) as taken, pytest.raises(InvalidConfiguration, match=words):
        listening(Bind("127.0.0.1", taken.getsockname()[1]))


@pytest.mark.parametrize(
    ("host", "words"),
    [("no.such.host.invalid", "no such address"), ("203.0.113.7", "does not have that address")],
)
def test_an_address_that_cannot_be_is_named(host: str, words: str) -> None:
    """A name that means nothing, and an address of another machine."""
    with pytest.raises(InvalidConfiguration, match=words):
        listening(Bind(host, 0))


@in_a_loop
async def test_the_end_of_the_server_waits_for_no_page() -> None:
    """Ten pages ask again and again over lines that they keep."""
    answered = [0] * 10
    async with busy().run(dead_letters=lambda letter: None) as running:
        await until_busy(running, 5)
        async with asyncio.timeout(60), served(ui.app(running)) as server:
            address = f"http://127.0.0.1:{server.port}/api/v1/pages/busy/changes"
            asking = [asyncio.create_task(_ask(address, answered, page)) for page in range(10)]
            await until(lambda: min(answered) > 1)
        for each in asking:
            each.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        running.stop()
        running.stop()


async def _ask(address: str, answered: list[int], page: int) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        while True:
            (await client.get(address)).raise_for_status()
            answered[page] += 1
            await asyncio.sleep(0.05)


@in_a_loop
async def test_the_server_of_a_run_leaves_signals_alone() -> None:
    """They belong to the run, which drains."""
    before = signal.getsignal(signal.SIGTERM)
    async with serving(ui.app(), listening(Bind("127.0.0.1", 0))) as address:
        async with httpx.AsyncClient(trust_env=False) as client:
            assert (await client.get(f"{address}healthz")).json() == {"healthy": True}
        assert signal.getsignal(signal.SIGTERM) is before


def test_a_run_has_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``run --ui 0`` says where it is, and it is there until the run has ended by a signal."""
    monkeypatch.chdir(tmp_path)
    write(ENDLESS)
    command = [sys.executable, "-m", "stormlet", "run", "flow.py", "--ui", "0", "--set", "queue_capacity=7"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        try:
            assert run.stderr is not None
            found = re.search(r"page: (http://127\.0\.0\.1:\d+/)\n", run.stderr.readline())
            assert found is not None
            address = f"{found[1]}api/v1/pages/endless/changes?view=settings"
            while (response := httpx.get(address, trust_env=False)).status_code == 404:
                time.sleep(0.02)
            (option,) = (
                each for each in response.json()["values"]["settings"] if each["option"] == "queue_capacity"
            )
            assert option == {"component": "", "option": "queue_capacity", "value": 7, "origin": "--set"}
            run.send_signal(signal.SIGTERM)
            assert run.wait(60) == 128 + signal.SIGTERM
        finally:
            run.kill()
            run.stderr.close()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--ui", "0.0.0.0:0"], "set STORMLET_UI_TOKEN to a long random text"),
        (["--ui", "x"], "--ui x: write a port"),
        (["--ui-control"], "--ui-control is for the page; add --ui PORT"),
        (["--ui-host", "a"], "--ui-host is for the page"),
        (["--ui", "0", "--engine", "spark"], "--ui"),
    ],
)
def test_options_that_cannot_be_are_refused(
    options: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before anything starts, with the way out."""
    monkeypatch.chdir(tmp_path)
    write(ENDLESS)
    assert main(["run", "flow.py", *options]) == 2
    assert words in capsys.readouterr().err


def test_a_token_of_the_environment_is_taken_and_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The address that is printed names the variable."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STORMLET_UI_TOKEN", TOKEN)
    write(ENDLESS)
    assert main(["run", "flow.py", "--ui", "0.0.0.0:0", "--duration", "0.1"]) == 0
    told = capsys.readouterr().err
    assert re.search(r"page: http://0\.0\.0\.0:\d+/#token=\$STORMLET_UI_TOKEN\n", told)
    assert TOKEN not in told


def test_buttons_come_with_a_token_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It stands in the address that is printed."""
    monkeypatch.chdir(tmp_path)
    write(ENDLESS)
    assert main(["run", "flow.py", "--ui", "0", "--ui-control", "--duration", "0.1"]) == 0
    assert re.search(r"page: http://127\.0\.0\.1:\d+/#token=[\w-]{20,}\n", capsys.readouterr().err)


def test_the_packages_of_the_page_are_named_where_they_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the command that installs them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("stormlet.cli.running.page.find_spec", lambda name: None)
    write(ENDLESS)
    assert main(["run", "flow.py", "--ui", "0"]) == 2
    assert "pip install 'stormlet[ui]'" in capsys.readouterr().err
