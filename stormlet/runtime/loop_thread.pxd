cimport cython

cdef extern from "pythread.h":
    unsigned long ident_in_c "PyThread_get_thread_ident" ()

cdef bint IS_COMPILED

@cython.final
cdef class LoopThread:
    cdef unsigned long _ident
    cdef object _loop
    cdef public bint strict

    cdef bint is_elsewhere(self) except -1
    cdef bint _has_not_moved(self) except -1
