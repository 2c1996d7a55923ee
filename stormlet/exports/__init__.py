"""What other systems are told of a run: traces, metrics, a dashboard.

::

    samples        the metrics of a topology: names, kinds and units, from its statistics
    prometheus     a collector for prometheus-client (``stormlet[prometheus]``)
    opentelemetry  metrics, and traces of some messages (``stormlet[otel]``)
    grafana        a dashboard over the metrics

Nothing here is called on the way of a tuple: metrics are made when somebody asks, and spans of messages that are
traced.
"""
