"""Addresses: how URLs are read, where they are written, and twins in their stead."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Callable
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stormlet import InvalidConfiguration, InvalidTopology, StartFailed, Topology
from stormlet.cli.parameters import effective_settings, misnamed_connections, warn_of_ignored
from stormlet.connect import http, kafka, kestrel, nats, postgres, rabbitmq, redis
from stormlet.connect.address import SETTINGS, found_address, read_address
from stormlet.connect.secrets import Secret
from stormlet.connect.source import Source
from stormlet.testing.brokers import twin


def test_the_parts_of_a_url() -> None:
    """Several hosts, a path, options; the password is kept apart."""
    address = read_address("kafka://ann:p%40ss@k1,k2:9093,[::1]:9094/a%20b?tls=1&acks=all", where="test")
    assert address.hosts == (("k1", None), ("k2", 9093), ("::1", 9094))
    assert (address.servers, address.path) == ("k1,k2:9093,[::1]:9094", "a b")
    assert (address.user, address.password) == ("ann", Secret("p@ss"))
    assert address.options == {"tls": "1", "acks": "all"}
    assert (address.host, address.port) == ("k1", None)


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("kafka://[::1],[::2]:9093", (("::1", None), ("::2", 9093))),
        ("kafka://k1,[::1]/a", (("k1", None), ("::1", None))),
        ("kafka://ann:p@[::1]:9092,k2", (("::1", 9092), ("k2", None))),
    ],
)
def test_each_host_may_be_an_address(url: str, hosts: object) -> None:
    """Wherever it stands; each has a port of its own."""
    assert read_address(url, where="test").hosts == hosts


@pytest.mark.parametrize(
    ("url", "password"),
    [
        ("amqp://ann:s[e]c@mq/shop", "s[e]c"),
        ("amqp://ann:s]e[c@[::1]:5672/shop", "s]e[c"),
        ("amqp://ann:s%5Be@mq/shop", "s[e"),
    ],
)
def test_brackets_of_a_password_are_no_address(url: str, password: str) -> None:
    """Python takes them for those of a host, and refused the URL without a word of them."""
    address = read_address(url, where="test")
    assert (address.user, address.password) == ("ann", Secret(password))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mq",
        "amqp://",
        "amqp://:x:y@[::1",
        "amqp://mq,[::1",
        "amqp:a//mq",
        "amqp://mq:port",
        "ann:secret@mq/shop",
        "amqp://ann:1/secret@mq/shop",
        "amqp://ann:p@1/secret@mq/shop",
        "amqp://ann:1#secret@mq/shop",
        "amqp://ann:1?secret@mq/shop",
        "amqp://ann:1?sec=ret@mq/shop",
        "amqp://ann:p@secret?1@mq/shop",
        "amqp://ann:p@secret?1=2@mq/shop",
        "amqp://mq/shop#secret",
        "amqp://mq..secret/shop",
        "amqp://mq,a secret/shop",
        f"amqp://secret{'t' * 60}/shop",
        "amqp://secret\ud800/shop",
    ],
)
def test_what_is_no_url_is_refused_without_showing_it(url: str) -> None:
    """It may have a password in it, whose ``/``, ``#`` or ``?`` somebody has not encoded; or has a part that nobody
    would heed, or a host that there cannot be."""
    with pytest.raises(InvalidTopology, match="'orders': the URL cannot be read") as refused:
        read_address(url, where="'orders'")
    assert "secret" not in str(refused.value)


def test_the_environment_counts_before_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the id of the component, in capitals."""
    monkeypatch.setenv("STORMLET_CONNECT_BIG_ORDERS_URL", "amqp://elsewhere")
    assert str(found_address("big orders", "amqp://here")) == "amqp://elsewhere"
    assert str(found_address("orders", "amqp://here")) == "amqp://here"
    with pytest.raises(InvalidTopology, match="set STORMLET_CONNECT_ORDERS_URL, or write url= under"):
        found_address("orders", None)


