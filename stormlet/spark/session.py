"""The Spark session to work with: the active one, or a new, quiet, local one.

The packages and the Java that Spark needs are checked before a JVM starts.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from subprocess import TimeoutExpired
from threading import Thread
from typing import TYPE_CHECKING, Any, cast

from stormlet.errors import SparkUnavailable
from stormlet.spark.failures import summary

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

logger = logging.getLogger("stormlet.spark.jvm")

INSTALL = 'pip install "stormlet[spark]"'
JAVA_VERSIONS = (17, 21)
VECTOR_MODULE = "jdk.incubator.vector"
"""Module that Spark's start script adds; a Java without it ends at once."""
JAVA_SECONDS = 30.0
"""Seconds that Java has to report its version."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of a package that work with the others: from ``least`` on, below ``below``."""

    least: tuple[int, ...]
    below: tuple[int, ...] | None = None

    def __contains__(self, release: tuple[int, ...]) -> bool:
        return release >= self.least and (self.below is None or release < self.below)

    def __str__(self) -> str:
        limits = f">={_dotted(self.least)}"
        return limits if self.below is None else f"{limits},<{_dotted(self.below)}"


PACKAGES: Mapping[str, Versions] = {
    "pyspark": Versions((4, 0), (5,)),
    "pyarrow": Versions((20, 0)),  # before, it casts no slice of structs beside which there is a null
    "pandas": Versions((2, 2), (3,)),
}
"""Packages of the extra ``spark``; PySpark's ``mapInArrow`` needs the last two."""


def check_packages() -> None:
    """Raise :class:`~stormlet.errors.SparkUnavailable` if a package is missing or does not fit."""
    for problem in _package_problems():
        raise SparkUnavailable(f"{problem}; {INSTALL} installs versions that work together")


def check_java() -> None:
    """Raise :class:`~stormlet.errors.SparkUnavailable` if the Java that Spark would start does not fit."""
    java = _find_java()
    modules = _modules_of(java)
    found = _release_of(modules)
    if found not in JAVA_VERSIONS:
        which = "an older Java" if found is None else f"Java {found}"
        raise SparkUnavailable(f"Spark needs Java 17 or 21, and {java} is {which}; {_other_java()}")
    if VECTOR_MODULE not in modules:
        raise SparkUnavailable(
            f"Spark needs Java's module {VECTOR_MODULE}, which {java} lacks; {_other_java()}"
        )


def _package_problems() -> Iterator[str]:
    for package, versions in PACKAGES.items():
        try:
            found = version(package)
        except PackageNotFoundError:
            yield f"Spark needs {package}{versions}, which is not installed"
        else:
            if _release(found) not in versions:
                yield f"Spark needs {package}{versions}, and version {found} is installed"


def _find_java() -> str:
    """The Java that Spark's start script takes."""
    home = os.environ.get("JAVA_HOME")
    if home:
        java = shutil.which(str(Path(home, "bin", "java")))
        if java is None:
            raise SparkUnavailable(f"JAVA_HOME is {home}, where there is no bin/java; {_other_java()}")
        return java
    java = shutil.which("java")
    if java is None:
        raise SparkUnavailable(
            "Spark needs Java 17 or 21, and there is no java on the PATH; install a JDK, or let JAVA_HOME point to one"
        )
    return java


def _modules_of(java: str) -> Mapping[str, str]:
    """Module -> version; empty for a Java without modules, 8 or older."""
    try:
        # One start says all: the version of java.base is that of Java.
        listed = subprocess.run(
            [java, "--list-modules"], capture_output=True, text=True, timeout=JAVA_SECONDS, check=False
        )
    except (OSError, TimeoutExpired) as error:
        raise SparkUnavailable(f"{java} does not run ({error}); {_other_java()}") from error
    lines = listed.stdout.split()
    return {name: release for name, _, release in (line.partition("@") for line in lines)}


def _release_of(modules: Mapping[str, str]) -> int | None:
    base = re.match(r"\d+", modules.get("java.base", ""))
    return None if base is None else int(base[0])


def _release(text: str) -> tuple[int, ...]:
    """``"4.1.0.dev2"`` -> ``(4, 1, 0)``."""
    release = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, release[0].split("."))) if release else ()


def _dotted(release: tuple[int, ...]) -> str:
    return ".".join(map(str, release))


def _other_java() -> str:
    return "let JAVA_HOME point to a JDK 17 or 21"


PATIENCE = 10.0
"""Seconds that a JVM has to end."""
LAST_LINES = 10
"""Lines of the JVM that an error quotes if it does not start."""
STACK = "\tat "
"""The beginning of a line that says no more than where an exception has come by."""

