cpdef shard_of(object root, Py_ssize_t ackers)
