"""HTTP: a route that answers with the outcome of a tree, and a sink that calls a service.

::

    idempotency  the keys by which a service knows what has come twice
    route        an ASGI application: each request is a message
    answers      the meaning of a service's answers: done, never, later, or nobody is there
    post         the sink
"""

from __future__ import annotations

from stormlet.connect.http.post import Post
from stormlet.connect.http.route import Hmac, Route

__all__ = ["Hmac", "Post", "Route"]
