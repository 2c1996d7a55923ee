cimport cython
from stormlet.connect.driver.held cimport Held
from stormlet.connect.driver.holding cimport Holding
from stormlet.core.settlement.prefix cimport Prefix
from stormlet.core.settlement.receipts cimport Receipts

cdef Py_ssize_t LOOKED_AT

cdef class Arrivals:
    cdef object _decode
    cdef object _ordered_by
    cdef object _most_bytes
    cdef Holding _holding
    cdef Receipts _receipts
    cdef object _partitions
    cdef object _status
    cdef object _unnamed
    cdef object _numbers
    cdef object _most_attempts
    cdef bint _is_traced
    cdef object _clock

    @cython.locals(holding=Holding, number=Py_ssize_t, place=Prefix, last=Prefix, is_given_away=bint)
    cpdef Py_ssize_t take(self, deliveries, double now, double until) except -1
    @cython.locals(number=Py_ssize_t)
    cdef Held _held(self, delivery, Prefix place, double now)
    @cython.locals(receipts=Receipts)
    cdef _id_of(self, name, Py_ssize_t number)
