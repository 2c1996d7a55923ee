"""A run as other systems are told of it: traces, metrics, a dashboard.

From the ground up::

    families       families of metrics: a name, a kind and a unit, and what was measured
    metrics        the metrics of a topology, from its statistics and its health
    look           looks at running topologies from any thread
    prometheus     a collector for prometheus-client (``stormlet[prometheus]``)
    opentelemetry  metrics, and traces of some messages (``stormlet[otel]``)
    grafana        a dashboard over the metrics

Nothing here is called on the way of a tuple: metrics are made when somebody asks, and spans of messages that are
traced.
"""
