cdef class Outbox:
    cdef object _clock
    cdef bint _in_slice
    cdef object _loop
    cdef bint _scheduled
    cdef object _shards
    cdef public object acks
    cdef public bint armed
    cdef public object consumers
    cdef public list crowded
    cdef public list fails
    cdef public dict inits
    cdef public list resets
    cdef public bint sliced
    cdef public double waited
