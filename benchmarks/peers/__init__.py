"""The same word count by others, each at its best settings. None of them tracks anything.

Each has one process, the same sentences, the same record and the same kind of counter for every word, and functions of
one sentence or one word, as ours has; how many items it moves at a time is its own affair.
"""
