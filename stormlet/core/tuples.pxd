cimport cython

cdef extern from *:
    """
    #include <structmember.h>

    /* The interpreter reads a member of a structure by itself, and calls a function for a property. It cannot be
       assigned: a deleted value would be a null pointer. */
    static CYTHON_UNUSED PyMemberDef stormlet_value = {"value", T_OBJECT_EX, 0, READONLY, "What was emitted."};

    static CYTHON_UNUSED int stormlet_as_member(PyObject *type, Py_ssize_t offset) {
        stormlet_value.offset = offset;
        PyObject *descriptor = PyDescr_NewMember((PyTypeObject *)type, &stormlet_value);
        if (!descriptor)
            return -1;
        int failed = PyDict_SetItemString(((PyTypeObject *)type)->tp_dict, "value", descriptor);
        Py_DECREF(descriptor);
        PyType_Modified((PyTypeObject *)type);
        return failed;
    }

    #define stormlet_value_as_member(type) \
        stormlet_as_member(type, offsetof(struct StormletTuple, value))
    """
    int value_as_member "stormlet_value_as_member" (object kind) except -1

cdef extern from "Python.h":
    bint may_refer "PyObject_IS_GC" (object thing)
    void untrack "PyObject_GC_UnTrack" (object thing)

cdef bint IS_COMPILED

# Public, as only such a class may say what its C structure is called.
cdef public class Delivered [object StormletTuple, type StormletTupleType]:
    cdef public object value
    cdef public object source
    cdef public object lineage
    cdef public unsigned long long root
    cdef public unsigned long long edge
    cdef public int state

cdef class JoinedTuple(Delivered):
    cdef public object by_root

@cython.locals(tup=Delivered)
cpdef Delivered plain_tuple(object value, object source, object lineage, unsigned long long root, unsigned long long edge)
