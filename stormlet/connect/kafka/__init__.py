"""Kafka: a source of topics, shared by the members of a group, and a sink.

::

    settings    what both have in common: the client's settings, TLS and SASL, errors in words
    partitions  the partitions of a consumer: given, taken away, paused, committed
    polling     the thread in which all that happens
    session     the source's connection: the face of that thread towards the loop
    producer    the sink's connection
    topics      the source
    produce     the sink
    share       the partitions of a task where the state has the positions
    transactions  the committer's connection: transactions of a producer, with a note of the epoch
    commit      the committer, which is exactly once

The client is confluent-kafka, ``pip install 'stormlet[kafka]'``.
"""

from __future__ import annotations

from stormlet.connect.kafka.commit import Commit as Commit
from stormlet.connect.kafka.produce import Produce as Produce
from stormlet.connect.kafka.settings import Security as Security
from stormlet.connect.kafka.topics import Topics as Topics
