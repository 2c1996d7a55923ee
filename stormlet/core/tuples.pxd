cimport cython

cdef extern from *:
    """
    #include <structmember.h>

    /* The interpreter reads a member of a structure by itself, and calls a function for a property. It cannot be
       assigned: a deleted value would be a null pointer. */
    CYTHON_UNUSED static PyMemberDef stormlet_value = {"value", T_OBJECT_EX, 0, READONLY, "What was emitted."};

    CYTHON_UNUSED static int stormlet_as_member(PyObject *type, Py_ssize_t offset) {
        stormlet_value.offset = offset;
        PyObject *descriptor = PyDescr_NewMember((PyTypeObject *)type, &stormlet_value);
        if (!descriptor)
            return -1;
        int failed = PyDict_SetItemString(((PyTypeObject *)type)->tp_dict, "value", descriptor);
        Py_DECREF(descriptor);
        PyType_Modified((PyTypeObject *)type);
        return failed;
    }

    /* True for what refers to nothing that the collector looks at, and will not later: a tuple of plain values, and a
       record of them that is frozen. The last type that was looked at is kept, as most values are of one. */
    CYTHON_UNUSED static int stormlet_is_fixed(PyObject *thing) {
        static PyTypeObject *last = NULL;
        static int last_is_frozen = 0;
        PyTypeObject *type = Py_TYPE(thing);
        if (PyObject_GC_IsTracked(thing))
            return 0;
        if (type == &PyTuple_Type)
            return 1;
        if (type != last) {
            PyObject *config = PyObject_GetAttrString((PyObject *)type, "__struct_config__");
            PyObject *frozen = config ? PyObject_GetAttrString(config, "frozen") : NULL;
            PyErr_Clear();
            Py_XDECREF(config);
            Py_XDECREF(frozen);
            last_is_frozen = frozen == Py_True;
            Py_XDECREF(last);
            Py_INCREF(type);
            last = type;
        }
        return last_is_frozen;
    }

    #define stormlet_may_refer(thing) (PyObject_IS_GC(thing) && !stormlet_is_fixed(thing))

    #define stormlet_value_as_member(type) \
        stormlet_as_member(type, offsetof(struct StormletTuple, value))
    """
    int value_as_member "stormlet_value_as_member" (object kind) except -1
    bint may_refer "stormlet_may_refer" (object thing)

cdef extern from "Python.h":
    bint is_tracked "PyObject_GC_IsTracked" (object thing)
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
@cython.locals(tup=JoinedTuple)
cpdef JoinedTuple joined_tuple(object value, object source, object lineage, object edges)
