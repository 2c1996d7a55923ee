cimport cython
from stormlet.core.state.tables cimport Table

cdef class ValueTable(Table):
    cdef public dict live
    cdef public dict changed

    @cython.locals(changed=dict)
    cpdef get(self, object key)
    @cython.locals(changed=dict, before=cython.Py_ssize_t)
    cpdef put(self, object key, object value)
    cdef _fitted(self, object key, object value)
    cpdef delete(self, object key)
    @cython.locals(live=dict, found=dict)
    cpdef dict portion(self, list entries)

cpdef list without_value(dict entries)
