cimport cython

cdef Py_ssize_t WORDS, MIDDLE
cdef unsigned int UPPER, LOWER, TWIST, MASK_B, MASK_C

@cython.final
cdef class Twister:
    cdef unsigned int[624] _words
    cdef Py_ssize_t _place

    @cython.locals(low=cython.ulonglong, high=cython.ulonglong)
    cpdef unsigned long long draw(self) noexcept
    @cython.locals(word=cython.uint)
    cdef unsigned int _word(self) noexcept
    @cython.locals(words=cython.p_uint, bits=cython.uint, place=Py_ssize_t, following=Py_ssize_t, middle=Py_ssize_t)
    cdef void _twist(self) noexcept

@cython.locals(twister=Twister)
cpdef unsigned long long next_id(object ids) except? 0

cpdef Py_ssize_t shard_of(unsigned long long root, unsigned long long ackers) except -1
