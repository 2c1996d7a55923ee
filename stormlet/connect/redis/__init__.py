"""Redis Streams, of Redis 7 or Valkey, by redis-py: ``pip install 'stormlet[redis]'``.

:class:`Stream` is the source, :class:`Add` the sink::

    orders = topology.spout("orders", redis.Stream("redis://localhost/0", "orders", group="billing", as_=Order))
    topology.bolt("bill", redis.Add("redis://localhost/0", "bills"), bills.shuffle())

From the ground up: ``client``, ``entries``, ``server``, ``consumers``, ``scripts``, ``trimming``, ``session``,
``stream``, ``add``.
"""

from __future__ import annotations

from stormlet.connect.redis.add import Add
from stormlet.connect.redis.stream import Stream, StreamSettings

__all__ = ["Add", "Stream", "StreamSettings"]
