"""The ``state check`` and ``state import`` commands, which need the topology."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from time import time
from typing import Annotated, Any, cast

import msgspec
from cyclopts import Parameter

from stormlet.cli.inspecting.inspection import Inspection, inspect_topology
from stormlet.cli.output import write_text
from stormlet.cli.parameters import DEFAULTS, Flag, Target, TargetOptions
from stormlet.cli.state.files import File, check_there
from stormlet.core.shortened import counted, cut, printable
from stormlet.core.state.blobs import PAIR, bytes_of_key, cut_into_blobs
from stormlet.core.state.commits import Append, Commit, StateId, Stored
from stormlet.core.state.lazy.states import load_state, state_in
from stormlet.core.state.map_table import MapTable
from stormlet.core.state.states import State
from stormlet.errors import StateUnusable, TargetError
from stormlet.model.builder_types import TopologyOptions
from stormlet.model.description import Description
from stormlet.model.setting_layers import Layered
from stormlet.runtime.epochs.merging import merged
from stormlet.runtime.epochs.states import KeptState
from stormlet.state.entries import as_json, decoder_of, plain
from stormlet.state.memory import MemoryStore
from stormlet.state.stores import owned, reader
from stormlet.topology import Topology

EXAMPLES = {
    "check": """\
stormlet state check topology.py counts.state""",
    "import": """\
