"""ACTS. The asyncio shells around :mod:`stormlet.core`."""
