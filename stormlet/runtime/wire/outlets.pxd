cimport cython
from stormlet.core.groupings cimport One
from stormlet.core.ids cimport next_id
from stormlet.core.tuples cimport Delivered, joined_tuple, plain_tuple
from stormlet.runtime.wire.inbox cimport Inbox
from stormlet.runtime.wire.outbox cimport Outbox

cdef class Target:
    cdef public tuple ids
    cdef public Inbox inbox
    cdef public Py_ssize_t capacity

cdef class Outlet:
    cdef public object source
    cdef public tuple reached
    cdef public long long _emitted

    cpdef unsigned long long deliver(self, object value, unsigned long long root, object lineage) except? 0
    cpdef deliver_joined(self, object value, object anchors, object lineage)

cdef class Delivery(Outlet):
    cdef object _ids
    cdef Outbox _outbox

    @cython.locals(edge=cython.ulonglong)
    cpdef unsigned long long deliver_one(self, Target target, object value, unsigned long long root, object lineage) except? 0
    @cython.locals(anchor=Delivered, edge=cython.ulonglong, edges=dict)
    cpdef join_one(self, Target target, object value, object anchors, object lineage)
    @cython.locals(queued=Py_ssize_t)
    cdef _append(self, Target target, Delivered tup)
    cdef _crowd(self, Inbox inbox)

cdef class SingleOutlet(Delivery):
    cdef One _chooser
    cdef list _targets

    @cython.locals(target=Target, edge=cython.ulonglong, queued=Py_ssize_t)
    cpdef unsigned long long deliver(self, object value, unsigned long long root, object lineage) except? 0
    @cython.locals(target=Target)
    cpdef deliver_joined(self, object value, object anchors, object lineage)

cdef class FanOutlet(Delivery):
    cdef object _links
    cdef list _delivered
    cdef long long _elsewhere

    cdef _choose(self, object value)
    @cython.locals(before=Py_ssize_t, end=Py_ssize_t)
    cdef _count_delivered(self, list ends)

cdef class FixedOutlet(Delivery):
    cdef Target _target

cdef class DirectOutlet(Outlet):
    cdef object _outlets
