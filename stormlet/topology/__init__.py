"""``Topology``, the builder that users hold: it collects components, which are checked as they come, and runs them.

::

    builder    the ids and options of components
    spouts     declarations of spouts, in every form that a source may have
    bolts      declarations of bolts, in every form that their logic may have
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Unpack, cast, overload

from msgspec.structs import replace

from stormlet.core.state.commits import Store
from stormlet.errors import InvalidConfiguration, InvalidTopology
from stormlet.model.builder_types import NumberOptions, TopologyOptions
from stormlet.model.checks.components import OneShotSources, check_text
from stormlet.model.checks.durable import check_durable, check_place, check_volatile
from stormlet.model.configuration import Configuration, read_options
from stormlet.model.description import Description, place_of_sources
from stormlet.model.planning import plan
from stormlet.model.streams import Stream
from stormlet.topology.bolts import BoltBuilder
from stormlet.topology.builder import configured
from stormlet.topology.spouts import SpoutBuilder

RUNTIME: Final = "stormlet.runtime.run.entry"
"""The module that imports all of the runtime, and asyncio with it."""

if TYPE_CHECKING:
    from stormlet.runtime import dead_letters as letters
    from stormlet.runtime import tracing
    from stormlet.runtime.epochs import states
    from stormlet.runtime.hooks import run as run_hooks
    from stormlet.runtime.run import entry, handle
else:

    class _Late:
        """A module that is imported when one of its names is used, as by ``typing.get_type_hints``."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> object:
            return getattr(importlib.import_module(self._name), name)

    entry, handle = _Late(RUNTIME), _Late("stormlet.runtime.run.handle")
    letters = _Late("stormlet.runtime.dead_letters")
    states, run_hooks = _Late("stormlet.runtime.epochs.states"), _Late("stormlet.runtime.hooks.run")
    tracing = _Late("stormlet.runtime.tracing")
    # A program that has loaded asyncio may build its topology inside a loop, which the import would hold up (law F2).
    if "asyncio" in sys.modules:
        importlib.import_module(RUNTIME)

StateTarget: TypeAlias = str | os.PathLike[str] | Store
"""The place of a topology's state: the path of a file or of a directory of RocksDB, or a store."""

Sources: TypeAlias = Mapping[str, object] | Mapping[Stream[Any], object]
"""Sources of spouts, by the id or stream of a spout."""


