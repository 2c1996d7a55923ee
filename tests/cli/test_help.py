"""How help looks."""

from __future__ import annotations

import pytest

from stormlet.cli.help import epilogue

LONG = "stormlet run topology.py --set ackers=2 --set message_timeout=none --arg path="


def test_examples_stand_under_their_heading() -> None:
    """One a line, as they are."""
    assert (
        epilogue("stormlet run a.py\nstormlet run b.py")
        == "Examples:\n  stormlet run a.py\n  stormlet run b.py"
    )


def test_an_example_that_is_too_long_is_broken_as_a_shell_takes_it() -> None:
    """At a space, with a backslash, and further to the right."""
    assert epilogue(f"{LONG}words.txt --quiet") == (
        "Examples:\n"
        "  stormlet run topology.py --set ackers=2 --set message_timeout=none --arg \\\n"
        "      path=words.txt --quiet"
    )


@pytest.mark.parametrize("quote", ["'", '"'])
def test_an_example_is_not_broken_inside_quotes(quote: str) -> None:
    """There a backslash would be part of the text."""
    quoted = f"{quote}some words in a row{quote}"
    assert epilogue(f"{LONG}{quoted}").endswith(f" \\\n      path={quoted}")