def test_the_command_line_takes_an_address_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no option of the topology, and no misspelt one."""
    monkeypatch.setenv("STORMLET_CONNECT_ORDERS_URL", "amqp://mq")
    assert list(effective_settings(None, ()).values) == []
    monkeypatch.setenv("STORMLET_CONNECT_ORDERS", "amqp://mq")
    with pytest.raises(InvalidConfiguration, match="STORMLET_CONNECT_ORDERS sets no option"):
        effective_settings(None, ())


def test_the_toml_file_has_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``[connect.NAME]`` is no option of the topology; its password is in a file or the environment."""
    (tmp_path / "password").write_text("p@ss\n")
    file = tmp_path / "production.toml"
    file.write_text(
        f'ackers = 2\n[connect.orders]\nurl = "amqp://mq"\npassword_file = "{tmp_path}/password"\n'
        '[connect.bills]\npassword_env = "BILLS"\n'
    )
    monkeypatch.setenv("BILLS", "secret")
    try:
        assert list(effective_settings(file, ()).values) == ["ackers"]
        assert found_address("orders", None).password == Secret("p@ss")
        assert found_address("bills", "amqp://mq").password == Secret("secret")
    finally:
        SETTINGS.clear()


@pytest.mark.parametrize(
    "make",
    [
        lambda file: Secret("hunter2\udcff"),
        lambda file: Secret.from_file(file),
        lambda file: Secret.from_environment("BYTES"),
        lambda file: read_address("kestrel://ann:hunter2\udcff@mq", where="'orders'"),
    ],
    ids=["code", "file", "environment", "URL"],
)
def test_a_secret_that_is_no_text_is_refused_without_showing_it(
    make: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's own error for bytes that are no UTF-8 has all of the text, and shows it in its repr."""
    monkeypatch.setenv("BYTES", "hunter2\udcff")
    (tmp_path / "p").write_bytes(b"hunter2\xff")
    with pytest.raises((ValueError, InvalidTopology)) as refused:
        make(tmp_path / "p")
    assert "hunter2" not in f"{refused.value!r} {refused.value.__context__!r} {refused.value.__cause__!r}"
    assert "UTF-8" in str(refused.value) or "cannot be read" in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"password_file": "/nowhere/p"}, r"password_file of .*: /nowhere/p cannot be read: No such file"),
        ({"password_file": "/"}, r"password_file of .*: / cannot be read: Is a directory"),
        ({"password_file": sys.executable}, r"password_file of .* cannot be read: it is no text"),
        (
            {"password_env": "BYTES"},
            r"password_env of \[connect.orders\] .*: BYTES cannot be read: it is no text in UTF-8",
        ),
        ({"password_env": "NOWHERE"}, r"password_env of \[connect.orders\] .* no variable NOWHERE"),
        ({"url": "no url"}, r"'orders': the URL cannot be read; it has the form"),
    ],
)
def test_an_address_that_cannot_be_made_fails_the_start_in_words(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], words: str
) -> None:
    """They are said as they are, without the name of a class or a method."""
    monkeypatch.setitem(SETTINGS, "orders", settings)
    monkeypatch.setenv("BYTES", "hunter2\udcff")  # as Python has a byte that is no UTF-8
    topology = Topology("orders")
    topology.spout("orders", kestrel.Queue("kestrel://q1", "orders"))

    async def start() -> None:
        async with topology.run():
            pass

    with pytest.raises(StartFailed, match=rf"^topology 'orders' did not start: orders\[0\]: {words}"):
        asyncio.run(start())


@pytest.mark.parametrize(
    "url", ["https://api.test/v1/a@b", "http://hooks/users/@ann?to=x@y", "amqp://mq/vh@st"]
)
def test_an_at_sign_behind_a_host_alone_is_no_password(url: str) -> None:
    """Without a port or a user nothing can be a password."""
    assert read_address(url, where="test").password is None


@pytest.mark.parametrize("text", ["connect = 1", "[connect]\norders = 1", "[connect.orders]\nurls = 'a'"])
def test_a_mistake_in_the_toml_file_is_named(tmp_path: Path, text: str) -> None:
    """As one in any other option."""
    file = tmp_path / "production.toml"
    file.write_text(text)
    with pytest.raises(
        InvalidConfiguration, match=r"production\.toml: (connect has a table|\[connect.orders\] has)"
    ):
        effective_settings(file, ())


