"""Instances of user code: the worker of a bolt, and a spout."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar, cast

from stormlet.core.shortened import shortened
from stormlet.core.state.outgoing import Epoch
from stormlet.core.state.value_table import ValueTable
from stormlet.errors import InvalidTopology, StartFailed
from stormlet.model.components import BasicBolt, BatchBolt, Bolt, BoltBase, Spout, overrides
from stormlet.model.description import BoltSpec, SpoutSpec
from stormlet.model.logic import LogicKind, check_bolt, check_spout
from stormlet.model.plan import TaskPlan
from stormlet.model.state.committers import BatchCommitter, Committer
from stormlet.model.state.declared import Cell, Value
from stormlet.model.state.epoch_bolts import EpochBolt
from stormlet.model.state.keyed import KeyedBolt
from stormlet.runtime.bolt.batches import BatchRunner, BatchWorker, check_batch
from stormlet.runtime.bolt.committer import BatchCommitterWorker, CommitterWorker
from stormlet.runtime.bolt.epoch_worker import EpochWorker
from stormlet.runtime.bolt.functions import BasicWorker, BoltWorker, FunctionWorker
from stormlet.runtime.bolt.keyed import CellWorker, KeyedWorker
from stormlet.runtime.bolt.task_state import TaskState
from stormlet.runtime.bolt.threads import ThreadedBatchBolt, ThreadWorker
from stormlet.runtime.bolt.worker import Wiring, Worker
from stormlet.runtime.run.kit import Kit
from stormlet.runtime.usercode import as_exception

R = TypeVar("R")

UNMADE: Final[ContextVar[str]] = ContextVar("stormlet_unmade", default="a component")
"""The component whose constructor has ended the process, for whoever catches that: by then no run is there to ask."""


class Instances:
    """Makes the instances of one run, and refuses what is no spout or bolt."""

    def __init__(
        self,
        topology: str,
        kit: Kit,
        *,
        tracked: bool,
        simulated: bool,
        state_of: Callable[[TaskPlan, BoltSpec], TaskState] | None = None,
        open_epoch: Callable[[], Epoch] | None = None,
    ) -> None:
        """``state_of`` gives the state of a task and ``open_epoch`` the open epoch, where messages belong to epochs."""
        self._topology = topology
        self._kit = kit
        self._tracked = tracked
        self._simulated = simulated
        self._state_of = state_of
        self._open_epoch = open_epoch
        self._checked: dict[str, type] = {}
        """The class of the last instance that was checked, by component: most are of the same."""

    def worker(self, spec: BoltSpec, wiring: Wiring) -> Worker:
        """Return the worker for a new instance of a bolt.

        Raises :class:`~stormlet.errors.StartFailed` with what the constructor raised, and
        :class:`~stormlet.errors.InvalidTopology` for an instance that is no bolt, or cannot work here.
        """
        # Under simulated time threads would break the order of events: their code runs inline (law B9).
        threads = spec.concurrency if spec.executor == "thread" and not self._simulated else 0
        worker = self._worker_of(spec, wiring, threads)
        if threads and not isinstance(worker, BatchWorker):
            worker = ThreadWorker(worker, threads)
        return self._kit.worker(wiring.plan, worker)

    def _worker_of(self, spec: BoltSpec, wiring: Wiring, threads: int) -> Worker:
        if spec.state is not None and self._state_of is not None:
            return self._cell_worker(spec, wiring, spec.state, self._state_of(wiring.plan, spec))
        if spec.kind is LogicKind.FUNCTION:
            return FunctionWorker(wiring, cast("Callable[[Any], object]", spec.logic))
        bolt = self._make(f"bolt {spec.id!r}", cast("Callable[[], BoltBase[Any, Any]]", spec.logic))
        if not isinstance(cast("object", bolt), BoltBase):
            raise InvalidTopology(
                f"bolt {spec.id!r}: the factory made {shortened(bolt)}, which is no Bolt, BasicBolt or BatchBolt; "
                f"{_instead_of(bolt, 'a function of the value takes one argument')}"
            )
        self._check(spec, bolt)
        self._check_acks(f"bolt {spec.id!r}", bolt)
        if spec.options.get("tick") is not None and not overrides(bolt, BoltBase, "tick"):
            raise InvalidTopology(
                f"bolt {spec.id!r} has tick={spec.tick}, but {type(bolt).__name__} defines no tick(self, out)"
            )
        self._kit.instance(wiring.plan, bolt)
        if isinstance(bolt, Committer):
            return self._committer_worker(spec, wiring, cast("Any", bolt))
        if isinstance(bolt, BatchBolt):
            check_batch(spec.id, bolt)
            batches = ThreadedBatchBolt(bolt, wiring, threads) if threads else bolt
            return BatchWorker(wiring, BatchRunner(batches, wiring))
        if isinstance(bolt, EpochBolt):
            return self._epoch_worker(spec, wiring, cast("Any", bolt))
        if isinstance(bolt, KeyedBolt):
            return self._keyed_worker(spec, wiring, cast("Any", bolt))
        if isinstance(bolt, BasicBolt):
            return BasicWorker(wiring, bolt)
        return BoltWorker(wiring, cast("Bolt[Any, Any]", bolt))

    def _keyed_worker(self, spec: BoltSpec, wiring: Wiring, bolt: KeyedBolt[Any, Any, Any]) -> KeyedWorker:
        if self._state_of is None or not spec.keyed:
            raise InvalidTopology(
                f"bolt {spec.id!r}: its factory made a KeyedBolt, whose state must be known before; annotate what it "
                f"returns: -> {type(bolt).__name__}"
            )
        return KeyedWorker(wiring, bolt, self._state_of(wiring.plan, spec), at_once=spec.concurrency)

    def _epoch_worker(self, spec: BoltSpec, wiring: Wiring, bolt: EpochBolt[Any, Any]) -> EpochWorker:
        if self._state_of is None or self._open_epoch is None or not spec.by_epochs:
            raise InvalidTopology(
                f"bolt {spec.id!r}: its factory made an EpochBolt, for which messages must belong to epochs; annotate "
                f"what it returns: -> {type(bolt).__name__}"
            )
        first = [bolt]

        def make() -> EpochBolt[Any, Any]:
            if first:
                return first.pop()
            made = self._make(f"bolt {spec.id!r}", cast("Callable[[], EpochBolt[Any, Any]]", spec.logic))
            self._kit.instance(wiring.plan, made)
            return made

        return EpochWorker(wiring, make, self._state_of(wiring.plan, spec), self._open_epoch)

    def _committer_worker(self, spec: BoltSpec, wiring: Wiring, bolt: Committer[Any]) -> Worker:
        state = None if self._state_of is None else self._state_of(wiring.plan, spec)
        if state is None or state.outgoing is None:
            raise InvalidTopology(
                f"bolt {spec.id!r}: its factory made a Committer, whose rows must be known before; annotate what it "
                f"returns: -> {type(bolt).__name__}"
            )
        if isinstance(bolt, BatchCommitter):
            check_batch(spec.id, bolt)
            return BatchCommitterWorker(wiring, bolt, state.outgoing, state.attempt)
        return CommitterWorker(wiring, bolt, state.outgoing, state.attempt)

    def _cell_worker(
        self, spec: BoltSpec, wiring: Wiring, declaration: Value[Any], state: TaskState
    ) -> CellWorker:
        function = cast("Callable[[Any, Cell[Any]], object]", spec.logic)
        table = cast("ValueTable", next(iter(state.tables.values())))
        return CellWorker(wiring, function, Cell(declaration, table), state, at_once=spec.concurrency)

    def spout(self, spec: SpoutSpec, plan: TaskPlan) -> Spout[Any]:
        """Return a new instance of a spout; raise as :meth:`worker` does."""
        spout = self._make(f"spout {spec.id!r}", cast("Callable[[], Spout[Any]]", spec.source))
        if not isinstance(cast("object", spout), Spout):
            raise InvalidTopology(
                f"spout {spec.id!r}: the factory made {shortened(spout)}, which is no Spout; "
                f"{_instead_of(spout, 'let the function yield its values, or pass what it returns')}"
            )
        check_spout(f"spout {spec.id!r}", spout)
        self._check_acks(f"spout {spec.id!r}", spout)
        self._kit.instance(plan, spout)
        return spout

    def _check(self, spec: BoltSpec, bolt: object) -> None:
        if self._checked.get(spec.id) is not type(bolt):
            check_bolt(f"bolt {spec.id!r}", bolt, spec.executor)
            self._checked[spec.id] = type(bolt)

    def _check_acks(self, where: str, component: BoltBase[Any, Any] | Spout[Any]) -> None:
        if component.needs_acks and not self._tracked:
            raise InvalidTopology(
                f"{where}: {type(component).__name__} lives by acks and cannot run with ackers=0; set ackers to 1"
            )

    def begun(self, spec: SpoutSpec, begin: Callable[[], R]) -> R:
        """Begin to go through the values of a source; raise :class:`~stormlet.errors.StartFailed` with what its
        ``__iter__`` raised."""
        return self._make(f"spout {spec.id!r}", begin, "`iter`")

    def _make(self, component: str, factory: Callable[[], R], what: str = "the constructor") -> R:
        try:
            return factory()
        except (Exception, asyncio.CancelledError) as error:
            raise StartFailed(self._topology, component, what) from as_exception(error)


@contextmanager
def making(component: str) -> Generator[None]:
    """Note the component whose constructor runs, for the case that it ends the process."""
    try:
        yield
    except (SystemExit, KeyboardInterrupt):
        UNMADE.set(component)
        raise


def _instead_of(made: object, else_: str) -> str:
    """Advice: the right way to use an object that a factory has made."""
    if isinstance(made, type) and issubclass(made, BoltBase | Spout):
        return f"pass {made.__name__} itself, or let the factory call it"
    if isinstance(made, Spout):
        return "add it with topology.spout(...)"
    return "add it with topology.bolt(...)" if isinstance(made, BoltBase) else else_
