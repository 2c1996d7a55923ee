cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Realloc

cdef Py_ssize_t FIRST_ROOM

ctypedef unsigned long long u64

cdef inline u64 *resized(u64 *column, Py_ssize_t room) except NULL:
    cdef u64 *larger = <u64 *>PyMem_Realloc(column, room * sizeof(u64))
    if larger is NULL:
        raise MemoryError()
    return larger

cdef inline void release(u64 *column) noexcept:
    PyMem_Free(column)

cdef class Acks:
    cdef Py_ssize_t _room
    cdef readonly Py_ssize_t count
    cdef u64 *roots
    cdef u64 *values

    cpdef add(self, u64 root, u64 value)
