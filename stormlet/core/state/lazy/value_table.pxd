cimport cython
from stormlet.core.state.value_table cimport ValueTable

cdef class LazyValueTable(ValueTable):
    cdef object _stored
    cdef object _owns
    cdef public dict former
    cdef public Py_ssize_t count

    @cython.locals(live=dict)
    cdef _fetch(self, object key)
    cdef _timed(self, object key)
    cpdef get(self, object key)
    cpdef delete(self, object key)
