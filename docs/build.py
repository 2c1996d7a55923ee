"""Writes ``docs/configuration.md`` from the code: ``python docs/build.py``. A test holds that it was run."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from stormlet import Configuration
from stormlet.model import storm_names
from stormlet.model.configuration import COMPONENT_OPTIONS, OPTIONS, expected

PAGE = Path(__file__).with_name("configuration.md")

CITATION = re.compile(r"\blaws?\s+[A-Z]\d+(?:(?:,| and)\s+[A-Z]\d+)*")
"""A place that cites the law: "law L12", "laws L6, L9"."""

RULE = re.compile(r"\b[A-Z]\d+\b")

HEAD = """\
# Configuration

<!-- Written by docs/build.py from stormlet/model/configuration.py and storm_names.py; change those. -->

An option has the value of the last of these that gives one:

1. the default,
2. the topology: `Topology("name", message_timeout=10)`,
3. one run: `topology.run(message_timeout=10)`; at the command line in this order a TOML file (`--config FILE`),
   environment variables (`STORMLET_MESSAGE_TIMEOUT=10`), and `--set message_timeout=10`,
4. one spout or bolt, for the options that a component may have: `topology.spout("lines", read, max_spout_pending=10)`.

`python -m stormlet describe TARGET` shows the effective value of each option and where it came from. Times are seconds.
Where `None` is a value, TOML, environment and command line write `none`.

```toml
# settings.toml
message_timeout = 10
ackers = 2
"topology.max.spout.pending" = 100      # Storm's names are taken, too
```
"""


def meanings() -> dict[str, str]:
    """The docstring below each option."""
    (definition,) = ast.parse(inspect.getsource(Configuration)).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            assert isinstance(text, ast.Expr)
            assert isinstance(text.value, ast.Constant)
            found[field.target.id] = _as_cell(str(text.value.value))
    return found


def _as_cell(text: str) -> str:
    """On one line, without the default, which has a column of its own."""
    return re.sub(r"\.? Default [^(]*\(", " (", " ".join(text.split())).replace("``", "`")


def page() -> str:
    """The whole page."""
    return with_links("\n".join((HEAD, *_options(), *_storm_names())))


def with_links(text: str) -> str:
    """The text with a link to each rule of the law that it cites."""
    return CITATION.sub(lambda citation: RULE.sub(_link, citation.group()), text)


def _link(rule: re.Match[str]) -> str:
    return f"[{rule.group()}](law.md#{rule.group().lower()})"


def _options() -> Iterator[str]:
    yield "## Options\n"
    yield "| option | default | takes | of | meaning |"
    yield "| --- | --- | --- | --- | --- |"
    told, defaults = meanings(), Configuration()
    for option in OPTIONS:
        default = f"`{getattr(defaults, option)!r}`"
        yield f"| `{option}` | {default} | {expected(option)} | {_owner(option)} | {told[option]} |"
    yield ""


def _owner(option: str) -> str:
    owners = [kind for kind, options in COMPONENT_OPTIONS.items() if option in options]
    return ", ".join(("topology", *owners))


def _storm_names() -> Iterator[str]:
    yield "## Storm's names\n"
    yield "Taken wherever ours are:\n"
    yield "| Storm | here |"
    yield "| --- | --- |"
    for name, mapped in storm_names.MAPPED.items():
        yield f"| `{name}` | `{mapped.option}` |"
    yield f"| `{storm_names.TIMEOUT_SWITCH}: false` | `message_timeout=None` |"
    yield "\nRefused, as they would silently change what comes out:\n"
    yield from _by_reason(storm_names.REFUSED)
    yield "\nAccepted, without effect and with a warning:\n"
    yield from _by_reason(storm_names.IGNORED)
    prefixes = ", ".join(f"`{prefix}*`" for prefix in storm_names.DAEMONS)
    yield f"- it configures Storm's daemons, and there are none: {prefixes}"
    yield ""


def _by_reason(names: Mapping[str, str]) -> Iterator[str]:
    reasons: dict[str, list[str]] = {}
    for name, reason in names.items():
        reasons.setdefault(reason, []).append(f"`{name}`")
    yield from (f"- {reason}: {_listed(keys)}" for reason, keys in reasons.items())


def _listed(keys: Iterable[str]) -> str:
    return ", ".join(keys)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
