"""The gate in front of all routes: who may come in, and the headers that keep a browser from doing more
than it should."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

from stormlet.ui.access import Access, Refusal, Request
from stormlet.ui.answers import problem

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Asgi: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""Of every answer."""
PROBES: Final = ("/healthz", "/ready")
"""Anybody may ask these: they come from an orchestrator, by an address, and say yes or no."""
DATA: Final = ("/api/", "/metrics")
"""The beginnings of all paths that tell something."""


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: Asgi, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
        elif scope["type"] != "http":
            await self._app(scope, receive, send)
        else:
            refusal = self._refused(scope)
            app = self._app if refusal is None else problem(refusal.status, refusal.words)
            await app(scope, receive, _with_headers(send))

    def _refused(self, scope: Scope) -> Refusal | None:
        path = own_path(scope)
        if path in PROBES:
            return None
        request = request_of(scope)
        is_data = path.startswith(DATA) or request.method not in ("GET", "HEAD")
        return self._access.refused(request) or (self._access.refused_data(request) if is_data else None)


def own_path(scope: Scope) -> str:
    """Return the path below the place where the application is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    return path[len(root) :] if root and (path == root or path.startswith(f"{root}/")) else path


def request_of(scope: Scope) -> Request:
    """Return the parts of a request that decide about it."""
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    client = scope.get("client")
    return Request(str(scope["method"]), headers, None if client is None else str(client[0]))


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = {bytes(name).lower() for name, _ in message["headers"]}
            more = {"cache-control": "no-store", **HEADERS}
            message["headers"] = [
                *message["headers"],
                *(
                    (name.encode(), value.encode())
                    for name, value in more.items()
                    if name.encode() not in given
                ),
            ]
        await send(message)

    return sending
