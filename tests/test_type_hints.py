"""``typing.get_type_hints`` on the public face, as libraries of records, injection and documentation call it."""

from __future__ import annotations

import subprocess
import sys

import pytest

READ_ALL = """
import inspect, typing

def functions(kind):
    for base in kind.__mro__:
        for member in vars(base).values() if base.__module__.startswith("stormlet") else ():
            function = getattr(member, "__func__", getattr(member, "fget", member))
            if inspect.isfunction(function):
                yield function

unreadable = []
for name in stormlet.__all__:
    thing = getattr(stormlet, name)
    for each in (thing, *(functions(thing) if isinstance(thing, type) else ())):
        try:
            typing.get_type_hints(each)
        except Exception as error:
            unreadable.append(f"{name}, {each.__qualname__}: {error!r}")
print("\\n".join(unreadable))
"""


def unreadable(first: str) -> str:
    """The public objects whose hints cannot be read in a fresh interpreter that begins with this statement."""
    command = [sys.executable, "-c", f"{first}\nimport stormlet\n{READ_ALL}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    "first",
    ["", "import asyncio", "import stormlet.errors", "import stormlet.blocking", "import stormlet.testing"],
)
def test_every_public_hint_can_be_read_whatever_was_imported_first(first: str) -> None:
    """Every public class and function, and every method, has hints that ``get_type_hints`` resolves."""
    assert unreadable(first) == ""
