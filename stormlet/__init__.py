"""Storm's guarantees in one asyncio process.

The package, from the ground up. Imports only go down, and nothing inside imports ``stormlet`` itself
(``tests/test_layers.py``)::

    starting, acceleration   steps that come before every other import
    errors                   the tree of errors
    core/                    DECIDES: the law, without a clock or an event loop
    report/                  SAYS: records about a run
    model/                   DECLARES: the user's description of a topology, checked before anything runs
    runtime/                 ACTS: coroutines, queues and timers around these
    topology                 the builder that users hold
    drawing/                 a topology as a picture
    blocking, loading, log_formatter, testing/, spark/, ui/, bench/, cli/   the edges
"""

from __future__ import annotations

import importlib
import typing

from stormlet.starting import imported as _imported  # isort: skip # first, as it is about all these imports
from stormlet.acceleration import is_compiled  # second, as it decides which files the others are
from stormlet.core.groupings import CustomGrouping
from stormlet.core.histogram import Histogram
from stormlet.core.outcomes import (
    DeadLetter,
    Failure,
    FailureKind,
    Outstanding,
    Place,
    TupleFailed,
    TupleTimedOut,
)
from stormlet.core.state.outgoing import Epoch
from stormlet.core.state.stored_values import Opaque, Transactional, opaque, transactional
from stormlet.core.timeline import Ending, Execution, Timeline
from stormlet.core.tracebacks import Call
from stormlet.core.tuples import Tuple
from stormlet.errors import (
    AlreadySettled,
    BrokerGivenUp,
    BrokerRefused,
    ConnectionLost,
    ConnectorError,
    EndOfStream,
    EpochFailed,
    InvalidConfiguration,
    InvalidEmit,
    InvalidTopology,
    KeyFunctionFailed,
    NotExactlyOnce,
    NotTracked,
    Reject,
    StartFailed,
    StateUnusable,
    StillHeld,
    StormletError,
    StrayCancellation,
    TargetError,
    TaskKilled,
    TopologyCrashed,
    TopologyStopping,
    UnroutableKey,
)
from stormlet.model.components import (
    BasicBolt,
    BatchBolt,
    Bolt,
    Collector,
    ReliableSpout,
    Spout,
    SpoutCollector,
    TaskContext,
    To,
)
from stormlet.model.configuration import Configuration
from stormlet.model.description import Description
from stormlet.model.hooks import (
    BoltAckInfo,
    BoltExecuteInfo,
    BoltFailInfo,
    EmitInfo,
    SpoutAckInfo,
    SpoutFailInfo,
    TaskHook,
)
from stormlet.model.state.committers import Committer
from stormlet.model.state.declared import Cell, ListOf, MapOf, Value
from stormlet.model.state.epoch_bolts import EpochBolt
from stormlet.model.state.keyed import KeyedBolt
from stormlet.model.streams import DirectStream, Stream, Subscription
from stormlet.report.bottleneck import Bottleneck, BottleneckKind
from stormlet.report.explanation import Explanation, Occupation, TreeState
from stormlet.report.failures import RepeatedFailure
from stormlet.report.figures import (
    ComponentFigures,
    EdgeFigures,
    Figures,
    LoopFigures,
    Percentiles,
    Shares,
    StreamFigures,
    TaskFigures,
)
from stormlet.report.health import Health, RunState
from stormlet.report.series import Point
from stormlet.report.statistics import (
    AgedTrees,
    ComponentStatistics,
    EdgeStatistics,
    EpochStatistics,
    LoopStatistics,
    Progress,
    StateStatistics,
    Statistics,
    StreamStatistics,
    TaskStatistics,
)
from stormlet.topology import Topology

if typing.TYPE_CHECKING:
    from stormlet.blocking import run
    from stormlet.log_formatter import LogFormatter
    from stormlet.runtime.run.handle import Running
    from stormlet.runtime.tree import Tree
    from stormlet.state.sqlite.table import SqliteTable

__all__ = [
    "AgedTrees",
    "AlreadySettled",
    "BasicBolt",
    "BatchBolt",
    "Bolt",
    "BoltAckInfo",
    "BoltExecuteInfo",
    "BoltFailInfo",
    "Bottleneck",
    "BottleneckKind",
    "BrokerGivenUp",
    "BrokerRefused",
    "Call",
    "Cell",
    "Collector",
    "Committer",
    "ComponentFigures",
    "ComponentStatistics",
    "Configuration",
    "ConnectionLost",
    "ConnectorError",
    "CustomGrouping",
    "DeadLetter",
    "Description",
    "DirectStream",
    "EdgeFigures",
    "EdgeStatistics",
    "EmitInfo",
    "EndOfStream",
    "Ending",
    "Epoch",
    "EpochBolt",
    "EpochFailed",
    "EpochStatistics",
    "Execution",
    "Explanation",
    "Failure",
    "FailureKind",
    "Figures",
    "Health",
    "Histogram",
    "InvalidConfiguration",
    "InvalidEmit",
    "InvalidTopology",
    "KeyFunctionFailed",
    "KeyedBolt",
    "ListOf",
    "LogFormatter",
    "LoopFigures",
    "LoopStatistics",
    "MapOf",
    "NotExactlyOnce",
    "NotTracked",
    "Occupation",
    "Opaque",
    "Outstanding",
    "Percentiles",
    "Place",
    "Point",
    "Progress",
    "Reject",
    "ReliableSpout",
    "RepeatedFailure",
    "RunState",
    "Running",
    "Shares",
    "Spout",
    "SpoutAckInfo",
    "SpoutCollector",
    "SpoutFailInfo",
    "SqliteTable",
    "StartFailed",
    "StateStatistics",
    "StateUnusable",
    "Statistics",
    "StillHeld",
    "StormletError",
    "StrayCancellation",
    "Stream",
    "StreamFigures",
    "StreamStatistics",
    "Subscription",
    "TargetError",
    "TaskContext",
    "TaskFigures",
    "TaskHook",
    "TaskKilled",
    "TaskStatistics",
    "Timeline",
    "To",
    "Topology",
    "TopologyCrashed",
    "TopologyStopping",
    "Transactional",
    "Tree",
    "TreeState",
    "Tuple",
    "TupleFailed",
    "TupleTimedOut",
    "UnroutableKey",
    "Value",
    "is_compiled",
    "opaque",
    "run",
    "transactional",
]

_LATER = {
    "LogFormatter": "stormlet.log_formatter",
    "Running": "stormlet.runtime.run.handle",
    "SqliteTable": "stormlet.state.sqlite.table",
    "Tree": "stormlet.runtime.tree",
    "run": "stormlet.blocking",
}
"""Names that need asyncio, logging or sqlite, which take longer to import than all the rest."""

if not typing.TYPE_CHECKING:  # as checkers would take any name for one of these

    def __getattr__(name: str) -> object:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found = getattr(importlib.import_module(_LATER[name]), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


_imported()
