"""Handlers of Storm's part of the REST."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from stormlet.ui.answers import answer, problem
from stormlet.ui.controls import OPERATIONS, Replays
from stormlet.ui.loops import on_loop
from stormlet.ui.registry import Registry
from stormlet.ui.storm.components import component
from stormlet.ui.storm.flows import lag, metrics, visualization
from stormlet.ui.storm.shapes import Operation
from stormlet.ui.storm.summaries import cluster, topologies, topology
from stormlet.ui.watched import Watched
from stormlet.ui.windows import STORMS_ALL, WINDOWS, window_named

Handler = Callable[[Request], Awaitable[Response]]
OfWindow = Callable[[Watched, str], object]


class StormApi:
    """Handlers of requests."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._replays = Replays()

    async def cluster(self, request: Request) -> Response:
        """This process."""
        return answer(cluster(self._registry))

    async def topologies(self, request: Request) -> Response:
        """All topologies."""
        return answer(topologies(self._registry))

    async def topology(self, request: Request) -> Response:
        """One topology, in a window."""
        system = request.query_params.get("sys") == "true"
        return self._windowed(request, partial(topology, system=system))

    async def component(self, request: Request) -> Response:
        """One component, in a window."""
        id = request.path_params["component"]
        return self._windowed(request, lambda watched, window: component(watched, id, window))

    async def visualization(self, request: Request) -> Response:
        """The components with their subscriptions, in a window."""
        return self._windowed(request, visualization)

    async def metrics(self, request: Request) -> Response:
        """The numbers of all components, in a window."""
        return self._windowed(request, metrics)

    async def lag(self, request: Request) -> Response:
        """The lag of spouts behind their brokers."""
        return answer(lag(self._watched(request)))

    async def operate(self, request: Request) -> Response:
        """Activate, deactivate or drain a topology."""
        watched, name = self._watched(request), request.path_params["operation"]
        if name not in OPERATIONS:
            return problem(404, f"there is no operation {name!r}; there are {', '.join(OPERATIONS)}")
        await _change(watched, partial(OPERATIONS[name], watched))
        return answer(Operation(name, watched.id, "success"))

    async def replay(self, request: Request) -> Response:
        """Emit a dead letter again."""
        watched = self._watched(request)
        begin = partial(self._replays.begin, watched, request.path_params["number"])
        await _change(watched, begin)
        return answer(Operation("replay", watched.id, "success"))

    def _watched(self, request: Request) -> Watched:
        return self._registry.get(request.path_params["id"])

    def _windowed(self, request: Request, tell: OfWindow) -> Response:
        given = request.query_params.get("window", STORMS_ALL)
        window = window_named(given)
        if window is None:
            known = ", ".join(f"{seconds or STORMS_ALL}" for seconds in WINDOWS.values())
            return problem(400, f"there is no window {given!r}; there are {known}")
        return answer(tell(self._watched(request), window))


async def _change(watched: Watched, change: Callable[[], None]) -> None:
    async def changed() -> None:
        change()

    await on_loop(watched.running.loop, watched.name, changed)
