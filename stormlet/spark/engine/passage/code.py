"""The user's code on the executors: modules that the plan names travel with the run, and are imported there by name.

Records and bolts must be imported: pickled by value, a record class loses its fields. So the modules are found that the
pickled plan names, and with them all that are loaded from the same folders, as they import each other. Those of
Python and of installed packages are left out: executors have their own
(:mod:`stormlet.spark.engine.passage.executors`).
"""

from __future__ import annotations

import pickle
import pickletools
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, cast
from zipfile import ZipFile, ZipInfo

import msgspec

from stormlet.core.shortened import shown
from stormlet.errors import InvalidTopology
from stormlet.model.description import BoltSpec, Description, SpoutSpec
from stormlet.model.logic import what_is_called
from stormlet.spark.engine.passage.staging import Staging
from stormlet.spark.engine.planning.numbering import ClusterPlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVES: Final = (".py", ".zip", ".egg", ".jar")
"""Files that are put on the path of the executors' Python."""


@cache
def archives() -> Staging:
    """Return the folder of all archives of this process. An executor may fetch one at any time until the session ends,
    and again when another one of the same name comes."""
    return Staging(None)


_turn = Lock()
"""Held while an archive is made and sent: runs beside each other make the same one."""


def ship(session: SparkSession, pickled: Iterable[bytes], files: Iterable[Path]) -> None:
    """Send the code that these pickles name, and ``files``, to the executors of a session."""
    modules = modules_named(pickled)
    if modules:
        with _turn:
            session.addArtifacts(str(archive(modules, archives().path)), pyfile=True)
    for file in files:
        if file.suffix in ARCHIVES:
            session.addArtifacts(str(file), pyfile=True)
        else:
            session.addArtifacts(str(file), file=True)


def modules_named(pickled: Iterable[bytes]) -> Sequence[Path]:
    """Return the modules and packages of the user's that pickles name, and all that are loaded from their folders."""
    texts = (text for each in pickled for text in _texts(each))
    named = {text.partition(".")[0] for text in texts if text in sys.modules}
    folders = {place.parent for name in named if (place := _place_of(name)) is not None}
    loaded = {name.partition(".")[0] for name in list(sys.modules)}
    places = {place for name in loaded if (place := _place_of(name)) is not None}
    return sorted(place for place in places if place.parent in folders)


def archive(modules: Sequence[Path], folder: Path) -> Path:
    """Return a zip archive of modules and packages, whose name says its content."""
    files = {
        str(file.relative_to(module.parent)): file.read_bytes()
        for module in modules
        for file in _files(module)
    }
    digest = sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]
    path = folder / f"stormlet-code-{digest}.zip"
    if path.exists():
        return path
    # Packages without ``__init__.py`` are only found in an archive that lists their folders.
    folders = {f"{parent}/" for name in files for parent in Path(name).parents if parent.name}
    with ZipFile(path, "w") as zipped:
        for name in sorted(folders):
            zipped.writestr(ZipInfo(name), b"")
        for name, content in sorted(files.items()):
            zipped.writestr(ZipInfo(name), content)
    return path


def _texts(pickled: bytes) -> Iterator[str]:
    for _, argument, _ in pickletools.genops(pickled):
        if isinstance(argument, str):
            yield argument
            if " " in argument:  # a class as the oldest protocols write it: module and name
                yield argument.partition(" ")[0]


def _place_of(name: str) -> Path | None:
    """The file of a module, or the folder of a package; None for one that executors have by themselves."""
    module = sys.modules.get(name)
    origin = cast("str | None", getattr(module, "__file__", None) or _of_namespace(module))
    if origin is None or name in ("__main__", "stormlet") or name in sys.stdlib_module_names:
        return None
    path = Path(origin).resolve()
    if not (path.suffix == ".py" or path.is_dir()) or any(path.is_relative_to(each) for each in _installed()):
        return None
    return path.parent if path.name == "__init__.py" else path


def _of_namespace(module: object) -> str | None:
    """The folder of a package without ``__init__.py``."""
    return next(iter(cast("Iterable[str]", getattr(module, "__path__", ()))), None)


def _installed() -> Sequence[Path]:
    paths = sysconfig.get_paths()
    of_python = (paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return [
        Path(each).resolve() for each in (*of_python, *site.getsitepackages(), site.getusersitepackages())
    ]


def _files(module: Path) -> Iterator[Path]:
    yield from sorted(module.rglob("*.py")) if module.is_dir() else [module]


def pickled(cluster: ClusterPlan) -> bytes:
    """Return the plan as the tasks of Spark get it: without sources, and without the logic of bolts in the driver.

    Raises :class:`~stormlet.errors.InvalidTopology` naming the component of which something cannot be pickled.
    """
    description = cluster.plan.description
    driver = cluster.layout.driver
    shipped = msgspec.structs.replace(
        description,
        spouts={id: msgspec.structs.replace(each, source=None) for id, each in description.spouts.items()},
        bolts={id: _shipped(each, in_driver=id in driver) for id, each in description.bolts.items()},
    )
    plan = msgspec.structs.replace(cluster.plan, description=shipped)
    try:
        return _dumped(msgspec.structs.replace(cluster, plan=plan))
    except Exception as error:
        raise _unfit(shipped, error) from error


def _unfit(description: Description, error: Exception) -> InvalidTopology:
    for id, component in description.components.items():
        try:
            _dumped(component)
        except Exception as cause:
            return InvalidTopology(
                f"on Spark, {id!r} cannot travel to other machines: {shown(cause)}; make in prepare what stays on one"
            )
    return InvalidTopology(f"on Spark, the topology cannot travel to other machines: {shown(error)}")


def _dumped(thing: object) -> bytes:
    from pyspark import cloudpickle

    return cast("bytes", cast("Any", cloudpickle).dumps(thing))


def code_of(spout: SpoutSpec) -> bytes:
    """Return the modules that a spout and its messages come from, pickled."""
    declared = [output.schema.declared for output in spout.outputs.values()]
    return pickle.dumps(
        [getattr(each, "__module__", None) for each in (what_is_called(spout.source), *declared)]
    )


def _shipped(bolt: BoltSpec, *, in_driver: bool) -> BoltSpec:
    # Subscriptions know the topology, and by it all sources.
    inputs = [replace(each, topology=None) for each in bolt.inputs]
    return msgspec.structs.replace(bolt, inputs=inputs, logic=None if in_driver else bolt.logic)
