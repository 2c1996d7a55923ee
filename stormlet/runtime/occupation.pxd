cimport cython

cdef class Occupation:
    cdef public double on_loop
    cdef public double threads
    cdef public double awaiting
    cdef public double blocked
    cdef public double limited
    cdef public double uptime
    cdef public Steps current
    cdef object _clock
    cdef public Py_ssize_t places
    cdef bint _running
    cdef bint _began
    cdef double _since
    cdef double _ran
    cdef double _step
    cdef Py_ssize_t _waits
    cdef Py_ssize_t _is_awaiting
    cdef Py_ssize_t _is_blocked
    cdef Py_ssize_t _in_thread
    cdef Py_ssize_t _is_limited

    @cython.locals(steps=Steps, before=int)
    cpdef int switch(self, int doing)
    @cython.locals(now=cython.double)
    cpdef begin_step(self, Steps steps)
    @cython.locals(now=cython.double, seconds=cython.double)
    cpdef end_step(self, int before, int after)
    @cython.locals(now=cython.double, seconds=cython.double)
    cpdef look(self)
    cpdef note(self, int doing, int by)
    @cython.locals(seconds=cython.double)
    cdef _settle(self, double now)
    @cython.locals(part=cython.double, left=Py_ssize_t, taken=Py_ssize_t)
    cdef _share(self, double seconds)
    cdef _count(self, int doing, int by)

cdef class Steps:
    cdef public int doing
    cdef object _coroutine
    cdef object _send
    cdef Occupation _occupation
