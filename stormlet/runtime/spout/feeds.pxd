cimport cython
from stormlet.runtime.spout.messages cimport lineage_now
from stormlet.runtime.spout.messages cimport Message, kept_message
from stormlet.runtime.wire.outbox cimport Outbox
from stormlet.runtime.spout.switches cimport Switches
from stormlet.runtime.spout.tracker cimport Tracker

cdef class Feed:
    cdef dict __dict__
    cdef public bint ended
    cdef public double nap
    cdef public bint hears_outcomes
    cdef object _context
    cdef Tracker _tracker
    cdef Switches _switches
    cdef object _user

    cpdef ask(self, Py_ssize_t most)
    @cython.locals(tracker=Tracker)
    cpdef settle(self, Py_ssize_t most)

cdef class KeptFeed(Feed):
    cdef object _topology
    cdef object _resume
    cdef long long _emitted
    cdef bint _closed
    cdef object _source
    cdef list _unsent
    cdef object _broke
    cdef long long _broke_after
    cdef bint _is_spent
    cdef object _passing

    @cython.locals(message=Message)
    cpdef emit(self, object value)

cdef class IteratorFeed(KeptFeed):
    cdef object _values

    @cython.locals(outbox=Outbox, switches=Switches)
    cpdef ask(self, Py_ssize_t most)

cdef class AsyncIteratorFeed(KeptFeed):
    cdef object _values
    cdef object _in_hand
