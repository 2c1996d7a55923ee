cimport cython
from cpython.mem cimport PyMem_Calloc, PyMem_Free

cdef int EMPTY, TAKEN_OUT
cdef Py_ssize_t LEAST
cdef object _MISSING

cdef inline int *renewed(int *old, Py_ssize_t count) except NULL:
    cdef int *slots = <int *>PyMem_Calloc(count, sizeof(int))
    if slots is NULL:
        raise MemoryError()
    PyMem_Free(old)
    return slots

cdef inline void release(int *slots) noexcept:
    PyMem_Free(slots)

@cython.no_gc
cdef class OpenTree:
    cdef public unsigned long long root
    cdef public unsigned long long checksum
    cdef public int spout
    cdef public object message_id
    cdef public object failure

@cython.locals(tree=OpenTree)
cpdef OpenTree new_tree(object message_id)

@cython.no_gc
cdef class TreeTable:
    cdef list _trees
    cdef int *_slots
    cdef Py_ssize_t _mask
    cdef Py_ssize_t _size

    @cython.locals(slot=Py_ssize_t)
    cpdef OpenTree get(self, unsigned long long root)
    @cython.locals(slot=Py_ssize_t, place=Py_ssize_t, tree=OpenTree)
    cpdef pop(self, unsigned long long root, object default=*)
    cpdef put(self, OpenTree tree)
    @cython.locals(slot=Py_ssize_t)
    cdef _append(self, OpenTree tree)
    @cython.locals(slot=Py_ssize_t, place=Py_ssize_t, tree=OpenTree)
    cdef Py_ssize_t _slot_of(self, unsigned long long root) except -2
    @cython.locals(slots=Py_ssize_t, tree=OpenTree)
    cdef _make_room(self)
    cdef _make_anew(self, Py_ssize_t slots)
