"""State that bolts declare for each key.

Reading order::

    views     maps and lists that a bolt sees of its state
    slots     what a bolt has in hand, and the descriptors that read and write it
    declared  Value, MapOf, ListOf and Cell, by which bolts declare and read state
    keyed     bolts with state for each key
    folding   two states of a key that become one
"""
