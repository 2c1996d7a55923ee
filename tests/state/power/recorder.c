/* Records what a process writes below one folder, and what it syncs, in their order: load it by LD_PRELOAD, with the
 * folder in RECORD_BELOW and the path of the record in RECORD_TO.
 *
 * An entry of the record is a letter, the lengths of the path and of the rest as two numbers of 32 bits, a third number
 * of 64 bits, the path and the rest; disk.py says what they are for each letter. Files that are only mapped into memory
 * are not seen: sqlite's -shm has nothing that must survive. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int record = -1;
static char below[PATH_MAX];

__attribute__((constructor)) static void begin(void) {
    if (!getenv("RECORD_BELOW") || !getenv("RECORD_TO"))
        return;
    snprintf(below, sizeof below, "%s", getenv("RECORD_BELOW"));
    record = (int)syscall(SYS_openat, AT_FDCWD, getenv("RECORD_TO"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static int is_below(const char *path) {
    size_t length = strlen(below);
    return record >= 0 && !strncmp(path, below, length) && (path[length] == '/' || !path[length]);
}

static void note(char letter, const char *path, uint64_t number, const void *rest, uint32_t size) {
    uint32_t length = (uint32_t)strlen(path);
    struct iovec parts[] = {
        {&letter, 1}, {&length, 4}, {&size, 4}, {&number, 8}, {(void *)path, length}, {(void *)rest, size},
    };
    if (syscall(SYS_writev, record, parts, 6) != (long)(17 + length + size))
        abort();
}

static int path_of(int handle, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    path[size < 0 ? 0 : size] = 0;
    return is_below(path);
}

static void note_open(const char *path, int flags, int existed, int handle) {
    if (handle < 0 || !is_below(path))
        return;
    if (flags & O_CREAT && !existed)
        note('c', path, 0, "", 0);
    else if (flags & O_TRUNC)
        note('t', path, 0, "", 0);
}

static int opened(int folder, const char *path, int flags, mode_t mode) {
    int existed = !syscall(SYS_faccessat, folder, path, F_OK);
    int handle = REAL(openat)(folder, path, flags, mode);
    note_open(path, flags, existed, handle);
    return handle;
}

#define OPEN(name, before, folder)                                                                                     \
    int name(before const char *path, int flags, ...) {                                                                \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = va_arg(rest, mode_t);                                                                            \
        va_end(rest);                                                                                                  \
        return opened(folder, path, flags, mode);                                                                      \
    }
#define FOLDER int folder,
OPEN(open, , AT_FDCWD)
OPEN(open64, , AT_FDCWD)
OPEN(openat64, FOLDER, folder)

static void note_write(int handle, const void *data, ssize_t size, off_t place) {
    char path[PATH_MAX];
    if (size > 0 && handle != record && path_of(handle, path))
        note('w', path, (uint64_t)place, data, (uint32_t)size);
}

ssize_t pwrite(int handle, const void *data, size_t size, off_t place) {
    ssize_t written = REAL(pwrite)(handle, data, size, place);
    note_write(handle, data, written, place);
    return written;
}

ssize_t pwrite64(int handle, const void *data, size_t size, off_t place) {
    return pwrite(handle, data, size, place);
}

ssize_t write(int handle, const void *data, size_t size) {
    ssize_t written = REAL(write)(handle, data, size);
    note_write(handle, data, written, lseek(handle, 0, SEEK_CUR) - written);
    return written;
}

int ftruncate(int handle, off_t size) {
    char path[PATH_MAX];
    int failed = REAL(ftruncate)(handle, size);
    if (!failed && path_of(handle, path))
        note('t', path, (uint64_t)size, "", 0);
    return failed;
}

int ftruncate64(int handle, off_t size) { return ftruncate(handle, size); }

static int synced(int handle, int failed) {
    char path[PATH_MAX];
    if (!failed && path_of(handle, path))
        note('s', path, 0, "", 0);
    return failed;
}

int fsync(int handle) { return synced(handle, REAL(fsync)(handle)); }
int fdatasync(int handle) { return synced(handle, REAL(fdatasync)(handle)); }

int unlink(const char *path) {
    int failed = REAL(unlink)(path);
    if (!failed && is_below(path))
        note('u', path, 0, "", 0);
    return failed;
}

int rename(const char *from, const char *to) {
    int failed = REAL(rename)(from, to);
    if (!failed && is_below(from))
        note('r', from, 0, to, (uint32_t)strlen(to));
    return failed;
}