def test_a_table_of_no_component_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By ``run``, and by ``check``, with the name that was probably meant."""
    monkeypatch.setitem(SETTINGS, "ordrs", {"url": "kestrel://q1"})
    monkeypatch.setitem(SETTINGS, "orders", {"url": "kestrel://q2"})
    topology = Topology("shop")
    topology.spout("orders", kestrel.Queue("kestrel://q1", "orders"))
    warn_of_ignored(effective_settings(None, ()), topology)
    words = "[connect.ordrs] has no effect: the topology has no component 'ordrs', but has 'orders'"
    assert caplog.messages == [words]
    assert list(misnamed_connections(["orders"])) == [words]
    assert list(misnamed_connections(["orders", "ordrs"])) == []


def test_a_variable_that_is_almost_named_as_a_component_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Those of other topologies in the same environment are not."""
    for name in ("ORDRES", "ORDERS", "PAYMENTS"):
        monkeypatch.setenv(f"STORMLET_CONNECT_{name}_URL", "kestrel://q1")
    topology = Topology("shop")
    topology.spout("orders", kestrel.Queue("kestrel://q1", "orders"))
    warn_of_ignored(effective_settings(None, ()), topology)
    (said,) = caplog.messages
    assert said.startswith("STORMLET_CONNECT_ORDRES_URL has no effect: the topology has no such component; ")
    assert said.endswith("'orders' has STORMLET_CONNECT_ORDERS_URL")


@pytest.mark.simulated_time
async def test_a_twin_stands_for_the_broker_at_a_url() -> None:
    """The topology is the one of production."""
    done = list[str]()
    topology = Topology("lines")
    source: Source[str] = kestrel.Queue("kestrel://q1:22133", "sentences", as_=str)
    lines = topology.spout("lines", source)
    topology.bolt("keep", done.append, lines.shuffle())
    topology.bolt("send", kestrel.Set[str]("kestrel://q1:22133", "copies"), lines.shuffle())
    with twin("kestrel://q1:22133") as broker:
        broker.queue("sentences").publish(b"the cow")
        async with topology.run():
            while broker.queue("sentences").left or not broker.queue("copies").left:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert (done, broker.queue("copies").left) == (["the cow"], [b"the cow"])
    with pytest.raises(KeyError, match="no profile has the scheme 'gopher'"), twin("gopher://q"):
        pass


