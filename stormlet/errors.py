"""Every error that stormlet raises, as one tree.

::

    StormletError
    ├── InvalidTopology (ValueError)         the description cannot run as it is written
    │   ├── InvalidConfiguration             an option has an unknown name, a wrong type or a wrong range
    │   └── MistakenFactory                  a function taken for a bolt's logic makes bolts or spouts
    ├── InvalidEmit (ValueError)             an emit that the description does not allow
    ├── UnroutableKey (TypeError)            a grouping key without a stable hash
    ├── KeyFunctionFailed                    the key function of a grouping raised
    ├── AlreadySettled (RuntimeError)        an input was acked or failed before
    ├── TupleFailed                          the outcome of an awaited tree: it failed
    │   └── TupleTimedOut                    … because its message timeout passed
    ├── StrayCancellation                    user code awaited something that was cancelled
    ├── StillHeld                            a bolt holds inputs that a paused spout waits for
    ├── TaskKilled                           the cause of a death by ``Running.kill``
    ├── NotExactlyOnce                       the output of an exactly-once sink cannot be kept exact
    ├── NotTracked                           awaiting a tree in a topology without ackers
    ├── TopologyCrashed                      an exception that no tuple answers for
    │   └── StartFailed                      … in ``prepare`` or ``open`` at the first start
    ├── TopologyStopping                     refused, because the topology is draining or stopped
    ├── TargetError                          the command line's TARGET names no topology
    ├── StateUnusable                        the kept state cannot be read or written
    ├── EpochFailed                          the end of an epoch fails again and again
    ├── ConnectorError                       what a connector reports of its broker
    │   ├── ConnectionLost                   … it cannot be reached now, and is tried again
    │   ├── BrokerRefused                    … it refuses, and will do so again
    │   │   └── BrokerGivenUp                … for so long that the topology crashes
    │   └── NotSettled                       … it cannot settle this now, and is to be asked again
    ├── SparkUnavailable                     Spark cannot start here: Java or a package does not fit
    └── SparkFailed                          reading from Spark, or writing to it, has failed

``TupleFailed`` and ``TupleTimedOut`` are in :mod:`stormlet.core.outcomes`, as they carry a record of it; nothing is
imported here. Two more classes are raised by *users*: :class:`EndOfStream` by ``next_tuple`` and :class:`Reject` by
bolts.
"""

from __future__ import annotations


class StormletError(Exception):
    """The base of every error raised by stormlet."""


class InvalidTopology(StormletError, ValueError):
    """The topology cannot run as described; the message names the component and the way out."""


class InvalidConfiguration(InvalidTopology):
    """An option has an unknown name, a wrong type or a value out of range."""


class MistakenFactory(InvalidTopology):
    """A bolt's function of the value has returned a bolt or a spout: it is a factory that has a parameter. No input can
    make that right, so it crashes the topology at once (law C5)."""


class InvalidEmit(StormletError, ValueError):
    """An emit that the topology's description does not allow: an undeclared stream, a task that does not
    subscribe, a value that does not fit the declared fields, or lacks the one that it is grouped by; or a custom
    grouping that raised, whose exception is ``__cause__``."""


class UnroutableKey(StormletError, TypeError):
    """The key of a ``fields`` or ``partial_key`` grouping has a type without a stable hash, or is nested too deeply for
    one."""


class KeyFunctionFailed(StormletError):
    """The key function of a grouping raised; ``__cause__`` is its exception. There is no tuple to fail for it, so it
    crashes the topology (law C5)."""


class AlreadySettled(StormletError, RuntimeError):
    """An input was acked or failed a second time, or anchored to after it was settled (law L15)."""


class StrayCancellation(StormletError):
    """User code raised an :class:`asyncio.CancelledError` without having been cancelled: something that it awaited
    was. It counts as an exception of that code; ``__cause__`` is the cancellation."""


class StillHeld(StormletError):
    """A bolt holds inputs whose trees are over, and its ``flush`` did not settle them, although a spout pauses until
    everything is settled."""


