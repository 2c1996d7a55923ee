"""Crashes of a partition: what user code raises where no input answers for it, with its task and the way out."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from stormlet.core.shortened import shortened
from stormlet.errors import TopologyCrashed
from stormlet.spark.engine.partition.deliveries import Unreadable
from stormlet.spark.engine.partition.lanes import MergeFailed, Unpicklable
from stormlet.spark.engine.partition.states import Unfit, Unsavable
from stormlet.spark.engine.planning.numbering import ClusterPlan, Place


class Crashes:
    """Those of one partition."""

    def __init__(self, cluster: ClusterPlan, place: Place) -> None:
        self._cluster = cluster
        self._place = place
        self._name = cluster.plan.description.name

    def of_task(self, task: int, what: str, way_out: str = "") -> TopologyCrashed:
        """Return the crash of a task, by its id."""
        plan = next(each for each in self._cluster.tasks_at(self._place) if each.task == task)
        return TopologyCrashed(self._name, plan.name, what, "", way_out)

    def of_input(self, target: int, error: Unreadable) -> TopologyCrashed:
        """Return that of a task whose input cannot be made again."""
        way_out = (
            f"a value of {self._cluster.component_of(error.producer)!r} cannot be made again on this machine: "
            f"define its class in a file that goes along, and let it be pickled"
        )
        return self.of_task(target, "the input", way_out)

    @contextmanager
    def raised(self) -> Generator[None]:
        """Raise as crashes what merging, sending and saving raise."""
        try:
            yield
        except MergeFailed as error:
            component = self._cluster.component_of(error.target)
            raise TopologyCrashed(self._name, component, "merge") from error.__cause__
        except Unpicklable as error:
            way_out = (
                f"what goes from stage to stage is pickled, and {shortened(error.value)} on stream {error.stream!r} "
                f"cannot be: emit a record, or let its consumers subscribe by shuffle() to stay in its stage"
            )
            raise self.of_task(error.producer, "the emit", way_out) from error.__cause__
        except Unfit as error:
            way_out = (
                "what the epoch before has saved does not fit: let __setstate__ take it, or begin with another "
                "checkpoint"
            )
            raise TopologyCrashed(self._name, error.component, "the state", "", way_out) from error.__cause__
        except Unsavable as error:
            way_out = (
                f"what a bolt has changed in itself is saved in between, and {error.attribute!r} cannot be: "
                f"make it in prepare if it is no state, or define __getstate__"
            )
            raise TopologyCrashed(self._name, error.component, "the state", "", way_out) from error.__cause__
