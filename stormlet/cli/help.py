"""``--help`` and ``--version``. Help has no boxes, in a terminal or a pipe, and colours only in a terminal."""

from __future__ import annotations

import platform
import re
from textwrap import TextWrapper
from typing import TYPE_CHECKING

from stormlet.acceleration import is_compiled

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions
    from rich.table import Table


WIDTH = 78
"""Columns for an example; it stands two to the right."""
_WRAPPER = TextWrapper(
    WIDTH - len(" \\"), subsequent_indent="      ", break_long_words=False, break_on_hyphens=False
)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_GLUE = "\0"


def epilogue(examples: str) -> str:
    """The end of a command's help."""
    return "\n".join(("Examples:", *map(_example, examples.splitlines())))


def _example(line: str) -> str:
    """Broken where it is too long, as a shell takes it: not inside quotes."""
    if len(line) <= WIDTH:
        return f"  {line}"
    glued = _QUOTED.sub(lambda found: found[0].replace(" ", _GLUE), f"  {line}")
    return " \\\n".join(_WRAPPER.wrap(glued)).replace(_GLUE, " ")


class UnboxedHelp:
    """A ``HelpFormatter`` of cyclopts; it loads nothing before help is asked for."""

    def render_usage(self, console: Console, options: ConsoleOptions, usage: object) -> None:
        """Print the first line."""
        console.print(f"[bold]Usage: {usage}[/bold]".replace("[OPTIONS]", r"\[OPTIONS]"), highlight=False)

    def render_description(self, console: Console, options: ConsoleOptions, description: object) -> None:
        """Print what the command does."""
        console.print(_unwrapped(description), highlight=False)

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Print one list of commands or parameters."""
        from cyclopts.help.specs import (
            TableSpec,
            default_styles_theme,
            get_default_command_columns,
            get_default_parameter_columns,
        )
        from rich.padding import Padding

        if not panel.entries:
            return
        columns = get_default_command_columns if panel.format == "command" else get_default_parameter_columns
        entries = [each.copy(description=_unwrapped(each.description)) for each in panel.entries]
        table: Table = TableSpec().build(  # pyright: ignore[reportUnknownMemberType] its **overrides have no types
            columns(console, options, entries), entries
        )
        with console.use_theme(default_styles_theme(console)):
            console.print(f"\n[bold]{panel.title}:[/bold]")
            console.print(Padding(table, (0, 0, 0, 2)))


def _unwrapped(text: object) -> object:
    """A docstring's text without the line breaks inside its paragraphs, which are for another width."""
    from cyclopts.help import InlineText
    from rich.text import Text

    if not isinstance(text, InlineText) or not isinstance(text.primary_renderable, Text):
        return text
    plain = re.sub(r"(?<!\n)\n(?!\n)", " ", text.primary_renderable.plain)
    return InlineText.from_format(plain, format="plaintext")


PACKAGES = ("msgspec", "uvloop", "cyclopts", "rich", "fast-sugiyama", "pyspark", "pyarrow")


def versions() -> str:
    """One a line; nothing is imported for it."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    runs = "compiled" if is_compiled() else "interpreted"
    lines = (
        f"stormlet {_version('stormlet')} ({runs})",
        python,
        *(f"{name} {_version(name)}" for name in PACKAGES),
    )
    return "\n".join((*lines, platform.platform()))


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
