"""Keys as what a server is told of its client: nkeys, credentials files, certificates; and none of them is shown."""

from __future__ import annotations

import logging
import subprocess
import traceback
from collections.abc import Iterator
from pathlib import Path
from time import time

import nkeys
import pytest

from stormlet import StartFailed, Topology
from stormlet.connect import nats
from stormlet.connect.address import SETTINGS, found_address
from stormlet.connect.nats.connection import Connection, Tls
from stormlet.connect.secrets import Secret, scrubbed
from tests.brokers.processes import HOST
from tests.brokers.servers import Nats
from tests.cast import Note
from tests.connect.nats.keys import Operator, key, public, seed
from tests.connect.nats.starts import configured, connects, refusal

# ruff: noqa: ASYNC221, ASYNC240 - these tests write files before others read them
pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

KEY = key()


@pytest.fixture(scope="module")
def keyed() -> Iterator[Nats]:
    """A NATS that knows a key."""
    with configured(f"authorization {{ users: [{{nkey: {public(KEY)}}}] }}") as server:
        yield server


@pytest.fixture(scope="module")
def operator() -> Operator:
    """Who says which users there are."""
    return Operator()


@pytest.fixture(scope="module")
def operated(operator: Operator) -> Iterator[Nats]:
    """A NATS that trusts an operator."""
    with configured(operator.configuration) as server:
        yield server


@pytest.fixture
def file(operator: Operator, tmp_path: Path) -> Path:
    """A credentials file."""
    (tmp_path / "app.creds").write_text(operator.user())
    return tmp_path / "app.creds"


async def test_an_nkey(keyed: Nats) -> None:
    """Its seed is written as a token, in the URL or beside it."""
    assert await connects(f"nats://:{seed(KEY)}@{HOST}:{keyed.port}")
    assert await connects(keyed.url, password=Secret(seed(KEY)))


async def test_another_nkey_is_refused(keyed: Nats) -> None:
    """And its seed is not shown."""
    other = seed(key())
    said = await refusal(f"nats://:{other}@{HOST}:{keyed.port}")
    assert "wrong user, password, token or key" in said
    assert other not in said


async def test_a_seed_of_something_else_is_a_token(keyed: Nats) -> None:
    """Which this server does not know."""
    account = seed(key(nkeys.PREFIX_BYTE_ACCOUNT))
    assert "wrong user" in await refusal(keyed.url, Secret(account))


async def test_a_credentials_file(operated: Nats, file: Path) -> None:
    """It is named by the URL, or is the password, as of a file with Windows' ends of lines."""
    assert await connects(f"{operated.url}?creds={file}")
    assert await connects(operated.url, password=Secret.from_file(file))
    assert await connects(operated.url, password=Secret(file.read_text().replace("\n", "\r\n")))


async def test_the_toml_file_and_the_environment_have_keys(
    operated: Nats, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they have passwords."""
    monkeypatch.setenv("STORMLET_CONNECT_ORDERS_URL", f"{operated.url}?creds={file}")
    monkeypatch.setitem(SETTINGS, "bills", {"url": operated.url, "password_file": str(file)})
    for component in ("orders", "bills"):
        connection = Connection(found_address(component, None))
        await connection.open("test", Tls())
        await connection.close()


async def test_credentials_are_read_again_for_each_connection(
    operated: Nats, operator: Operator, file: Path
) -> None:
    """As others renew them."""
    old = file.read_text()
    file.write_text(operator.user(ends=int(time()) - 1))
    assert "wrong user" in await refusal(url := f"{operated.url}?creds={file}")
    file.write_text(old)
    assert await connects(url)


async def test_credentials_that_are_none(operated: Nats, file: Path) -> None:
    """A file that is missing, of something else, or without its seed is named; its text is not shown."""
    whole = file.read_text()
    file.write_text(whole.replace("SU", "SA"))
    assert "no seed of a user" in await refusal(f"{operated.url}?creds={file}")
    file.write_text("password")
    said = await refusal(f"{operated.url}?creds={file}")
    assert f"{file} is no credentials file" in said
    said = await refusal(f"{operated.url}?creds={file}x")
    assert f"the credentials file {file}x cannot be read: No such file or directory" in said


async def test_without_the_package_of_keys(keyed: Nats, monkeypatch: pytest.MonkeyPatch) -> None:
    """The start says what brings it; a token needs none."""
    monkeypatch.setattr("stormlet.connect.nats.login.find_spec", lambda name: None)
    said = await refusal(keyed.url, Secret(seed(KEY)))
    assert "pip install 'stormlet[nats]'" in said
    assert "wrong user" in await refusal(keyed.url, Secret("token"))


async def test_a_line_of_a_secret_file_is_a_secret(file: Path) -> None:
    """In whatever somebody says of it."""
    secret = Secret.from_file(file)
    jwt, key = [line for line in secret.reveal().splitlines() if line.startswith(("ey", "SU"))]
    assert scrubbed(f"no {key} of {jwt}", [secret]) == "no *** of ***"


@pytest.mark.parametrize("what", ["nkey", "credentials"])
async def test_no_key_is_shown(
    what: str, keyed: Nats, operated: Nats, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither of a run nor of a start that fails: in health, the description, logs and tracebacks."""
    caplog.set_level(logging.DEBUG)
    password = Secret(seed(KEY)) if what == "nkey" else Secret.from_file(file)
    right, wrong = (keyed, operated) if what == "nkey" else (operated, keyed)
    seen: list[str] = []
    for server in (right, wrong):
        topology = Topology("reading", max_restarts=0)
        source = nats.Stream(server.url, "S", consumer="c", create=["s.>"], as_=str, password=password)
        topology.bolt("note", Note, topology.spout("orders", source).shuffle())
        seen += [repr(source), repr(topology.describe())]
        try:
            async with topology.run() as running:
                seen += [repr(running.health()), repr(running.statistics())]
            assert server is right
        except StartFailed as error:
            seen += traceback.format_exception(error)
            assert server is wrong
    text = "\n".join([*seen, caplog.text])
    keys = [line for line in password.reveal().splitlines() if len(line) > 50 and " " not in line]
    assert keys
    assert not [key for key in keys if key in text]


async def test_a_client_has_a_certificate(certificate: tuple[str, str]) -> None:
    """Which the server asks for; one that cannot be read is named."""
    known = f'tls {{ cert_file: "{certificate[0]}", key_file: "{certificate[1]}", ca_file: "{certificate[0]}"'
    with configured(f"{known}, verify: true }}") as server:
        url = f"tls://{HOST}:{server.port}"
        tls = Tls(ca_file=certificate[0], certificate=certificate[0], key=certificate[1])
        assert await connects(url, tls)
        # Although the server hangs up behind its alert, which a client on a busy machine has rarely read by then.
        said = [await refusal(url, ca_file=certificate[0]) for _ in range(5)]
        assert all("certificate required" in each or "certificate= and key=" in each for each in said), said
        unreadable = await refusal(url, ca_file=certificate[0], certificate="none.pem")
        assert f"{certificate[0]} or none.pem cannot be used" in unreadable


async def test_an_encrypted_key_asks_nobody(certificate: tuple[str, str], tmp_path: Path) -> None:
    """It is refused: the client would ask the terminal."""
    locked = tmp_path / "key.pem"
    lock = ["openssl", "rsa", "-aes256", "-passout", "pass:x1234", "-in", certificate[1], "-out", str(locked)]
    subprocess.run(lock, check=True, capture_output=True)
    said = await refusal(f"tls://{HOST}:1", certificate=certificate[0], key=str(locked))
    assert f"{locked} cannot be used" in said
