"""The ``describe`` command: all that is known of a topology before it runs, as records and in words.

The JSON of the command is the records.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from shutil import get_terminal_size
from textwrap import fill
from typing import Any

import msgspec

from stormlet.cli.inspecting.inspection import Inspection, inspect_target
from stormlet.cli.output import write_text, write_utf8
from stormlet.cli.parameters import DEFAULTS, Flag, Target, TargetOptions
from stormlet.core.shortened import printable
from stormlet.core.state.timers import NAME as TIMERS
from stormlet.drawing.drawing import grouping_words
from stormlet.model.components import DEFAULT_STREAM, BasicBolt, BatchBolt, Bolt, Spout
from stormlet.model.configuration import OPTIONS, Setting
from stormlet.model.description import BoltSpec, SpoutSpec
from stormlet.model.logic import LogicKind, SourceKind, component_class, what_is_called
from stormlet.model.state.keyed import KeyedBolt
from stormlet.model.streams import Output, StreamId, Subscription

EXAMPLES = """\
stormlet describe topology.py
stormlet describe topology.py --config production.toml --set ackers=2
stormlet describe topology.py --json | jq '.configuration[] | select(.origin != "default")'"""

LABEL = 9
"""The width of the names of a component's lines."""

UNKNOWN = "object"
"""The schema of a stream of which nothing is known."""


def describe(target: Target, /, *, options: TargetOptions = DEFAULTS, json: Flag = False) -> int:
    """Show the components, streams and tasks of a topology without running it, and its effective configuration.

    Each option has the origin of its value: the default, the topology, a file, an environment variable, --set, or the
    component.

    Parameters
    ----------
    json
        Print it as JSON, for scripts.
    """
    inspection = inspect_target(target, options)
    portrait = portray(inspection)
    if json:
        write_utf8(msgspec.json.format(msgspec.json.encode(portrait), indent=2).decode() + "\n")
    else:
        width = get_terminal_size().columns
        write_text("\n".join(_lines(portrait, inspection.state_words, width)) + "\n")
    return 0


# --- the records -----------------------------------------------------------------------------------------------------


class StreamPortrait(msgspec.Struct, frozen=True):
    """A stream that a component declares."""

    name: str
    schema: str
    """The type of its values; ``object`` where it is not known."""
    fields: tuple[str, ...] | None
    """The names of the fields; None where they are not known."""
    direct: bool
    """True if the producer names the receiving task."""
    subscribers: tuple[str, ...]
    """The bolts that get it."""


class InputPortrait(msgspec.Struct, frozen=True):
    """A subscription of a bolt."""

    component: str
    stream: str
    grouping: str


class StatePortrait(msgspec.Struct, frozen=True):
    """A state that a bolt keeps for each key."""

    name: str
    kind: str
    """``value``, ``map`` or ``list``."""
    key: str
    value: str
    ttl: float | None


class ComponentPortrait(msgspec.Struct, frozen=True):
    """A spout, a bolt or the ackers."""

    id: str
    type: str
    """``spout``, ``bolt`` or ``acker``."""
    kind: str
    """The kind of its source or logic, and its name."""
    tasks: tuple[int, ...]
    """The ids of its tasks, by their index."""
    runs: tuple[str, ...]
    """The way in which its tasks run, where that is not the default."""
    inputs: tuple[InputPortrait, ...]
    streams: tuple[StreamPortrait, ...]
    states: tuple[StatePortrait, ...] = ()


class ValuePortrait(msgspec.Struct, frozen=True):
    """The value of an option."""

    option: str
    value: Setting
    component: str | None
    """The component that it holds for; None: for all that have no own."""
    origin: str
    """The origin of the value: ``default``, ``topology``, a file, an environment variable, ``--set``, a
    component."""


class Portrait(msgspec.Struct, frozen=True):
    """A topology."""

    name: str
    counts: str
    components: tuple[ComponentPortrait, ...]
    configuration: tuple[ValuePortrait, ...]
    ignored: Mapping[str, str]
    """Settings under Storm's names that have no effect, and why."""
    state: str | None = None
    """The place of its state; None where it is lost with the process."""


def portray(inspection: Inspection) -> Portrait:
    """All that is known of a topology before it runs."""
    ackers = tuple(task.task for task in inspection.plan.ackers)
    own = [ComponentPortrait("__acker", "acker", "the engine's own", ackers, (), (), ())] if ackers else []
    return Portrait(
        inspection.description.name,
        inspection.counts,
        (*(_component(spec, inspection) for spec in inspection.description.components.values()), *own),
        (*_values(inspection), *_values_of_components(inspection)),
        {f"{origin}: {name}": reason for name, (origin, reason) in inspection.settings.ignored.items()},
        inspection.place,
    )


