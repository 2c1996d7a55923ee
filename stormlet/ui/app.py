"""The application that a host mounts or serves: all routes, behind the gate."""

from __future__ import annotations

import asyncio
import gzip
import secrets
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import cast

from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from stormlet.core.shortened import shortened
from stormlet.errors import InvalidConfiguration
from stormlet.runtime.run.handle import Running
from stormlet.ui.access import Access, checked, names_of
from stormlet.ui.answers import NotFound, Unavailable, answer, problem
from stormlet.ui.assets import assets
from stormlet.ui.compression import Compression, takes_gzip
from stormlet.ui.guard import Guard, Receive, Scope, Send, own_path
from stormlet.ui.openapi import document
from stormlet.ui.page_api import PageApi, Pages
from stormlet.ui.registry import Registry
from stormlet.ui.storm_api import StormApi
from stormlet.ui.views.view import LivePage, Page, Shows

FAST = 1
"""The level of compression that takes the least time."""
WAY_OUT = "see api/v1/openapi.json for what there is"


class AnyText(Convertor[str]):
    """The name of a component in an address: Starlette's convertor of paths takes no second line."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        """Return it as it is."""
        return value

    def to_string(self, value: str) -> str:
        """Return it as it is."""
        return value


register_url_convertor("stormlet_text", AnyText())


class App:
    """An ASGI application that shows running topologies; made by :func:`app`."""

    def __init__(self, access: Access, shows: Shows) -> None:
        self._registry = Registry()
        routes = [
            *page_routes(PageApi(_LivePages(self._registry, shows), secrets.token_hex(4))),
            *_storm_routes(StormApi(self._registry)),
            Route("/ready", self._ready),
            Route("/metrics", self._metrics),
        ]
        self._guarded = Guard(starlette(routes), access)

    def show(self, running: Running, origins: Mapping[str, str] | None = None) -> None:
        """Show one more topology from now on. ``origins`` has the names of the places of options that were laid over
        those of the topology."""
        self._registry.add(running, origins)

    @contextmanager
    def showing(self, running: Running) -> Generator[None]:
        """Show one more topology in the block::

        page = ui.app(token=TOKEN)
        host = Starlette(routes=[Mount("/topologies", page)], lifespan=lifespan)

        async def lifespan(host):
            async with topology.run() as running:
                with page.showing(running):
                    yield
        """
        watched = self._registry.add(running)
        try:
            yield
        finally:
            self._registry.remove(watched)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, as ASGI has it."""
        await self._guarded(scope, receive, send)

    async def _ready(self, request: Request) -> Response:
        """Yes, if all topologies take messages, and there is one."""
        shown = self._registry.all()
        ready = bool(shown) and all(each.health.ready for each in shown)
        return answer({"ready": ready}, 200 if ready else 503)

    async def _metrics(self, request: Request) -> Response:
        """The metrics of all topologies, as Prometheus asks for them: put together in a thread, which has the loop
        take numbers in slices."""
        try:
            from stormlet.exports.prometheus import TopologyCollector, exposition
        except ModuleNotFoundError:
            return problem(501, "prometheus-client is missing: pip install 'stormlet[prometheus]'")
        collector = TopologyCollector()
        for each in self._registry.all():
            collector.add(each.running, each.label)

        def text() -> tuple[bytes, dict[str, str]]:
            body, content_type = exposition(collector, request.headers.get("accept", ""))
            headers = {"content-type": content_type}
            if not takes_gzip(request.headers.get("accept-encoding", "")):
                return body, headers
            # Here, and not by the middleware: that would do it on the loop.
            headers |= {"content-encoding": "gzip", "vary": "Accept-Encoding"}
            return gzip.compress(body, FAST), headers

        body, headers = await asyncio.to_thread(text)
        return Response(body, headers=headers)


class _LivePages:
    """The pages of the topologies that run."""

    def __init__(self, registry: Registry, shows: Shows) -> None:
        self._registry = registry
        self._shows = shows

    def all(self) -> Sequence[Page]:
        """Return all of them."""
        return [LivePage(each, self._shows) for each in self._registry.all()]

    def get(self, id: str) -> Page:
        """Return one; raise :class:`~stormlet.ui.answers.NotFound`."""
        return LivePage(self._registry.get(id), self._shows)


