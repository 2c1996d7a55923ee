"""The ``graph`` command: a topology, drawn."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from shutil import get_terminal_size
from typing import Annotated, Final, Literal, TypeAlias, get_args

from cyclopts import Parameter

from stormlet.cli.inspecting.formats import as_dot, as_mermaid, as_text, without_marks
from stormlet.cli.inspecting.inspection import inspect_target
from stormlet.cli.output import can_show, write_text, write_utf8
from stormlet.cli.parameters import DEFAULTS, Target, TargetOptions
from stormlet.drawing.drawing import Drawing, draw
from stormlet.errors import InvalidConfiguration

EXAMPLES = """\
stormlet graph topology.py
stormlet graph topology.py --output topology.svg
stormlet graph topology.py --format mermaid >> README.md
stormlet graph topology.py --format dot | dot -Tpdf > topology.pdf"""

Format: TypeAlias = Literal["text", "mermaid", "dot", "svg"]

SUFFIXES: Final[dict[str, Format]] = {
    ".txt": "text",
    ".mmd": "mermaid",
    ".dot": "dot",
    ".gv": "dot",
    ".svg": "svg",
}


def graph(
    target: Target,
    /,
    *,
    options: TargetOptions = DEFAULTS,
    format: Annotated[Format | None, Parameter(show_default=False)] = None,  # noqa: A002
    output: Path | None = None,
) -> int:
    """Draw a topology without running it.

    Components are shown with their tasks, subscriptions with stream and grouping; lines are solid where tuples
    are anchored, dashed where nothing is tracked.

    Parameters
    ----------
    format
        Format of the drawing. By default that of the suffix of --output: .txt, .mmd, .dot or .svg; without --output,
        text.
    output
        A file to write instead of standard output.
    """
    chosen = format or _format_of(output)
    if chosen == "svg":
        _check_layout_is_installed()
    drawing = draw(inspect_target(target, options).plan)
    if output is not None:
        _write(output, _rendered(drawing, chosen))
    elif chosen == "text":
        text = _rendered(drawing, chosen)
        write_text(text if can_show(text) else without_marks(text))
    else:
        write_utf8(_rendered(drawing, chosen))
    return 0


def _format_of(output: Path | None) -> Format:
    if output is None:
        return "text"
    if output.suffix in SUFFIXES:
        return SUFFIXES[output.suffix]
    raise InvalidConfiguration(
        f"--output {output}: the suffix names no format; add --format {' or '.join(get_args(Format))}"
    )


def _check_layout_is_installed() -> None:
    if find_spec("fast_sugiyama") is None:
        raise InvalidConfiguration(
            "--format svg needs fast-sugiyama, which computes the layout: pip install 'stormlet[svg]'"
        )


def _rendered(drawing: Drawing, format: Format) -> str:  # noqa: A002
    match format:
        case "text":
            return as_text(drawing, get_terminal_size().columns)
        case "mermaid":
            return as_mermaid(drawing)
        case "dot":
            return as_dot(drawing)
        case "svg":
            from stormlet.drawing.svg import as_svg  # which loads the layout

            return as_svg(drawing)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise InvalidConfiguration(f"--output {path}: {error.strerror}") from None
