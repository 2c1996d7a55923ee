cimport cython
from stormlet.core.tuples cimport Delivered
from stormlet.runtime.bolt.worker cimport Worker
from stormlet.runtime.wire.outbox cimport Outbox

cdef class AwaitedCall:
    cdef public object cr_await
    cdef Worker _worker
    cdef Delivered _tup
    cdef bint _of_user
    cdef bint _is_over
    cdef bint _suspended
    cdef int _before
    cdef object _rest
    cdef Worker _next_worker
    cdef object _observer
    cdef public Py_ssize_t followers
    cdef public double last_began
    cdef public bint must_wait
    cdef double _now

    cdef _step(self, thrown)
    @cython.locals(outbox=Outbox)
    cdef _suspend(self)
    @cython.locals(outbox=Outbox)
    cdef _resume(self)
    cdef _report(self, error)
    @cython.locals(worker=Worker)
    cdef _continue(self, gives)
    @cython.locals(worker=Worker)
    cdef _go_on(self, rest)
    cdef bint _may_go_on(self) except -1
    cdef _follow(self, AwaitedCall call)
