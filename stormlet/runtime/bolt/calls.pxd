cimport cython
from stormlet.core.tuples cimport Delivered
from stormlet.runtime.bolt.call_times cimport CallTimes
from stormlet.runtime.bolt.worker cimport Worker
from stormlet.runtime.wire.collector cimport BoltCollector
from stormlet.runtime.wire.outbox cimport Outbox

cdef int NEW, QUICK, CAREFUL, PAUSED, TURN

cdef class Caller:
    cdef public Delivered tup
    cdef object _task
    cdef Worker _worker
    cdef BoltCollector _out
    cdef Outbox _outbox
    cdef object _life
    cdef object _slices
    cdef CallTimes _times
    cdef object _clock
    cdef object _coroutine
    cdef int _state
    cdef bint _in_slice
    cdef object _awaited
    cdef double _began

    @cython.locals(state=int, has_turn=bint)
    cdef bint _go_on(self, object gives, bint failed) except *
    @cython.locals(worker=Worker, tup=Delivered)
    cdef bint _begin_call(self) except *
    cdef _continue_call(self, object gives)
    cdef _await(self, object awaitable)
    cdef _fail(self, BaseException error)
    @cython.locals(now=cython.double)
    cdef _end_call(self)
    cdef bint _leaves_traces(self) except *

cdef bint is_same(object context, object other) except *
