cimport cython
from stormlet.connect.driver.buffer cimport Buffer
from stormlet.connect.driver.held cimport Held
from stormlet.connect.driver.settling cimport Settling
from stormlet.core.settlement.leases cimport Leases
from stormlet.core.settlement.prefix cimport Prefix
from stormlet.core.settlement.receipts cimport Receipts

cdef class Holding:
    cdef readonly Receipts receipts
    cdef readonly Leases leases
    cdef readonly Buffer buffer
    cdef public bint all_are_read
    cdef object _rules
    cdef Settling _settling
    cdef object _status
    cdef object _out
    cdef object _room
    cdef list _awaited

    @cython.locals(leases=Leases)
    cpdef bint add(self, Held held) except -1
    @cython.locals(message=Held, values=list, ids=list, names=list, attempts=list)
    cpdef emit(self, messages)
    @cython.locals(held=Held)
    cpdef done(self, message_id)
    @cython.locals(held=Held, place=Prefix)
    cpdef Held settle(self, id)
    cdef _release(self, id)
    cdef _over(self, id, Held held)
