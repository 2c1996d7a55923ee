"""Streams of NATS JetStream, by nats-py: ``pip install 'stormlet[nats]'``.

:class:`Stream` is the source, :class:`Publish` the sink::

    orders = topology.spout("orders", nats.Stream("nats://localhost", "ORDERS", consumer="billing", as_=Order))
    topology.bolt("tell", nats.Publish[Charge]("nats://localhost", "charges.new"), charges.shuffle())

From the ground up::

    login       passwords, tokens, keys and credentials files
    connection  one connection to a server, and what its errors mean
    jetstream   questions to JetStream's API: streams and consumers
    pulling     messages that were asked for, and those that have come
    session     the session of a source
    stream      the source
    publish     the sink
"""

from __future__ import annotations

from stormlet.connect.nats.publish import Publish
from stormlet.connect.nats.stream import Stream, StreamSettings

__all__ = ["Publish", "Stream", "StreamSettings"]