def _component(spec: SpoutSpec | BoltSpec, inspection: Inspection) -> ComponentPortrait:
    bolt = spec if isinstance(spec, BoltSpec) else None
    return ComponentPortrait(
        spec.id,
        "spout" if bolt is None else "bolt",
        kind_of(spec),
        tuple(task.task for task in inspection.plan.tasks[spec.id]),
        () if bolt is None else tuple(_ways_to_run(bolt)),
        () if bolt is None else tuple(map(_input, bolt.inputs)),
        tuple(_stream(StreamId(spec.id, name), output, inspection) for name, output in spec.outputs.items()),
        () if bolt is None else tuple(_states(bolt)),
    )


def _states(bolt: BoltSpec) -> Iterator[StatePortrait]:
    for name, declared in bolt.states.items():
        shape = declared.shape
        kind = "timers" if name == TIMERS else declared.kind
        yield StatePortrait(name, kind, shape.key, shape.value, declared.ttl)


def _ways_to_run(bolt: BoltSpec) -> Iterator[str]:
    if bolt.concurrency > 1:
        yield f"{bolt.concurrency:,} inputs at a time"
    if bolt.executor == "thread":
        yield "in threads"
    if bolt.tick is not None:
        yield f"tick every {bolt.tick:g} s"
    if bolt.on_error == "stop":
        yield "an exception stops the topology"


def _input(each: Subscription[object]) -> InputPortrait:
    return InputPortrait(each.source.component, each.source.stream, grouping_words(each.grouping))


def _stream(id: StreamId, output: Output, inspection: Inspection) -> StreamPortrait:
    subscribers = dict.fromkeys(link.consumer for link in inspection.plan.links[id])
    return StreamPortrait(
        id.stream, output.schema.name, output.schema.fields, output.direct, tuple(subscribers)
    )


def _values(inspection: Inspection) -> Iterator[ValuePortrait]:
    configuration, own = inspection.description.configuration, inspection.description.options
    for option in OPTIONS:
        origin = inspection.settings.origins.get(option, "topology" if option in own else "default")
        yield ValuePortrait(option, getattr(configuration, option), None, origin)


def _values_of_components(inspection: Inspection) -> Iterator[ValuePortrait]:
    for spec in inspection.description.components.values():
        kind = "bolt" if isinstance(spec, BoltSpec) else "spout"
        for option in spec.options:
            value = getattr(inspection.components[spec.id], option)
            yield ValuePortrait(option, value, spec.id, f"{kind} {spec.id!r}")


INTERFACES = (Spout, Bolt, BasicBolt, BatchBolt, KeyedBolt)


def kind_of(spec: SpoutSpec | BoltSpec) -> str:
    """The kind of source or logic that a component has, and its name."""
    logic: Any = spec.source if isinstance(spec, SpoutSpec) else spec.logic
    match spec.kind:
        case SourceKind.FED:
            return "fed by running.emit"
        case SourceKind.ITERABLE:
            return f"iterable {type(logic).__name__}"
        case SourceKind.FACTORY | LogicKind.FACTORY:
            return _made(logic)
        case SourceKind.GENERATOR | LogicKind.FUNCTION:
            return f"{_function_kind(logic)} {_name(logic)}"


def _made(factory: object) -> str:
    cls = component_class(factory)
    interface = next((each.__name__ for each in INTERFACES if cls is not None and issubclass(cls, each)), "")
    if isinstance(what_is_called(factory), type):
        return f"class {_name(factory)}({interface})"
    return f"factory {_name(factory)}" + ("" if cls is None else f" of class {cls.__qualname__}({interface})")


def _function_kind(function: object) -> str:
    called = what_is_called(function)
    if inspect.isasyncgenfunction(called):
        return "async generator function"
    if inspect.isgeneratorfunction(called):
        return "generator function"
    return "async function" if inspect.iscoroutinefunction(called) else "function"


def _name(function: object) -> str:
    called = what_is_called(function)
    name: str = getattr(called, "__qualname__", type(called).__qualname__)
    return name.replace("<locals>.", "").replace("<lambda>", "lambda")


# --- the words -------------------------------------------------------------------------------------------------------


def _lines(portrait: Portrait, state: str, width: int) -> Iterator[str]:
    yield f"{printable(portrait.name)}: {portrait.counts}"
    if state:
        yield fill(state, width, break_long_words=False, break_on_hyphens=False)
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
    yield from _listed("keeps", map(_state_words, component.states))
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


def _state_words(state: StatePortrait) -> str:
    if state.kind == "timers":
        return f"timers by {state.key}"
    ttl = "" if state.ttl is None else f", for {state.ttl:g} s"
    return f"{state.name}: {state.value} by {state.key}{ttl}"


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
