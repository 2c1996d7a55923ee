"""The ``bench`` command."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from stormlet.bench.markdown import markdown as as_markdown
from stormlet.bench.report import Results, all_names, as_json, measure, text, usual_names
from stormlet.cli.output import write_text
from stormlet.cli.parameters import Flag, Whole
from stormlet.errors import TargetError

EXAMPLES = """\
stormlet bench
stormlet bench acked bare --rounds 9
stormlet bench spark spark-flat --rounds 1
stormlet bench --json > figures.json"""


def bench(
    *names: str,
    rounds: Annotated[Whole, Parameter(validator=Number(gte=1))] = 5,
    scale: Annotated[float, Parameter(validator=Number(gt=0, lte=1000))] = 1.0,
    json: Flag = False,
    markdown: Flag = False,
) -> int:
    """Measure what a tuple costs on this machine.

    The same work without a framework runs beside it, in alternating rounds.

    Parameters
    ----------
    names
        Workloads; by default all that do not need Spark, as spark and spark-flat do.
    rounds
        How often each workload runs.
    scale
        How much each does, 1 being seconds of work.
    json
        Print every single figure as JSON.
    markdown
        Print the table of the README, with machine, versions and date.
    """
    known = all_names()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise TargetError(f"there is no workload {unknown[0]!r}; there are {', '.join(known)}")
    results = measure(names or usual_names(), rounds, scale)
    write_text(_shown(results, rounds, json=json, markdown=markdown) + "\n")
    return 0


def _shown(results: Results, rounds: int, *, json: bool, markdown: bool) -> str:
    if json:
        return as_json(results)
    return as_markdown(results, rounds) if markdown else text(results, rounds)
