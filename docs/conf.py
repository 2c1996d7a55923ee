"""The site: ``just docs`` builds it into ``build/site``."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from docs.build import CITATION, RULE  # noqa: E402 - found by the line above, whatever runs Sphinx

ROOT = HERE.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
FILES: str = PROJECT["urls"]["Source"] + "/blob/main/"
BORROWED = {"contributing": ROOT / "CONTRIBUTING.md", "changelog": ROOT / "CHANGELOG.md"}
"""Pages whose text stands where readers of the repository look for it."""

project = PROJECT["name"]
author = PROJECT["authors"][0]["name"]
release = version = PROJECT["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosectionlabel"]
html_theme = "furo"
html_title = f"{project} {release}"

myst_heading_anchors = 4
myst_enable_extensions = ["deflist"]
autosectionlabel_prefix_document = True  # for the links to law:L12 that docstrings get below
suppress_warnings = ["autosectionlabel.*"]  # two sections of one page may have the same heading

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_mock_imports = ["numpy", "pandas", "pyarrow", "pyspark"]  # the reference is built without Spark


class App(Protocol):
    """The part of Sphinx's application that is used here."""

    def connect(self, event: str, callback: Callable[..., None]) -> int:
        """Have the callback called at the event."""
        ...


def setup(app: App) -> None:
    """Called by Sphinx."""
    app.connect("source-read", lead_out)
    app.connect("source-read", leave_out_tests)
    app.connect("autodoc-process-docstring", link_to_the_law)


def lead_out(app: App, docname: str, source: list[str]) -> None:
    """Have links to files that are not pages lead to the repository."""
    page = BORROWED.get(docname, HERE / f"{docname}.md")
    text = page.read_text("utf-8") if docname in BORROWED else source[0]
    source[0] = re.sub(r"(?<=\]\()[^():#\s]+(?=[)#])", lambda link: _on_site(link.group(), page.parent), text)


def leave_out_tests(app: App, docname: str, source: list[str]) -> None:
    """Drop the comments that name the tests of a promise: a list with comments would be set more widely."""
    source[0] = re.sub(r"\s*<!-- tested by: .*? -->", "", source[0], flags=re.DOTALL)


def _on_site(link: str, folder: Path) -> str:
    path = (folder / link).resolve()
    if path.is_relative_to(HERE):
        return path.relative_to(HERE).as_posix() if folder == ROOT else link
    return FILES + path.relative_to(ROOT).as_posix()


def link_to_the_law(app: App, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Make a link of each rule that a docstring cites."""
    text = CITATION.sub(
        lambda citation: RULE.sub(r":ref:`\g<0> <law:\g<0>>`", citation.group()), "\n".join(lines)
    )
    lines[:] = re.sub(r"(?m)^(\s*)(laws?)\n", r"\1\2\n", text).split("\n")