class Topology(SpoutBuilder, BoltBuilder):
    """A named graph of spouts and bolts.

    ``state`` is the file that its state is kept in, with the positions of its sources: another run goes on where this
    one has ended, also by ``kill -9`` (law X1). A path that ends with ``.rocksdb`` is a directory of RocksDB, for state
    that does not fit into memory (``stormlet[rocksdb]``). Without ``state`` it is lost with the process.

    ``configuration`` are options of :class:`~stormlet.model.configuration.Configuration`; Storm's names go
    through ``**{...}``. Raises :class:`~stormlet.errors.InvalidTopology` for a name that is empty or no text in
    UTF-8, and :class:`~stormlet.errors.InvalidConfiguration` for an option that does not exist or does not fit.
    """

    # Type checkers hold the values of a mapping, as Storm's names come in one, against every option: without the one
    # that is a word, a mapping of numbers fits.

    @overload
    def __init__(self, name: str, **configuration: Unpack[NumberOptions]) -> None: ...
    @overload
    def __init__(
        self, name: str, *, state: StateTarget | None = None, **configuration: Unpack[TopologyOptions]
    ) -> None: ...
    def __init__(self, name: str, *, state: StateTarget | None = None, **configuration: object) -> None:
        if not isinstance(cast("object", name), str) or not name.strip():
            raise InvalidTopology(f"a topology needs a name, not {name!r}")
        where = f"topology {name!r}"
        check_text(where, name)
        super().__init__(name, configured(Configuration(), configuration, where, name))
        self._given = read_options(configuration, "").values
        self._state = state
        self._one_shot = OneShotSources()
        # Now, as the first run would hold its loop for a tenth of a second (law F2); and not with this module, as
        # asyncio takes longer to import than all of this.
        importlib.import_module(RUNTIME)

    @property
    def state(self) -> StateTarget | None:
        """The place of its state: a file or a store, of its own or that of a source's checkpoint; None where state is
        lost with the process (law K9)."""
        return self._state if self._state is not None else place_of_sources(self._spouts.values()) or None

    def describe(self, sources: Sources | None = None) -> Description:
        """Return the frozen description, with these ``sources`` in place of those of spouts; raise
        :class:`~stormlet.errors.InvalidTopology` if it cannot run."""
        description = Description(
            self.name,
            self._configuration,
            dict(self._spouts),
            dict(self._bolts),
            self._given,
            "" if self._state is None else str(self._state),
        )
        description.validate(state_survives=True)  # that depends on the engine, and is checked for each run
        described = description.with_sources(self._by_id(sources or {}))
        if self._state is not None:
            check_place(described)
            return described
        return replace(described, state=place_of_sources(described.spouts.values()))

    def run(
        self,
        *,
        seed: int | None = None,
        active: bool = True,
        dead_letters: letters.DeadLetterTarget | None = None,
        sources: Sources | None = None,
        state: StateTarget | None = None,
        hooks: Sequence[run_hooks.HookFactory] = (),
        traces: tracing.Traces | None = None,
        **configuration: Unpack[TopologyOptions],
    ) -> entry.Run:
        """Run the topology: ``async with topology.run() as running``. Leaving the block drains it, an exception in the
        block cancels it (law C3, C5).

        ``seed`` makes a run under simulated time repeatable, event for event (law L16); without it, the
        loop's own seed is used there. With ``active=False`` spouts are opened but not asked for tuples before
        ``running.activate()``. ``dead_letters`` is a callable that gets each
        :class:`~stormlet.core.outcomes.DeadLetter`, or the path of a JSONL file (law S6). ``sources`` are for
        this run, by the id or stream of a spout: see :meth:`set_source`. ``configuration`` overrides the
        topology's options for this run; options of single components stay. ``state`` is the place of the state for
        this run, instead of the one that the topology names. ``hooks`` are classes of
        :class:`~stormlet.model.hooks.TaskHook`, or functions without parameters that make one: each task gets its own.
        ``traces`` has some messages traced, as by :class:`stormlet.exports.opentelemetry.Traces`.

        Raises :class:`~stormlet.errors.InvalidTopology` and :class:`~stormlet.errors.InvalidConfiguration`
        here, and :class:`~stormlet.errors.StartFailed` or :class:`~stormlet.errors.TopologyCrashed` from the
        block.
        """
        where = f"run of topology {self.name!r}"
        if seed is not None and not isinstance(cast("object", seed), int):
            raise InvalidConfiguration(f"{where}: seed must be an int or None, not {seed!r}")
        tracing.check_traces(where, traces)
        changed = configured(self._configuration, configuration, where, self.name)
        given = read_options(configuration, where).values
        described = self.describe(sources)
        if state is not None:
            check_place(described)
        target = self._place(described) if state is None else state
        description, configurations = described.configured(changed, where, given)
        planned = plan(description, configurations, state_survives=target is not None)

        def make(state: states.KeptState | None) -> handle.Running:
            self._one_shot.use(description.spouts.values())
            options = handle.RunOptions(
                seed, active, dead_letters, run_hooks.factories_of(self.name, hooks), traces
            )
            return handle.Running(planned, configurations, options, self, state)

        if target is None:
            check_volatile(description)
        if target is None and not description.has_epochs:
            return entry.Run(self.name, make)
        if not description.configuration.ackers:
            raise InvalidTopology(f"{where}: state needs acks, and ackers=0 has none; set ackers to 1")
        if target is not None:
            check_durable(description)
        open_store = partial(_opened, target, self.name, description.configuration.history)
        return entry.Run(
            self.name, make, partial(states.opened_state, open_store, description, durable=target is not None)
        )

    def _place(self, described: Description) -> StateTarget | None:
        return described.state or None if self._state is None else self._state

    def _by_id(self, sources: Sources) -> Mapping[str, object]:
        return {self._spout_of(spout): source for spout, source in sources.items()}


def _opened(target: StateTarget | None, topology: str, history: float) -> Store:
    """Open the store that a run is to have; raises :class:`~stormlet.errors.StateUnusable`."""
    # Not before: sqlite is nothing that a topology without state should load.
    state = importlib.import_module("stormlet.state.stores")
    return cast("Store", state.opened(target, topology, history=history))
