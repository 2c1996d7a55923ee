cimport cython
from stormlet.core.trees cimport OpenTree
from stormlet.runtime.spout.messages cimport Message
from stormlet.runtime.spout.tracker cimport Tracker

cdef class EpochTracker(Tracker):
    cdef object _epoch
    cdef list _messages
    cdef Py_ssize_t _withheld
    cdef long long _acked_attempts
    cdef object _backlog
    cdef object _durable
    cdef public object redeliveries

    cpdef bint has_work(self) except -1
    cpdef Py_ssize_t waiting(self, Py_ssize_t most) except -1
    @cython.locals(message=Message)
    cpdef OpenTree settle_next(self)
    cpdef tuple emit(self, object value, object stream, object task, object lineage, OpenTree tree)
    cdef tuple _emit(self, object value, object stream, object task, object lineage, OpenTree tree)
    cdef _add(self, OpenTree tree)
    cdef bint _settle(self, OpenTree tree) except -1
    @cython.locals(message=Message, unseen=bint)
    cpdef tell(self, object messages)
