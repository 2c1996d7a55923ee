"""Queues of RabbitMQ as sources, and its exchanges as sinks.

::

    connection  one connection to RabbitMQ, and what its errors mean
    frames      frames of AMQP, read whatever metadata a publisher has given
    tags        the delivery tags of a channel, each settled once
    queue       the source
    publish     the sink

The client is aiormq, the protocol layer of aio-pika: what aio-pika adds is its own way to connect again, which is the
driver's work here.
"""

from __future__ import annotations

from stormlet.connect.rabbitmq.publish import Publish
from stormlet.connect.rabbitmq.queue import Queue

__all__ = ["Publish", "Queue"]