def app(
    *running: Running,
    token: str | None = None,
    hosts: Collection[str] = (),
    show_values: bool = False,
    changes: bool = False,
) -> App:
    """Return an ASGI application that shows these topologies, and those of :meth:`App.show` and :meth:`App.showing`, to
    be mounted under any prefix.

    Without ``token`` it answers this machine alone; with one, whoever sends it. ``hosts`` are the names that the page
    is called by, besides addresses and ``localhost``; with a token, none given means any. ``show_values`` shows the
    values of messages, ``changes`` has buttons that activate, deactivate and drain topologies and emit dead letters
    again: that needs a token.

    Raises :class:`~stormlet.errors.InvalidConfiguration` for a token that can be guessed, or is missing where it is
    needed, and for what is no running topology, no text, or no list of names.
    """
    for each in running:
        if not isinstance(cast("object", each), Running):
            raise InvalidConfiguration(
                f"ui.app: {shortened(each)} is no running topology; write `async with topology.run() as running:`, "
                f"and pass that"
            )
    access = checked(Access(token, names_of(hosts), changes))
    made = App(access, Shows(show_values, changes))
    for each in running:
        made.show(each)
    return made


def recorded_app(pages: Pages) -> Guard:
    """Return an application that shows what was recorded, on this machine."""
    return Guard(starlette(page_routes(PageApi(pages, secrets.token_hex(4)))), Access())


def starlette(routes: Sequence[Route]) -> Starlette:
    """Return an application of these routes, whose errors are JSON."""
    return Starlette(
        routes=routes,
        middleware=[Middleware(Compression, minimum_size=1000, compresslevel=1)],
        exception_handlers={
            HTTPException: _http_error,
            NotFound: _not_found,
            Unavailable: _unavailable,
            Exception: _fault,
        },
    )


def page_routes(api: PageApi) -> Sequence[Route]:
    """Return the routes of the page and of what it asks for."""
    return [
        Route("/", _page),
        Route("/static/{digest}/{name}", _static),
        Route("/healthz", _healthy),
        Route("/api/v1/openapi.json", _openapi),
        Route("/api/v1/snapshot.json", api.snapshot),
        Route("/api/v1/pages", api.topologies),
        Route("/api/v1/pages/{id}/graph", api.graph),
        Route("/api/v1/pages/{id}/trees", api.trees),
        Route("/api/v1/pages/{id}/changes", api.changes),
    ]


def _storm_routes(api: StormApi) -> Sequence[Route]:
    return [
        Route("/api/v1/cluster/summary", api.cluster),
        Route("/api/v1/topology/summary", api.topologies),
        Route("/api/v1/topology/{id}", api.topology),
        Route("/api/v1/topology/{id}/component/{component:stormlet_text}", api.component),
        Route("/api/v1/topology/{id}/visualization", api.visualization),
        Route("/api/v1/topology/{id}/metrics", api.metrics),
        Route("/api/v1/topology/{id}/lag", api.lag),
        Route("/api/v1/topology/{id}/dead-letters/{number:int}/replay", api.replay, methods=["POST"]),
        Route("/api/v1/topology/{id}/{operation}", api.operate, methods=["POST"]),
    ]


async def _page(request: Request) -> Response:
    # Of what is mounted at /x, addresses that are relative to /x would be those of its neighbours.
    if not own_path(request.scope):
        return RedirectResponse(f"{request.scope['path'].rpartition('/')[2]}/")
    return Response(assets().html, media_type="text/html")


async def _static(request: Request) -> Response:
    found = assets().files.get(request.path_params["name"])
    if found is None or request.path_params["digest"] != assets().digest:
        return problem(404, "this file is of another version of the page; load the page again")
    headers = {"cache-control": "public, max-age=31536000, immutable"}
    return Response(found.content, media_type=found.type, headers=headers)


async def _healthy(request: Request) -> Response:
    return answer({"healthy": True})


async def _openapi(request: Request) -> Response:
    return answer(document())


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    ways = f"there is nothing at {own_path(request.scope)}" if error.status_code == 404 else error.detail
    response = problem(error.status_code, f"{ways}; {WAY_OUT}")
    response.headers.update(error.headers or {})
    return response


async def _not_found(request: Request, error: Exception) -> Response:
    return problem(404, str(error))


async def _unavailable(request: Request, error: Exception) -> Response:
    return problem(503, str(error))


async def _fault(request: Request, error: Exception) -> Response:
    return problem(500, f"a fault of the page's own: {type(error).__name__}; the log has its traceback")
