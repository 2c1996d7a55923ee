"""Twins of brokers: in memory, on the loop's clock, with the rules of the real ones, and with faults.

::

    profiles  the rules of each real broker
    troubles  faults by a seed
    queues    queues, whose messages are settled each by its receipt, which may be a lease
    logs      partitioned logs, of which a group commits positions
    transactions  writers of transactions, of which the last one has fenced those before it
    broker    one broker, and its place in the stead of a real one
"""

from __future__ import annotations

from stormlet.testing.brokers.broker import Broker, TwinSink, TwinSource, twin
from stormlet.testing.brokers.profiles import PROFILES, Profile
from stormlet.testing.brokers.troubles import Trouble, Troubles

__all__ = ["PROFILES", "Broker", "Profile", "Trouble", "Troubles", "TwinSink", "TwinSource", "twin"]
