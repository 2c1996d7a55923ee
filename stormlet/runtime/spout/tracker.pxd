cimport cython
from stormlet.core.ledger cimport AckerLoad
from stormlet.core.ids cimport next_id, shard_of
from stormlet.core.trees cimport OpenTree
from stormlet.runtime.spout.complete_latency cimport CompleteLatency
from stormlet.runtime.spout.messages cimport GivenUp, HostMessage, Message, SpoutMessage
from stormlet.runtime.spout.traced_messages cimport TracedMessages
from stormlet.runtime.wire.outbox cimport Outbox
from stormlet.runtime.wire.outlets cimport Outlet

cdef class Counts:
    cdef public long long messages
    cdef public long long given_back
    cdef public long long acked
    cdef public long long failed
    cdef public long long dead_letters
    cdef public long long left_over
    cdef public long long replayed
    cdef public long long overflowed
    cdef public long long withdrawn

cdef class Tracker:
    cdef public object outcomes
    cdef public Py_ssize_t pending
    cdef public long long emitted
    cdef public Counts counts
    cdef public bint buries
    cdef public bint keeps_all
    cdef public object observer
    cdef public TracedMessages traced
    cdef public object replays
    cdef public object hand_overs
    cdef object _plan
    cdef dict _outlets
    cdef Outbox _outbox
    cdef Py_ssize_t _number
    cdef object _ids
    cdef list _loads
    cdef object _most_pending
    cdef object _policy
    cdef object _user
    cdef object _log
    cdef object _due
    cdef dict _awaited
    cdef dict _withdrawn
    cdef CompleteLatency _latency

    cpdef bint has_work(self) except -1
    cpdef Py_ssize_t waiting(self, Py_ssize_t most) except -1
    @cython.locals(tree=OpenTree)
    cpdef OpenTree settle_next(self)
    cpdef tuple emit(self, object value, object stream, object task, object lineage, OpenTree tree)
    @cython.locals(load=AckerLoad, root=cython.ulonglong)
    cdef _track(self, Outlet outlet, object value, object lineage, OpenTree tree)
    cdef _overflow(self, Outlet outlet, OpenTree tree)
    cdef Outlet _outlet(self, object stream, object task)
    cdef bint _settle(self, OpenTree tree) except -1
    cdef _see(self, OpenTree tree)
    cdef bint _conclude(self, OpenTree tree) except -1
    cdef _observe(self, OpenTree tree)
    cdef bint _settle_failed(self, OpenTree tree, object failure) except -1
