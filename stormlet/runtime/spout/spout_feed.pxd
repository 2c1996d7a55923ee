cimport cython
from stormlet.core.trees cimport OpenTree
from stormlet.runtime.spout.feeds cimport Feed
from stormlet.runtime.wire.outbox cimport Outbox
from stormlet.runtime.spout.tracker cimport Tracker

cdef class SpoutFeed(Feed):
    cdef object _make
    cdef object _spout
    cdef object _out
    cdef Outbox _outbox
    cdef double _idle_max
    cdef double _next_nap
    cdef object _topology
    cdef object _variables
    cdef object _receiver
    cdef object _receiver_of
    cdef object _redeliveries

    @cython.locals(tracker=Tracker, outbox=Outbox, enough=cython.longlong, before=cython.longlong)
    cpdef ask(self, Py_ssize_t most)
    cdef bint _nothing_came(self, long long before) except *
    @cython.locals(tree=OpenTree)
    cpdef settle(self, Py_ssize_t most)
    cdef _deliver(self, OpenTree tree)
