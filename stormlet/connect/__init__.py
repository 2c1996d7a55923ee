"""Sources and sinks at brokers: one driver that runs any connector, and the face that connectors have.

From the ground up::

    secrets      a type for what must not show
    session      the face: capabilities, deliveries, settlements, sessions, contexts
    decoding     values of messages, from their bodies
    address      URLs, and where they are written
    driver/      the one spout and the one bolt that run a connector
    source       the base of sources, with their options
    sink         the base of sinks
    warning      what a connector warns of, once
    kestrel      Kestrel's queues
    kafka/       topics of Kafka
    redis/       streams of Redis and Valkey
    files/       files that grow, folders of files
    http/        a route whose requests are messages, calls of a service

The modules of brokers import their clients when they connect, so that a topology can be checked and drawn without.
"""
