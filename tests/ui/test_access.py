"""Who may ask, and who is told what to do instead."""

from __future__ import annotations

from typing import Any

import pytest

from stormlet import Topology, ui
from stormlet.errors import InvalidConfiguration
from stormlet.ui.access import Access, Request, checked, host_name
from tests.ui.kit import TOKEN

OPEN, CLOSED = Access(), Access(TOKEN)
CONTROL = Access(TOKEN, changes=True)


def request(
    host: str = "127.0.0.1:8080", peer: str | None = "127.0.0.1", method: str = "GET", **more: str
) -> Request:
    return Request(
        method, {"host": host, **{name.replace("_", "-"): value for name, value in more.items()}}, peer
    )


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "127.3.2.1"])
def test_this_machine_may_ask_without_a_token(host: str) -> None:
    """By every name that it has for itself."""
    assert OPEN.refused(request(host)) is None


@pytest.mark.parametrize(
    "host", ["evil.example:8080", "127.0.0.1.evil.example", "", "10.0.0.7", "[::1", "localhost.evil"]
)
def test_a_foreign_name_is_refused(host: str) -> None:
    """It may have been bound to this machine by somebody who wants a browser to read from it."""
    refusal = OPEN.refused(request(host))
    assert refusal is not None
    assert (refusal.status, "set a token" in refusal.words) == (421, True)


@pytest.mark.parametrize("peer", ["10.0.0.7", "192.168.1.1", "::ffff:10.0.0.7"])
def test_another_machine_needs_a_token(peer: str) -> None:
    """Whatever name it uses."""
    refusal = OPEN.refused(request(peer=peer))
    assert refusal is not None
    assert refusal.status == 403
    assert CLOSED.refused(request(peer=peer)) is None


def test_a_socket_for_both_versions_has_this_machine_too() -> None:
    """As an address of the fourth inside one of the sixth."""
    assert OPEN.refused(request(peer="::ffff:127.0.0.1")) is None


def test_a_socket_that_is_a_file_has_no_peer() -> None:
    """Who may open it may ask."""
    assert OPEN.refused(request(peer=None)) is None


@pytest.mark.parametrize(
    "header",
    [
        {"x_forwarded_for": "10.0.0.7"},
        {"x_forwarded_host": "storm.example"},
        {"x_real_ip": "10.0.0.7"},
        {"forwarded": "for=10.0.0.7"},
        {"via": "1.1 proxy"},
    ],
)
def test_a_proxy_speaks_for_anybody(header: dict[str, str]) -> None:
    """So it needs a token, although it is on this machine."""
    refusal = OPEN.refused(request(**header))
    assert refusal is not None
    assert "proxy" in refusal.words
    assert CLOSED.refused(request(**header)) is None


def test_names_of_the_page_may_be_given() -> None:
    """Then others are refused even with a token; addresses cannot be bound to something else."""
    access = Access(TOKEN, frozenset({"storm.example"}))
    assert access.refused(request("storm.example:443")) is None
    assert access.refused(request("10.0.0.7:8080")) is None
    refusal = access.refused(request("other.example"))
    assert refusal is not None
    assert refusal.status == 421


@pytest.mark.parametrize(
    ("given", "may"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer  {TOKEN} ", True),
        (f"Basic {TOKEN}", False),
        (f"Bearer {TOKEN}x", False),
        (f"Bearer {TOKEN[:-1]}", False),
        ("Bearer ü", False),
        (TOKEN, False),
        ("", False),
    ],
)
def test_data_needs_the_token(given: str, may: bool) -> None:
    """As a bearer's, whole."""
    refusal = CLOSED.refused_data(request(authorization=given))
    assert (refusal is None) == may
    assert may or (refusal is not None and refusal.status == 401 and "#token=" in refusal.words)


@pytest.mark.parametrize(
    ("headers", "may"),
    [
        ({"sec_fetch_site": "same-origin"}, True),
        ({"origin": "http://127.0.0.1:8080"}, True),
        ({"origin": "http://127.0.0.1:8081"}, False),
        ({"origin": "http://evil.example", "sec_fetch_site": "cross-site"}, False),
        ({"origin": "null"}, False),
        ({}, False),
    ],
)
def test_changes_need_an_origin_of_ours(headers: dict[str, str], may: bool) -> None:
    """The token alone is not enough."""
    asked = request(method="POST", authorization=f"Bearer {TOKEN}", **headers)
    assert (CONTROL.refused_data(asked) is None) == may


def test_nothing_may_be_changed_unless_that_is_allowed() -> None:
    """With everything else right."""
    asked = request(method="POST", authorization=f"Bearer {TOKEN}", sec_fetch_site="same-origin")
    refusal = CLOSED.refused_data(asked)
    assert refusal is not None
    assert (refusal.status, "--ui-control" in refusal.words) == (403, True)


@pytest.mark.parametrize("token", ["short", "", "ü" * 20])
def test_a_token_that_can_be_guessed_is_refused(token: str) -> None:
    """With a command that makes a better one."""
    with pytest.raises(InvalidConfiguration, match="token_urlsafe"):
        checked(Access(token))


def test_changes_need_a_token() -> None:
    """Any program of this machine could make them otherwise."""
    with pytest.raises(InvalidConfiguration, match="set token="):
        checked(Access(changes=True))


@pytest.mark.parametrize(
    ("host", "name"), [("A.b:80", "a.b"), ("[::1]:80", "::1"), ("a@b", "b"), ("[", ""), ("", "")]
)
def test_the_name_in_host(host: str, name: str) -> None:
    """Without its port, in small letters."""
    assert host_name(host) == name


@pytest.mark.parametrize(
    ("running", "options", "says"),
    [
        ([Topology("orders")], {}, "ui.app: <.*> is no running topology; write `async with topology.run"),
        (
            [],
            {"hosts": "orders.example"},
            r"hosts='orders.example' is no list of names, such as hosts=\['orders",
        ),
        ([], {"hosts": 5}, "hosts=5 is no list of names"),
        ([], {"hosts": [5]}, r"hosts=\[5\] is no list of names"),
        ([], {"token": b"a-token-of-enough-characters"}, "the token of the page has at least 16 characters"),
        ([], {"token": 5}, "the token of the page has at least 16 characters"),
    ],
)
def test_arguments_of_another_type_are_refused(running: Any, options: Any, says: str) -> None:
    """One name of a host would be taken for its letters, so that every request is refused."""
    with pytest.raises(InvalidConfiguration, match=f"^{says}"):
        ui.app(*running, **options)
