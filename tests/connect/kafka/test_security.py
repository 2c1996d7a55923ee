"""Passwords and certificates: right ones are taken, wrong ones fail the start by name, and no password shows."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from stormlet.connect.kafka import Security
from stormlet.connect.secrets import Secret
from stormlet.errors import BrokerRefused, ConnectorError, InvalidTopology
from tests.brokers.processes import HOST
from tests.connect.kafka.cluster import Cluster, connected, read
from tests.connect.kafka.servers import PASSWORD, SecureKafka

pytestmark = pytest.mark.asyncio


@pytest.fixture(scope="module")
def cluster(secure: SecureKafka) -> Iterator[Cluster]:
    """A cluster whose user alice has a password for SCRAM, too."""
    servers = f"{HOST}:{secure.port}"
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    admin = AdminClient({"bootstrap.servers": servers})
    made = admin.alter_user_scram_credentials(
        [UserScramCredentialUpsertion("alice", info, PASSWORD.encode())]
    )
    made["alice"].result(30)
    with closing(Cluster(servers)) as cluster:
        yield cluster


def url(port: int, password: str = PASSWORD, scheme: str = "kafka") -> str:
    """Alice's address."""
    return f"{scheme}://alice:{quote(password, safe='')}@{HOST}:{port}"


async def test_a_user_has_a_password(cluster: Cluster, secure: SecureKafka) -> None:
    """By SCRAM, which does not send it; by PLAIN only with TLS, or where that is allowed."""
    topic = cluster.topic()
    cluster.fill(topic, range(1))
    tls = Security(ca=str(secure.ca), sasl="PLAIN")
    clear = Security(sasl="PLAIN", insecure=True)
    for where, security in [
        (url(secure.sasl), None),
        (url(secure.sasl), clear),
        (url(secure.both, scheme="kafkas"), tls),
    ]:
        async with connected(cluster, topic, url=where, security=security) as session:
            assert len(await read(session, 1)) == 1


async def test_tls_without_a_password(cluster: Cluster, secure: SecureKafka) -> None:
    """The certificate is verified."""
    topic = cluster.topic()
    cluster.fill(topic, range(1))
    where = f"kafkas://{HOST}:{secure.tls}"
    async with connected(cluster, topic, url=where, security=Security(ca=str(secure.ca))) as session:
        assert len(await read(session, 1)) == 1
    with pytest.raises(BrokerRefused, match="certificate verify failed"):
        async with connected(cluster, topic, url=where):
            pass


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
async def test_a_wrong_password_fails_the_start(
    cluster: Cluster, secure: SecureKafka, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The error names the broker, and nothing shows the password."""
    caplog.set_level(0)
    where, wrong = url(secure.sasl, "wr0ng/pass"), Security(sasl=mechanism, insecure=True)  # type: ignore[arg-type]
    with pytest.raises(BrokerRefused, match=f"kafka://alice:\\*\\*\\*@{HOST}") as caught:
        async with connected(cluster, "orders", url=where, security=wrong):
            pass
    shown = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert "wr0ng" not in shown


async def test_a_password_does_not_go_in_the_clear(cluster: Cluster, secure: SecureKafka) -> None:
    """Unless somebody says so."""
    with pytest.raises(InvalidTopology, match="in the clear") as caught:
        async with connected(cluster, "orders", url=url(secure.sasl), security=Security(sasl="PLAIN")):
            pass
    assert PASSWORD not in str(caught.value)


async def test_settings_of_the_client_may_be_secret(cluster: Cluster, secure: SecureKafka) -> None:
    """They do not show either."""
    options = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": Secret("wr0ng"),
    }
    with pytest.raises(ConnectorError) as caught:
        async with connected(cluster, "orders", url=f"kafka://{HOST}:{secure.sasl}", client=options):
            pass
    assert "wr0ng" not in str(caught.value)
