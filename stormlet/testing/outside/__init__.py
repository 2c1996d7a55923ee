"""The world outside of a simulated loop: threads, child processes and connections that may still bring it something.

======================  ==========================================================================================
:mod:`.partners`        processes that the loop has started, and stream sockets whose other end is not this loop's
:mod:`.threads`         threads that were started since the loop was made
:mod:`.world`           all that holds the clock now, for how long, and the warning when it goes on without something
======================  ==========================================================================================
"""
