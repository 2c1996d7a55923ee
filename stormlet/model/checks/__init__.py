"""Rules for what users declare, each with a sentence that names the component and the way out.

::

    numbers     arguments that must be numbers
    key_types   warnings about keys that would not group as expected
    components  rules for single components, and for sources that cannot be read twice
    keyed       rules for bolts with state
    durable     rules for topologies whose state is durable
"""
