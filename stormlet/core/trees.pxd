cimport cython
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.mem cimport PyMem_Calloc, PyMem_Free

cdef extern from *:
    """
    #ifdef __GNUC__
    #define stormlet_prefetch(address) __builtin_prefetch(address)
    #else
    #define stormlet_prefetch(address) ((void)(address))
    #endif
    """
    void prefetch "stormlet_prefetch" (const void *address) noexcept

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
    cdef void _enter(self, unsigned long long root, int place) noexcept
    @cython.locals(slot=Py_ssize_t, place=Py_ssize_t, tree=OpenTree)
    cdef Py_ssize_t _slot_of(self, unsigned long long root) except -2
    @cython.locals(slots=Py_ssize_t, tree=OpenTree, place=Py_ssize_t, trees=list)
    cdef _make_room(self)
    cdef _make_anew(self, Py_ssize_t slots, list trees)

# Slots and trees of a large table are seldom in the processor's caches. So the memory of those that come a little later
# in a row is asked for before it is needed; of a small table, that would cost more than it saves.
cdef enum:
    SLOTS_AHEAD = 16
    TREES_AHEAD = 8  # later than its slot, as the slot must be there to find the tree
    LARGE = 1 << 13  # slots: a table that has more has 64 KiB of them at least

cdef inline void prefetch_for_put(TreeTable table, list trees, Py_ssize_t place) noexcept:
    if table._mask >= LARGE and place + SLOTS_AHEAD < PyList_GET_SIZE(trees):
        prefetch_slot(table, (<OpenTree>PyList_GET_ITEM(trees, place + SLOTS_AHEAD)).root)

cdef inline void prefetch_for_get(TreeTable table, unsigned long long *roots, Py_ssize_t count, Py_ssize_t place) noexcept:
    if table._mask >= LARGE:
        if place + SLOTS_AHEAD < count:
            prefetch_slot(table, roots[place + SLOTS_AHEAD])
        if place + TREES_AHEAD < count:
            prefetch_tree(table, roots[place + TREES_AHEAD])

cdef inline void prefetch_slot(TreeTable table, unsigned long long root) noexcept:
    prefetch(table._slots + (root & table._mask))

cdef inline void prefetch_tree(TreeTable table, unsigned long long root) noexcept:
    cdef int place = table._slots[root & table._mask]
    if place > EMPTY:
        prefetch(<void *>PyList_GET_ITEM(table._trees, place - 1))
