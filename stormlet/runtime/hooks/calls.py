"""The hooks of one task: called, and removed when they raise."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from inspect import iscoroutine

from stormlet.errors import InvalidTopology
from stormlet.model.components import TaskContext, overrides
from stormlet.model.hooks import HOOKED, TaskHook
from stormlet.model.plan import TaskPlan
from stormlet.report.failures import log_fields

logger = logging.getLogger(__package__)


class TaskHooks:
    """The hooks of one task."""

    def __init__(self, topology: str, plan: TaskPlan, hooks: Sequence[TaskHook]) -> None:
        self.plan = plan
        self._topology = topology
        self._hooks = list(hooks)
        self._by_method = {
            method: [hook for hook in hooks if overrides(hook, TaskHook, method)] for method in HOOKED
        }

    def want(self, *methods: str) -> bool:
        """Return True if a hook overrides one of these methods."""
        return any(self._by_method[method] for method in methods)

    def prepare(self, context: TaskContext) -> None:
        """Have all prepare."""
        for hook in list(self._hooks):
            self._call(hook, "prepare", context)

    def cleanup(self) -> None:
        """Have all clean up."""
        for hook in list(self._hooks):
            self._call(hook, "cleanup")

    def call(self, method: str, info: object) -> None:
        """Call all that override this method."""
        for hook in list(self._by_method[method]):
            self._call(hook, method, info)

    def _call(self, hook: TaskHook, method: str, *arguments: object) -> None:
        try:
            result = getattr(hook, method)(*arguments)
            if iscoroutine(result):
                result.close()  # else Python would warn that nobody has awaited it
                raise InvalidTopology(f"{method} of a hook must be a plain function, as nobody awaits it")
        except (KeyboardInterrupt, SystemExit):
            self._remove(hook)  # else it would end the end of the run, too, before all is counted (law N1)
            raise
        except BaseException as error:
            self._remove(hook)
            self._log(hook, method, error)

    def _remove(self, hook: TaskHook) -> None:
        # It may have been removed already: what it is called by may have it called once more.
        self._hooks = [each for each in self._hooks if each is not hook]
        for hooks in self._by_method.values():
            if hook in hooks:
                hooks.remove(hook)

    def _log(self, hook: TaskHook, method: str, error: BaseException) -> None:
        logger.error(
            "%s of hook %s raised in %s, and the hook is removed",
            method,
            type(hook).__name__,
            self.plan.name,
            exc_info=error,
            extra=log_fields(self._topology, self.plan.component, self.plan.task),
        )
