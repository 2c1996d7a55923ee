"""Files as sources and sinks, by the standard library; those of Parquet by ``pip install 'stormlet[parquet]'``.

::

    topology.spout("requests", files.Tail("/var/log/app.log", bookmark="/var/lib/app/requests.bookmark", as_=str))
    topology.spout("orders", files.Lines("/data/orders", bookmark="/data/orders.bookmark", as_=Order))
    topology.bolt("keep", files.Write("/data/charges"), charges.shuffle())

From the ground up: ``bookmark``, ``opened``, ``parquet``, ``tail``, ``folder``, ``session``, ``sources``, ``sink``.
"""

from __future__ import annotations

from stormlet.connect.files.sink import Write
from stormlet.connect.files.sources import Lines, Tail

__all__ = ["Lines", "Tail", "Write"]