class TaskKilled(StormletError):
    """The cause of a task's death after a call of :meth:`~stormlet.Running.kill`."""


class NotExactlyOnce(StormletError):
    """Rows of a committer that no source would bring again, or that its sink has already by another line of epochs (law
    X8, X10). There is no tuple to fail for it, so it crashes the topology (law C5)."""


class NotTracked(StormletError):
    """A tree was awaited in a topology that runs without ackers (law L9)."""


class TopologyCrashed(StormletError):
    """User code raised where there is no tuple to fail for it, more often than its task is restarted (law C5);
    ``__cause__`` is that exception."""

    def __init__(self, topology: str, task: str, what: str, restarts: str = "", way_out: str = "") -> None:
        super().__init__(topology, task, what, restarts, way_out)
        self.topology = topology
        self.task = task
        self.what = what
        """The method that raised."""
        self.restarts = restarts
        """The number of restarts of the task before, in words; empty if there were none."""
        self.way_out = way_out
        """The reason why it could not be restarted, and the remedy; empty if unknown."""

    def __str__(self) -> str:
        after = f", after {self.restarts}" if self.restarts else ""
        way_out = f"; {self.way_out}" if self.way_out else ""
        return f"topology {self.topology!r} crashed: {self._why}{after}{way_out}"

    @property
    def _why(self) -> str:
        """The cause in words: those of a connector, of a state, or of what cannot run, say all and are made for
        people."""
        if isinstance(self.__cause__, ConnectorError | InvalidTopology | StateUnusable):
            return f"{self.task}: {self.__cause__}"
        return f"{self.what} of {self.task} raised {_shown(self.__cause__)}"


class StartFailed(TopologyCrashed):
    """``prepare`` of a bolt or ``open`` of a spout raised at the first start (law C1)."""

    def __str__(self) -> str:
        return f"topology {self.topology!r} did not start: {self._why}"


class TopologyStopping(StormletError):
    """The topology is draining or stopped and takes no new messages (law C3, C4)."""


class TargetError(StormletError):
    """The TARGET given to the command line does not lead to a topology."""


class SparkUnavailable(StormletError):
    """Spark cannot start here; the message names the missing or unfit part, and the way out."""


class SparkFailed(StormletError):
    """Reading from Spark, or writing to it, has failed; ``__cause__`` is the error behind it, such as Spark's."""


class StateUnusable(StormletError):
    """The kept state of a topology cannot be read or written: it is damaged, of another topology or a newer version, in
    use by another run, does not fit the states that the program declares, or its disk is full. The message names the
    place and the way out (law X1, K5)."""


class EpochFailed(StormletError):
    """The work at the end of an epoch has failed as often as ``max_attempts`` allows, without a message to blame;
    ``__cause__`` is the last failure (law X7)."""


class ConnectorError(StormletError):
    """A report of a connector about its broker. No message of these errors has a secret in it (law R9)."""


class ConnectionLost(ConnectorError):
    """The broker cannot be reached now. At the start of a run that fails it; later the connection is tried again, for
    ever (law R8)."""


class BrokerRefused(ConnectorError):
    """The broker refuses what is asked for, and will do so again: a wrong password, a queue or topic that is not there,
    a certificate that is not valid. The message names it (law R8)."""


class BrokerGivenUp(BrokerRefused):
    """The broker has done nothing but refuse for ``give_up`` seconds, or another run has taken the place of this one.
    No input is to blame, and no restart helps: the topology crashes, whichever of its tasks raises this (law R8)."""


class NotSettled(ConnectorError):
    """The broker does not take this settlement now, as during a rebalance; it is to be given the same again."""


class EndOfStream(StormletError):
    """Raised by a spout's ``next_tuple``: there will be no more tuples (law S5)."""


class Reject(StormletError):
    """Raised by a bolt: this input can never succeed, so it goes to the dead letters without replays (law
    S6)."""


def _shown(error: BaseException | None) -> str:
    try:
        return repr(error)
    except Exception:
        return f"{type(error).__name__}, whose repr raises"
