"""DECIDES. The rules of stormlet as plain Python that knows no clock, no event loop and no logging.

Reading order: ids, rotating, outcomes, tuples, ledger; keys, schema, groupings; components, configuration,
description, graph, plan; replay, progress, statistics.
"""
