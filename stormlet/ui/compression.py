"""Answers are compressed for those who take that."""

from __future__ import annotations

from typing import Final

from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import Receive, Scope, Send

NAME: Final = "accept-encoding"


def takes_gzip(accepted: str) -> bool:
    """Return True if a request with this ``Accept-Encoding`` takes what is compressed by gzip (RFC 9110, 12.5.3)."""
    weights = dict(map(_weighed, accepted.lower().split(",")))
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def _weighed(element: str) -> tuple[str, float]:
    coding, _, parameter = (each.strip() for each in element.partition(";"))
    name, _, weight = (each.strip() for each in parameter.partition("="))
    if name != "q":
        return coding, 1.0
    try:
        return coding, float(weight)
    except ValueError:
        return coding, 0.0  # not to compress is right for everybody


class Compression(GZipMiddleware):
    """Starlette's, which looks for the word alone, also where a weight of 0 refuses it. What is behind it finds
    ``gzip`` in the header, or no header."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, as ASGI has it."""
        if scope["type"] == "http":
            accepted = ",".join(Headers(scope=scope).getlist(NAME))
            others = [each for each in scope["headers"] if each[0].lower() != NAME.encode()]
            taken = [(NAME.encode(), b"gzip")] if takes_gzip(accepted) else []
            scope = {**scope, "headers": [*others, *taken]}
        await super().__call__(scope, receive, send)
