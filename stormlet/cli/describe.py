"""The ``describe`` command: all that is known of a topology before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from shutil import get_terminal_size
from textwrap import fill

import msgspec

from stormlet.cli.inspecting.inspection import inspect_target
from stormlet.cli.inspecting.portrait import (
    ComponentPortrait,
    InputPortrait,
    Portrait,
    StreamPortrait,
    ValuePortrait,
    portray,
)
from stormlet.cli.output import write_text, write_utf8
from stormlet.cli.parameters import DEFAULTS, Flag, Target, TargetOptions
from stormlet.core.shortened import printable
from stormlet.model.components import DEFAULT_STREAM
from stormlet.model.configuration import Setting

EXAMPLES = """\
stormlet describe topology.py
stormlet describe topology.py --config production.toml --set ackers=2
stormlet describe topology.py --json | jq '.configuration[] | select(.origin != "default")'"""

LABEL = 9
"""The width of the names of a component's lines."""

UNKNOWN = "object"
"""The schema of a stream of which nothing is known."""


def describe(
    target: Target,
    /,
    *,
    options: TargetOptions = DEFAULTS,
    json: Flag = False,
) -> int:
    """Show the components, streams and tasks of a topology without running it, and its effective configuration.

    Of every option it says where the value came from: the default, the topology, a file, an environment variable,
    --set, or the component.

    Parameters
    ----------
    json
        Print it as JSON, for scripts.
    """
    portrait = portray(inspect_target(target, options))
    if json:
        write_utf8(msgspec.json.format(msgspec.json.encode(portrait), indent=2).decode() + "\n")
    else:
        write_text("\n".join(_lines(portrait, get_terminal_size().columns)) + "\n")
    return 0


def _lines(portrait: Portrait, width: int) -> Iterator[str]:
    yield f"{printable(portrait.name)}: {portrait.counts}"
    for component in portrait.components:
        yield ""
        yield fill(
            printable(f"{component.id}  {component.type}, {component.kind}"), width, subsequent_indent="  "
        )
        for label, text in _facts(component):
            start = f"  {label:{LABEL}}"
            yield fill(printable(text), width, initial_indent=start, subsequent_indent=" " * len(start))
    yield ""
    yield "configuration"
    yield from _table(portrait.configuration)
    for name, reason in portrait.ignored.items():
        yield fill(printable(f"  {name} has no effect: {reason}"), width, subsequent_indent="    ")


def _facts(component: ComponentPortrait) -> Iterator[tuple[str, str]]:
    """A component's lines, each by its label; the label of a line that continues one above is empty."""
    yield "tasks", _task_words(component.tasks)
    if component.runs:
        yield "runs", ", ".join(component.runs)
    yield from _listed("gets", map(_input_words, component.inputs))
    yield from _listed("emits", map(_stream_words, filter(_is_known, component.streams)))


def _listed(label: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    for place, text in enumerate(texts):
        yield "" if place else label, text


def _task_words(tasks: Sequence[int]) -> str:
    """Their ids are consecutive."""
    return str(tasks[0]) if len(tasks) == 1 else f"{tasks[0]} to {tasks[-1]}"


def _input_words(each: InputPortrait) -> str:
    stream = "" if each.stream == DEFAULT_STREAM else f", stream {each.stream}"
    return f"{each.component}{stream}: {each.grouping}"


def _is_known(stream: StreamPortrait) -> bool:
    """Every component has a default stream unless it declares others: here it is only one that may be used."""
    return bool(stream.subscribers) or stream.name != DEFAULT_STREAM or stream.schema != UNKNOWN


def _stream_words(stream: StreamPortrait) -> str:
    fields = "" if stream.fields is None else f"({', '.join(stream.fields)})"
    schema = "any values" if stream.schema == UNKNOWN else stream.schema.partition("(")[0] + fields
    way = " (direct)" if stream.direct else ""
    return f"{stream.name}: {schema}{way} to {', '.join(stream.subscribers) or 'nobody'}"


def _table(values: Sequence[ValuePortrait]) -> Iterator[str]:
    """Options and values in columns; where a value came from stands last, as it may be long."""
    shown = [(each.option, _value_words(each.value), printable(each.origin)) for each in values]
    widths = [max(len(row[column]) for row in shown) for column in (0, 1)]
    for option, value, origin in shown:
        yield f"  {option:{widths[0]}}  {value:>{widths[1]}}  {origin}"


def _value_words(value: Setting) -> str:
    """As ``--set`` takes it."""
    if value is None:
        return "none"
    return str(value).removesuffix(".0")
