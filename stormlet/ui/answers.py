"""Answers in JSON: what is asked for, and what is wrong, in Storm's form."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final, cast

import msgspec
from starlette.responses import Response

from stormlet.core.shortened import text_of

_ENCODER: Final = msgspec.json.Encoder(enc_hook=text_of)


def encoded(value: object) -> bytes:
    """Return it as JSON. A lone surrogate, which is legal in a text and not in UTF-8, becomes an escape."""
    try:
        return _ENCODER.encode(value)
    except UnicodeEncodeError:
        return _ENCODER.encode(_mended(msgspec.to_builtins(value, enc_hook=text_of)))


def _mended(value: object) -> object:
    match value:
        case str():
            return text_of(value)
        case dict():
            named = cast("dict[str, object]", value)
            return {text_of(name): _mended(each) for name, each in named.items()}
        case list() | tuple():
            return [_mended(each) for each in cast("list[object]", value)]
        case _:
            return value


def answer(value: object, status: int = 200) -> Response:
    """Return a response with this value."""
    return Response(encoded(value), status, media_type="application/json")


class Problem(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A request that is not answered."""

    error: str
    """The status, such as ``404 Not Found``."""
    error_message: str
    """The reason, and the way out."""


def problem(status: int, words: str) -> Response:
    """Return a response that says what is wrong."""
    return answer(Problem(f"{status} {HTTPStatus(status).phrase}", words), status)


class NotFound(Exception):
    """There is no such thing; the message says what there is."""


class Unavailable(Exception):
    """This cannot be done now; the message says why."""
