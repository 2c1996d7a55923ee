"""Spark's errors, read for a source: losses that another read can mend, advice, and the line to show."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from stormlet.core.shortened import printable

WORKER_DIED = "Python worker exited unexpectedly"
LOST = ("TaskResultLost", "ExecutorLostFailure", "FetchFailed", WORKER_DIED)
"""Texts in errors about a lost task or result, which may come whole the next time."""

OF_THE_JVM = "An error occurred while calling "
"""First words of a Py4J error; the JVM's error follows in the next line."""

OF_A_WORKER = "An exception was thrown from the Python worker"
"""First words of an error with the traceback of a Python worker, whose last line says what was raised."""
AFTER_THE_TRACEBACK = ("SQLSTATE:", "JVM stacktrace:")
"""First words of what Spark Connect says after it."""

OF_A_WAIT = "Exception thrown in awaitResult:"
"""End of the first line where another thread of Spark has failed; the causes follow at the end."""
CAUSED_BY = "Caused by: "

OF_A_WRITE = "[TASK_WRITE_FAILED]"
"""In the first line where a task could not write; why is in the last cause alone."""

ENDED = (
    "Spark's session has ended: it was stopped, or its JVM may have had too little memory; give it more by "
    "spark.driver.memory, before the JVM starts"
)
WAYS_OUT: Mapping[str, str] = {
    "java.lang.OutOfMemoryError": (
        "Spark had too little memory; give it more by spark.driver.memory, or by spark.executor.memory on a cluster, "
        "before the JVM starts"
    ),
    "SparkContext was shut down": ENDED,
    "spark.driver.maxResultSize": (
        "a partition is larger than spark.driver.maxResultSize; use more partitions, such as df.repartition(n), or "
        "with order_by= a larger spark.sql.shuffle.partitions"
    ),
    "No module named 'pyarrow'": (
        "the Python of Spark's workers has no pyarrow; let PYSPARK_PYTHON name one that has it before the session "
        'is built, or use transport="rows"'
    ),
    "PYTHON_VERSION_MISMATCH": (
        "Spark's workers run another version of Python; let PYSPARK_PYTHON name this one's before the session is "
        "built"
    ),
}
"""Text in an error -> advice."""

OF_A_CALL = "of RPC that terminated with:"
"""In the first line of an error of Spark Connect's client without words of the server; status and details follow."""
NO_ANSWER = "StatusCode.UNAVAILABLE"

DEATHS = (
    "a Python worker of Spark's has ended without an exception: by os._exit in a bolt, by a crash in a library of "
    "C, or as memory was short; spark.python.worker.faulthandler.enabled=true has Spark's error show where a crash was"
)

_DETAILS = re.compile(r'details = "(.*)"$')
_OURS = re.compile(r"^stormlet\.errors\.\w+: (.*)$", re.MULTILINE)
"""The line of one of our errors in the traceback that Spark gives for a task."""


def is_loss(error: BaseException) -> bool:
    """True if a task or its result was lost, so that reading again may help."""
    if isinstance(error, EOFError):  # the JVM's end of the socket closed without a word
        return True
    text = str(error)
    return way_out(error) is None and any(each in text for each in LOST)


def is_server_gone(error: BaseException) -> bool:
    """True if the server of Spark Connect does not answer, as its client has found by trying for minutes."""
    first, _, rest = str(error).lstrip().partition("\n")
    return OF_A_CALL in first and NO_ANSWER in rest  # of the call of a bolt, other lines come first


def way_out(error: BaseException) -> str | None:
    """Advice about an error, if there is any."""
    if isinstance(error, ConnectionError):  # of Py4J's, to the JVM
        return ENDED
    text = str(error)
    return next((advice for sign, advice in WAYS_OUT.items() if sign in text), None)


def summary(error: BaseException) -> str:
    """The line of an error to show: of a JVM error its own message, of a Python worker's what it has raised, of any
    other the first line."""
    lines = [printable(line) for line in str(error).strip().splitlines()]
    if lines and OF_A_CALL in lines[0]:
        return _of_call(lines)
    if any(line.rstrip().endswith(OF_A_WAIT) for line in lines[:2]):
        return (_causes(lines) or lines)[-1]
    if any(OF_A_WRITE in line for line in lines[:2]) and (causes := _causes(lines)):
        return causes[-1]
    if len(lines) > 1 and lines[0].startswith(OF_THE_JVM):
        return lines[1].lstrip(": ")
    if lines and lines[0].startswith(OF_A_WORKER):
        return _last_of_traceback(lines)
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def raised_in_task(error: BaseException) -> str | None:
    """Return the message of an error of ours that a task of Spark has raised; None if it was another one."""
    ours = _OURS.findall(str(error))
    return str(ours[-1]) if ours else None


def said_of_task(error: BaseException) -> str:
    """Return what to say of an error in a task that runs bolts: what it has raised, if that is an error of ours."""
    ours = raised_in_task(error)
    if ours is None and WORKER_DIED in str(error):
        return DEATHS
    return ours or summary(error)


def _of_call(lines: Sequence[str]) -> str:
    found = next(filter(None, map(_DETAILS.search, lines)), None)
    details = lines[0] if found is None else found[1]
    if any(NO_ANSWER in line for line in lines):
        return f"the server of Spark Connect does not answer ({details}); is it running?"
    return f"Spark Connect: {details}"


def _last_of_traceback(lines: Sequence[str]) -> str:
    after = (at for at, line in enumerate(lines) if line.lstrip().startswith(AFTER_THE_TRACEBACK))
    return [line for line in lines[: next(after, None)] if line.strip()][-1]


def _causes(lines: Sequence[str]) -> Sequence[str]:
    return [line.removeprefix(CAUSED_BY) for line in lines if line.startswith(CAUSED_BY)]
