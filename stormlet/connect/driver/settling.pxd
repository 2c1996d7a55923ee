cdef class Settling:
    cdef readonly dict places
    cdef readonly object told
    cdef readonly bint survive
    cdef readonly object caught_up
    cdef object _status
    cdef object _gather
    cdef bint _is_noted
    cdef object _noted
    cdef object _next
    cdef object _under_way
    cdef object _hurry

    cpdef done(self, receipt)
    cpdef note(self)
