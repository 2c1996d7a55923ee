"""What somebody types or pastes as the address of a page."""

from __future__ import annotations

import pytest

from stormlet.cli.terminal.address import Address, read_address
from stormlet.errors import InvalidConfiguration


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8080", Address("http://127.0.0.1:8080/", None, True)),
        ("8080#token=abc", Address("http://127.0.0.1:8080/", "abc", True)),
        ("localhost:80", Address("http://localhost:80/", None, True)),
        ("[::1]:80", Address("http://[::1]:80/", None, True)),
        ("10.0.0.7:80/", Address("http://10.0.0.7:80/", None, False)),
        ("https://a.example/flows/#token=a%2Bb", Address("https://a.example/flows/", "a+b", False)),
    ],
)
def test_an_address_is_read_as_it_is_printed(text: str, address: Address) -> None:
    """A port is one of this machine; the token is parted from what can be shown."""
    assert read_address(text, {}) == address


def test_the_token_of_the_environment_is_taken_where_the_address_has_none() -> None:
    """As for `run --ui`."""
    environment = {"STORMLET_UI_TOKEN": "of the environment"}
    assert read_address("8080", environment).token == "of the environment"
    assert read_address("8080#token=own", environment).token == "own"


@pytest.mark.parametrize(
    "text", ["", "http://", "a:b", "65536", "ftp://a.example", "user:secret@a.example", "a\n.example:1"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    """With an example of what is one."""
    with pytest.raises(InvalidConfiguration, match=r"is no address of a page; .* such as 8080 or http://127"):
        read_address(text, {})


def test_a_token_that_no_header_can_carry_is_refused() -> None:
    """It is not shown."""
    with pytest.raises(InvalidConfiguration, match="ASCII without control characters") as raised:
        read_address("8080#token=gehe%C3%AFm", {})
    assert "gehe" not in str(raised.value)