OPTIONS: Mapping[str, str] = {
    "spark.app.name": "stormlet",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Reachable from this machine alone; and a host name that does not resolve does no harm.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def spark_session(master: str = "local[*]", **options: str) -> SparkSession:
    """The active session of this process, as it is; without one, a new one of ``master`` with Spark's ``options``,
    whose dots may be given through ``**{...}``.

    A session made here is quiet: the JVM's output goes to the logger ``stormlet.spark.jvm``, at DEBUG. Its Python
    workers run this interpreter, unless the environment's PYSPARK_PYTHON names another. It lasts as long as the
    process: the bridge stops no session.

    Raises :class:`~stormlet.errors.SparkUnavailable` if Spark cannot start here.
    """
    check_packages()
    return active_session() or _build({**OPTIONS, "spark.master": master, **options})


def active_session() -> SparkSession | None:
    """The session of this thread, else of this process."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        return SparkSession.active()
    except PySparkException:
        return None


def _build(options: Mapping[str, str]) -> SparkSession:
    if "SPARK_REMOTE" in os.environ:
        raise SparkUnavailable(
            "SPARK_REMOTE asks for Spark Connect, which the bridge cannot use; unset it, and give a master"
        )
    check_java()
    from py4j.protocol import Py4JError
    from pyspark import SparkConf
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    master = options["spark.master"]
    try:
        context = _start(SparkConf().setAll(list(options.items())))
        if "PYSPARK_PYTHON" not in os.environ:
            context.pythonExec = sys.executable  # read whenever a function is sent to the workers
        return SparkSession(context)
    except (PySparkException, Py4JError) as error:
        # Spark gives up a cluster that does not answer by stopping in the midst of its start.
        raise SparkUnavailable(
            f"Spark did not start with master {master!r}: {summary(error)}; is its address right, and does it run?"
        ) from error


def _start(conf: SparkConf) -> SparkContext:
    from pyspark import SparkContext

    gateway_of_process: object = vars(SparkContext)["_gateway"]
    if gateway_of_process is not None:  # the JVM outlives its sessions
        return SparkContext(conf=conf)
    return SparkContext(conf=conf, gateway=_launch(conf))


def _launch(conf: SparkConf) -> Any:
    """Start the JVM, and a thread that reads its output and ends with it."""
    from pyspark import java_gateway
    from pyspark.errors import PySparkException

    launch = cast("Any", java_gateway).launch_gateway
    readable, writable = os.pipe()
    last = deque[str](maxlen=LAST_LINES)
    Thread(target=_log_lines, args=(readable, last), name="stormlet spark jvm", daemon=True).start()
    try:
        return _uninterrupted(partial(launch, conf, {"stdout": writable, "stderr": writable}))
    except (PySparkException, OSError) as error:
        said = "; ".join(last) or "nothing"
        raise SparkUnavailable(f"Spark's JVM did not start: {error}; it said: {said}") from error
    finally:
        os.close(writable)


def _uninterrupted(launch: Callable[[], Any]) -> Any:
    """Return the gateway of ``launch`` to the JVM that it starts; an interruption ends that JVM.

    Ctrl-C must not reach PySpark while it waits for the JVM: PySpark would remove the folder into which the JVM is
    about to write its address. The JVM would fail there and then stay for ever, as it does not watch its parent yet.
    So a thread waits for the start, however long that takes.
    """
    launched: Future[Any] = Future()
    thread = Thread(target=_launch_for, args=(launched, launch), name="stormlet spark start")
    try:
        thread.start()
        return launched.result()
    except BaseException:
        if not launched.cancel() and launched.exception() is None:  # it has started in this moment
            _end(launched.result())
        raise


def _launch_for(launched: Future[Any], launch: Callable[[], Any]) -> None:
    try:
        gateway = launch()
    except BaseException as error:
        if launched.set_running_or_notify_cancel():
            launched.set_exception(error)
    else:
        if launched.set_running_or_notify_cancel():
            launched.set_result(gateway)
        else:
            _end(gateway)


def _end(gateway: Any) -> None:
    """End a JVM that is not used: it ends when its input does."""
    if gateway.proc is not None:  # it is not another program's
        gateway.proc.stdin.close()
        with suppress(TimeoutExpired):
            gateway.proc.wait(PATIENCE)


def _log_lines(readable: int, last: deque[str]) -> None:
    with os.fdopen(readable, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            logger.debug("%s", line.rstrip())
            if not line.startswith(STACK):
                last.append(line.rstrip())
