cdef class Attempt:
    cdef public dict reached
    cdef public bint has_dead
    cdef public bint is_entangled
    cdef dict _dead
