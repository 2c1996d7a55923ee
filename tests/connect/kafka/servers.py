"""Kafka with other listeners: behind a proxy, and with passwords and certificates."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.brokers.processes import HOST, free_ports
from tests.brokers.proxy import Proxy
from tests.brokers.servers import Kafka

PASSWORD = "s3cr3t%/of alice"


def listen(kafka: Kafka, lines: Sequence[str], **listeners: tuple[str, int, int]) -> None:
    """Add listeners: for each name a protocol, a port, and the port that clients are told."""
    file = kafka.folder / "server.properties"
    settings = dict(line.split("=", 1) for line in file.read_text().splitlines())
    told = [each for each in settings["listeners"].split(",") if "CONTROLLER" not in each]
    for name, (protocol, port, advertised) in listeners.items():
        settings["listeners"] += f",{name}://{HOST}:{port}"
        settings["listener.security.protocol.map"] += f",{name}:{protocol}"
        told.append(f"{name}://{HOST}:{advertised}")
    settings["advertised.listeners"] = ",".join(told)
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()) + "\n".join(lines))


PROXIED = [
    "auto.create.topics.enable=false",
    "group.consumer.min.session.timeout.ms=6000",
    "group.consumer.session.timeout.ms=6000",
    "log.cleaner.backoff.ms=100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms=200",
]


class ProxiedKafka(Kafka):
    """Kafka that tells its clients to come by a proxy."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (port,) = free_ports(1)
        self.proxy = Proxy(port)
        self.proxy.__enter__()
        self.servers = f"{HOST}:{self.proxy.port}"
        listen(self, PROXIED, PROXY=("PLAINTEXT", port, self.proxy.port))

    def close(self) -> None:
        super().close()
        self.proxy.__exit__()


class SecureKafka(Kafka):
    """Kafka with a listener for passwords, one for TLS, and one for both."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.sasl, self.tls, self.both = free_ports(3)
        self.ca = folder / "ca.pem"
        make_certificate(folder)
        password = PASSWORD.replace('"', '\\"')
        module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        lines = [
            "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512",
            "ssl.keystore.type=PEM",
            f"ssl.keystore.location={folder / 'server.pem'}",
        ]
        for name in ("sasl", "both"):
            lines += [
                f'listener.name.{name}.plain.sasl.jaas.config={module} user_alice="{password}";',
                f"listener.name.{name}.scram-sha-512.sasl.jaas.config={scram}",
            ]
        listen(
            self,
            lines,
            SASL=("SASL_PLAINTEXT", self.sasl, self.sasl),
            TLS=("SSL", self.tls, self.tls),
            BOTH=("SASL_SSL", self.both, self.both),
        )


def make_certificate(folder: Path) -> None:
    """Write ``ca.pem``, an authority that is its own server, and ``server.pem``, with the key."""
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout key.pem -out ca.pem -subj /CN=test -addext"
    )
    subprocess.run(
        [*command.split(), f"subjectAltName=IP:{HOST}"], cwd=folder, check=True, capture_output=True
    )
    (folder / "server.pem").write_text((folder / "key.pem").read_text() + (folder / "ca.pem").read_text())
