cimport cython
from stormlet.runtime.spout.feeds cimport HostFeed
from stormlet.runtime.wire.outbox cimport Outbox
from stormlet.runtime.spout.tracker cimport Tracker

cdef class SpoutFeed(HostFeed):
    cdef object _make
    cdef object _spout
    cdef object _out
    cdef Tracker _tracker
    cdef Outbox _outbox
    cdef double _idle_max
    cdef double _nap
    cdef object _topology
    cdef object _context
    cdef object _receiver
    cdef object _receiver_of

    @cython.locals(tracker=Tracker, outbox=Outbox, enough=cython.longlong, before=cython.longlong)
    cpdef ask(self, Py_ssize_t most)
    cdef bint _nothing_came(self, long long before) except *
