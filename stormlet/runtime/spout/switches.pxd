cdef class Switches:
    cdef public bint active
    cdef public bint attentive
    cdef public bint pausing
    cdef public bint pausing_for_own
    cdef public bint sated
    cdef public bint stopping
    cdef public bint woken
