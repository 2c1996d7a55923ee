"""The world outside of a simulated loop: threads, child processes and connections that may still bring it something.

======================  ==========================================================================================
:mod:`.world`           what holds the clock now, for how long, and what is said when it goes on without something
:mod:`.threads`         threads that were started since the loop was made
:mod:`.connections`     stream sockets whose other end is not this loop's
:mod:`.children`        processes that the loop has started
:mod:`.things`          what they have in common
======================  ==========================================================================================
"""
