cimport cython

cdef class Activity:
    cdef public Py_ssize_t busy
    cdef object _on_quiet
    cdef object _on_stir

    cpdef begin(self)
    cpdef end(self)

cdef class Pace:
    cdef public Py_ssize_t chunk

    @cython.locals(wanted=cython.double)
    cpdef measured(self, double seconds, double budget)

cdef class _Turns:
    cdef object _loop
    cdef object _waiting
    cdef list _returned
    cdef Py_ssize_t _entering
    cdef list _callbacks
    cdef bint _watched
    cdef bint _opened
    cdef bint _exhausted

    cdef bint _has_budget(self) except -1
    cpdef watch(self)
    cdef _open(self)
    cdef _let_in(self)

cdef class TimedSlices(_Turns):
    cdef double _budget
    cdef object _time
    cdef double _until
    cdef double _last
    cdef double _used
    cdef object _others

    cdef bint _has_budget(self) except -1
    cpdef bint go_on(self, double now, bint in_slice) except -1
    @cython.locals(seconds=cython.double)
    cdef bint _spend(self, Pace pace, double now) except -1
    cdef _open(self)

cdef class CountedSlices(_Turns):
    cdef object _random
    cdef Py_ssize_t _left

    cpdef bint go_on(self, double now, bint in_slice) except -1
    cdef _count(self, Py_ssize_t executed)
    cdef _open(self)