@pytest.mark.parametrize(
    "source",
    [
        kafka.Topics("ftp://here", ["orders"], group="billing"),
        kestrel.Queue("ftp://here", "orders"),
        nats.Stream("ftp://here", "ORDERS", consumer="billing"),
        nats.Stream("nats://here?ping=often", "ORDERS", consumer="billing"),
        postgres.Queue("ftp://here/shop", "orders"),
        rabbitmq.Queue("ftp://here", "orders"),
        rabbitmq.Queue("amqp:///shop", "orders"),
        rabbitmq.Queue("amqps://127.0.0.1:1/?cafile=/nowhere", "orders"),
        redis.Stream("ftp://here", "orders", group="billing"),
        nats.Stream("nats://here?ping=0", "ORDERS", consumer="billing"),
        rabbitmq.Queue("amqp://here?heartbeat=1.5", "orders"),
    ],
    ids=lambda source: str(source.url),
)
def test_an_address_of_another_kind_fails_the_start(source: Source[Any]) -> None:
    """Before anybody has got the password."""
    topology = Topology("orders")
    topology.spout("orders", source)

    async def start() -> None:
        async with topology.run():
            pass

    with pytest.raises(
        StartFailed, match=r"must begin with one of|has no host|no file '/nowhere'|number of (whole )?sec"
    ):
        asyncio.run(start())


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            kafka.Topics("kafka://k1,k2?acks=1", ["orders"], group="billing"),
            "kafka://k1,k2: the URL has the option 'acks', and takes none; settings of librdkafka go to client=",
        ),
        (
            kafka.Topics("kafka://here/orders", ["orders"], group="billing"),
            "has the path 'orders', which means",
        ),
        (kestrel.Queue("kestrel://here?wait=1", "orders"), "has the option 'wait', and takes none"),
        (kestrel.Queue("kestrel://q1,q2", "orders"), "has 2 hosts, and only one can be used"),
        (
            nats.Stream("nats://here?tls=1&ping=1", "ORDERS", consumer="billing"),
            r"'tls', and there are only \?creds=, \?domain=, \?ping=$",
        ),
        (nats.Stream("nats://here/ORDERS", "ORDERS", consumer="billing"), "the path 'ORDERS'"),
        (
            postgres.Queue("postgresql://here/shop?sslmode=require&schema=sales", "orders"),
            r"'schema', and there are only \?host=, \?sslmode=; authorities go to ca_file=",
        ),
        (rabbitmq.Queue("amqp://here?prefetch=10", "orders"), r"'prefetch', and there are only \?auth=, .*"),
        (
            redis.Stream("redis://here?db=3", "orders", group="billing"),
            "'db', and takes none; the path is the number of the database",
        ),
        (redis.Stream("redis://here/abc", "orders", group="billing"), "database, such as /0, and not 'abc'"),
        (redis.Stream("redis://here/-1", "orders", group="billing"), "database, such as /0, and not '-1'"),
        (redis.Stream("redis://r1,r2/0", "orders", group="billing"), "has 2 hosts, and only one can be used"),
    ],
    ids=lambda each: str(each.url) if isinstance(each, Source) else "",
)
def test_a_part_of_the_url_that_nobody_would_heed_fails_the_start(source: Source[Any], words: str) -> None:
    """It was meant: an option with a wrong name, another database, a second host."""
    topology = Topology("orders")
    topology.spout("orders", source)

    async def start() -> None:
        async with topology.run():
            pass

    with pytest.raises(StartFailed, match=words):
        asyncio.run(start())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lease": -1}, r"^lease=: expected `float` > 0.0$"),
        ({"lease": "60"}, r"^lease=: expected `float`, got `str`$"),
        ({"revoke_timeout": nan}, r"^revoke_timeout=: expected `float` >= 0.0$"),
        ({"max_uncommitted": 0}, r"^max_uncommitted=: expected `int` >= 1$"),
        ({"trim": "all"}, r"^trim=: invalid enum value 'all'$"),
        ({"password": "hunter2"}, r"^password=: expected `Secret`, got `str`; Secret.from_environment"),
    ],
)
def test_a_value_that_cannot_be_is_refused_where_it_is_written(options: Any, words: str) -> None:
    """And not shown, as it may be a password."""
    with pytest.raises(InvalidTopology, match=words) as refused:
        redis.Stream("redis://here", "orders", group="billing", **options)
    assert "hunter2" not in "".join(traceback.format_exception(refused.value))


def test_values_of_other_libraries_are_taken(tmp_path: Path) -> None:
    """Numbers of NumPy's, and paths, as the clients take them."""
    certificate: Any = tmp_path / "ca.pem"
    queue = redis.Stream(
        "redis://q",
        "orders",
        group="g",
        lease=np.float64(2.5),
        max_uncommitted=np.int64(5),
        ca_file=certificate,
    )
    assert (queue.stream_settings.lease, queue.settings.max_uncommitted) == (2.5, 5)


def test_a_value_of_a_sink_is_refused_where_it_is_written() -> None:
    """As one of a source is."""
    with pytest.raises(InvalidTopology, match=r"^size=: expected `int` >= 1$"):
        redis.Add[str]("redis://here", "orders", size=0)
    with pytest.raises(InvalidTopology, match=r"^timeout=: expected `float` > 0"):
        http.Post("http://here", timeout=-1)
    with pytest.raises(InvalidTopology, match=r"^tries=: expected `int` >= 1$"):
        http.Post("http://here", tries=0)
    with pytest.raises(InvalidTopology, match=r"^connections=: expected `int` >= 1$"):
        kestrel.Queue("kestrel://here", "lines", connections=0)