stormlet state import topology.py new.state counts.jsonl
stormlet state import topology.py counts.state from-spark.jsonl --merge""",
}


def check(target: Target, path: File, /, *, options: TargetOptions = DEFAULTS) -> int:
    """See if a topology would start with a state file, by the same refusals as a run; nothing runs, and the file stays
    as it is.

    The exit code is 2 if the file or the topology would be refused, as that of a run.
    """
    settings = options.layered()
    inspection = inspected(options.topology(target), path, settings)
    check_there(path)
    with closing(reader(path)) as found:
        found.check_topology(inspection.description.name)
        stored = found.load()
        kept = KeptState(MemoryStore(), stored, inspection.description)
        place = found.path
    begins = "begin" if not stored.epoch else f"go on after epoch {stored.epoch:,}"
    write_text(f"{printable(str(path))} fits {inspection.headline}; a run would {begins}\n")
    for state in kept.states:
        new = "" if state.id in stored.shapes or state.id in stored.states else ", which is new"
        write_text(f"  {cut(str(state.id))}: {_entries(state.size)}{new}\n")
    if not all(os.access(each, os.W_OK) for each in (place, place.parent)):
        write_text(
            "  a run also needs the right to write it and its directory, which this user does not have\n"
        )
    return 0


def inspected(topology: Topology, path: Path, settings: Layered) -> Inspection:
    """Look at a topology that is to have a state file, without running it."""
    inspection = inspect_topology(topology, settings)
    topology.run(state=path, **cast("TopologyOptions", settings.values)).close()  # for its checks alone
    return inspection


def _entries(count: int) -> str:
    return counted(count, "entry", "entries")


def import_(
    target: Target,
    path: File,
    file: Annotated[Path, Parameter(name="FILE", show_default=False)],
    /,
    *,
    merge: Flag = False,
    options: TargetOptions = DEFAULTS,
) -> int:
    """Put the entries of a file of JSON lines, as "state export" writes them, into a state file, as one more epoch.

    The file is made if it is missing. Entries take the place of those with the same key; others stay, and so do the
    positions of sources. All of them are put, or none: two lines of one key are refused. No run may have the file.

    Parameters
    ----------
    file
        JSON lines, each with state, key and value.
    merge
        Merge entries with those of the same key, by the merge of their bolt, as where two runs have counted apart.
    """
    settings = options.layered()
    inspection = inspected(options.topology(target), path, settings)
    description = inspection.description
    entries = _read(file, {id: State(id, declared) for id, declared in description.states.items()})
    if not os.access(path, os.F_OK):
        # Tried first on an empty state in memory, so that a refused import leaves no empty file behind.
        _appends(description, file, entries, MemoryStore().load(), merge=merge)
    with closing(owned(path, description.name)) as store:
        stored = store.load()
        appends = _appends(description, file, entries, stored, merge=merge)
        store.declare({id: declared.shape for id, declared in description.states.items()})
        store.commit(Commit(stored.epoch + 1, time(), {}, appends, letters_delivered=0))
    total = sum(map(len, entries.values()))
    write_text(f"{_entries(total)} of {counted(len(entries), 'state')} in {printable(str(path))}\n")
    return 0


def _appends(
    description: Description,
    file: Path,
    entries: Mapping[StateId, Mapping[Any, Any]],
    stored: Stored,
    *,
    merge: bool,
) -> Sequence[Append]:
    """Return what is to be appended to what is stored. Raise what refuses the import."""
    KeptState(MemoryStore(), stored, description)
    states = {id: State(id, declared) for id, declared in description.states.items()}
    appends = [Append(id, blob) for id, each in entries.items() for blob in cut_into_blobs(each)]
    _load(states, {} if merge else _beside(entries, states, stored), appends)
    _refuse_gaps(file, entries, states)
    return _merged(description, stored, states) if merge else appends


def _beside(
    entries: Mapping[StateId, Mapping[Any, Any]], states: Mapping[StateId, State], stored: Stored
) -> Mapping[StateId, Sequence[bytes]]:
    """Return what is kept of the states beside the entries: of a store that finds entries by their keys, the lists that
    are to change."""
    if stored.entries is None:
        return stored.states
    found: dict[StateId, Sequence[bytes]] = {}
    for id, each in entries.items():
        if states[id].declared.kind == "list":
            kept, keys = stored.entries(id), dict.fromkeys(key for key, _ in each)
            found[id] = [blob for key in keys for blob in kept.scan(PAIR + bytes_of_key(key))]
    return found


def _load(
    states: Mapping[StateId, State], blobs: Mapping[StateId, Sequence[bytes]], appends: Iterable[Append]
) -> None:
    """Load states that are to change, as a run would, so that it finds nothing that it cannot read."""
    found = {id: list(each) for id, each in blobs.items()}
    for each in appends:
        found.setdefault(each.state, []).append(each.blob)
    for id in {each.state for each in appends}:
        states[id].load(found[id])
    now = time()
    for state in states.values():
        state.tell(now)


def _refuse_gaps(
    file: Path, entries: Mapping[StateId, Mapping[Any, Any]], states: Mapping[StateId, State]
) -> None:
    """Raise :class:`~stormlet.errors.TargetError` for a list of which an item would be missing: a bolt would read none
    of its type there."""
    for id, each in entries.items():
        table = states[id].tables[0]
        if states[id].declared.kind != "list" or not isinstance(table, MapTable):
            continue
        for key in dict.fromkeys(key for key, _ in each):
            for expected, found in enumerate(sorted(table.inner(key))):
                if found != expected:
                    raise TargetError(
                        f"{file}: the list {str(id)!r} of the key {cut(as_json(plain(key)))} would have item {found} "
                        f"where item {expected} belongs; add the lines that are missing, or count its items from 0; "
                        f"nothing was put into the state file"
                    )


def _merged(description: Description, stored: Stored, others: Mapping[StateId, State]) -> Sequence[Append]:
    """Return the entries to append, merged with those that are there."""
    own = {id: state_in(stored, id, each) for id, each in description.states.items()}
    for state in own.values():
        load_state(state, stored)
        state.tell(time())
    try:
        return merged(description, own, others)
    except StateUnusable as error:
        raise TargetError(f"{error}; nothing was put into the state file") from error.__cause__


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    state: str
    key: msgspec.Raw
    value: msgspec.Raw
    written: float | None = None


class _Entries:
    """The entries of each state, with their times where there is a ttl; each is of one line."""

    def __init__(self, states: Mapping[StateId, State]) -> None:
        self.found: dict[StateId, dict[Any, Any]] = {}
        self._ids = {str(id): id for id in states}
        self._decoders = {id: decoder_of(state.declared) for id, state in states.items()}
        self._lines: dict[StateId, dict[Any, int]] = {}

    def add(self, number: int, text: bytes) -> None:
        """Add the entry of a line. Raise what :mod:`msgspec` does, :class:`ValueError` or :class:`TypeError` for one
        that does not fit, or that is there already."""
        line = msgspec.json.decode(text, type=_Line)
        id = self._ids.get(line.state)
        if id is None:
            known = ", ".join(self._ids) or "none"
            raise ValueError(f"there is no state {cut(line.state)!r} in this topology; it has {known}")
        key, value = self._decoders[id](bytes(line.key), bytes(line.value), line.written)
        first = self._lines.setdefault(id, {}).setdefault(key, number)
        if first != number:
            raise ValueError(
                f"line {first} has an entry of the same key; leave one of them out, or import one file after the other "
                f"with --merge"
            )
        self.found.setdefault(id, {})[key] = value


def _read(path: Path, states: Mapping[StateId, State]) -> Mapping[StateId, Mapping[Any, Any]]:
    entries = _Entries(states)
    for number, text in _lines(path):
        try:
            entries.add(number, text)
        except (msgspec.MsgspecError, ValueError, TypeError) as error:
            raise TargetError(
                f"{path}, line {number}: {error}; nothing was put into the state file"
            ) from None
    return entries.found


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            yield from ((number, line) for number, line in enumerate(file, 1) if line.strip())
    except OSError as error:
        raise TargetError(f"the entries of {path} cannot be read: {error.strerror}") from None
