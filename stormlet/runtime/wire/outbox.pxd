cimport cython
from stormlet.core.acks cimport Acks
from stormlet.runtime.occupation cimport Occupation
from stormlet.runtime.wire.inbox cimport Inbox
from stormlet.runtime.wire.loop_thread cimport LoopThread

cdef class Control:
    cdef public list inits
    cdef public Acks acks
    cdef public list fails
    cdef public list resets

cdef class Outbox:
    cdef object _call_next
    cdef object _clock
    cdef object _failed
    cdef bint _is_put_off
    cdef bint _is_unsent
    cdef bint _may_put_off
    cdef object _loop
    cdef double _until
    cdef int _unpromising
    cdef public object posts
    cdef public Acks acks
    cdef public bint armed
    cdef public list awaited
    cdef public object consumers
    cdef public list crowded
    cdef public list fails
    cdef public list found_empty
    cdef public list inits
    cdef public list resets
    cdef public bint sliced
    cdef public int state
    cdef public LoopThread thread
    cdef public double waited
    cdef public object waits
    cdef public Occupation occupation
    cdef public unsigned long long run
    cdef public unsigned long long delta

    @cython.locals(state=int)
    cdef _move(self, tuple moves)
    cpdef suspend_call(self)
    cpdef bint come_back(self) except -1
    cpdef ack(self, unsigned long long root, unsigned long long edge)
    @cython.locals(root=cython.ulonglong, edge=cython.ulonglong)
    cpdef ack_all(self, object edges)
    cpdef begin_run(self, unsigned long long root, unsigned long long edge)
    cdef _end_run(self)
    @cython.locals(inbox=Inbox)
    cpdef full_consumer(self)
    @cython.locals(inbox=Inbox)
    cpdef flush(self)
