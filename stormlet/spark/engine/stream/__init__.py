"""``stream_on_spark``: a topology in epochs, one for each micro-batch of a streaming DataFrame.

::

    written     the key groups that epochs have written, and those of them that count
    checkpoint  the folder of the last epoch: its rows, the states of bolts, and the record that it is done
    rehearsal   the constructors of bolts, before it starts
    epochs      one epoch after another
    stream      ``stream_on_spark``, and the run that it begins
"""
