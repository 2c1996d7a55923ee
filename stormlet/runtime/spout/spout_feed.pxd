cimport cython
from stormlet.core.trees cimport OpenTree
from stormlet.runtime.spout.feeds cimport Feed
from stormlet.runtime.wire.outbox cimport Outbox
from stormlet.runtime.spout.switches cimport Switches
from stormlet.runtime.spout.tracker cimport Tracker

cdef extern from "Python.h":
    int enter_context "PyContext_Enter" (object context) except -1
    int exit_context "PyContext_Exit" (object context) except -1

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

    @cython.locals(switches=Switches)
    cpdef ask(self, Py_ssize_t most)
    @cython.locals(tracker=Tracker, outbox=Outbox, switches=Switches, enough=cython.longlong, before=cython.longlong)
    cdef _ask(self, Py_ssize_t most)
    cdef _call(self, object method, object argument)
    cdef bint _nothing_came(self, long long before) except *
    @cython.locals(tracker=Tracker, tree=OpenTree)
    cpdef settle(self, Py_ssize_t most)
    cdef _deliver(self, OpenTree tree)

cdef _called_in(object variables, object method, object argument)
