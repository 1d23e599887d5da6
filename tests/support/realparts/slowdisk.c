/* Makes one directory's disk slow for one process. Loaded with LD_PRELOAD.
 *
 * In:  BELLWETHER_SLOWDISK_DIRECTORY  the directory, as realpath() gives it
 *      BELLWETHER_SLOWDISK_CONTROL    a file of three native 32-bit integers: milliseconds before each sync, before
 *                                     each write and before each read; mapped once, so a change counts at once
 * Out: write, pwrite, writev, pwritev, read, pread, readv, preadv, preadv2 and their 64-bit names, sendfile, fsync and
 *      fdatasync: delayed when their file is a regular one below the directory, otherwise the C library's own. A sync
 *      that follows a delayed write of the same file is not delayed again: both together take what one of them takes.
 *
 * A process that maps files reads and writes without a call; Kafka so uses its indexes, and those alone. A read is
 * delayed although the page cache could answer it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct control {
    volatile int32_t sync_ms;
    volatile int32_t write_ms;
    volatile int32_t read_ms;
};

static const struct control nothing = {0, 0, 0};
static const struct control *control = &nothing;
static char directory[4096];
static size_t directory_length;

__attribute__((constructor)) static void prepare(void)
{
    const char *wanted = getenv("BELLWETHER_SLOWDISK_DIRECTORY");
    const char *file = getenv("BELLWETHER_SLOWDISK_CONTROL");
    if (!wanted || !file || strlen(wanted) >= sizeof directory)
        return;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    void *mapped = mmap(NULL, sizeof(struct control), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped == MAP_FAILED)
        return;
    strcpy(directory, wanted);
    directory_length = strlen(directory);
    control = mapped;
}

static int is_below(int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return 0;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path);
    return length > (ssize_t)directory_length && memcmp(path, directory, directory_length) == 0 &&
           path[directory_length] == '/';
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void sleep_ms(int64_t milliseconds)
{
    struct timespec left = {milliseconds / 1000, (milliseconds % 1000) * 1000000L};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

/* In slices, each looking at the control again: a disk that was stalled lets go when it is mended. Returns whether the
 * file is one to delay. */
static int delay(int fd, const volatile int32_t *milliseconds)
{
    if (*milliseconds <= 0)
        return 0;
    int before = errno, slow = is_below(fd);
    if (slow) {
        int64_t began = now_ms(), left;
        while ((left = *milliseconds - (now_ms() - began)) > 0)
            sleep_ms(left < 100 ? left : 100);
    }
    errno = before;
    return slow;
}

/* Whether the last write of a file, by its descriptor, was delayed and not yet synced. */
#define MOST_FILES 65536
static volatile char write_delayed[MOST_FILES];

static void delay_write(int fd)
{
    if (delay(fd, &control->write_ms) && fd < MOST_FILES)
        write_delayed[fd] = 1;
}

static void delay_sync(int fd)
{
    if (fd >= 0 && fd < MOST_FILES && write_delayed[fd])
        write_delayed[fd] = 0;
    else
        delay(fd, &control->sync_ms);
}

static void delay_read(int fd)
{
    delay(fd, &control->read_ms);
}

#define NEXT(name)                                              \
    static __typeof__(name) *next;                              \
    if (!next)                                                  \
        next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *buffer, size_t count)
{
    NEXT(write);
    delay_write(fd);
    return next(fd, buffer, count);
}

ssize_t pwrite(int fd, const void *buffer, size_t count, off_t offset)
{
    NEXT(pwrite);
    delay_write(fd);
    return next(fd, buffer, count, offset);
}

ssize_t pwrite64(int fd, const void *buffer, size_t count, off64_t offset)
{
    NEXT(pwrite64);
    delay_write(fd);
    return next(fd, buffer, count, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    NEXT(writev);
    delay_write(fd);
    return next(fd, parts, count);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    NEXT(pwritev);
    delay_write(fd);
    return next(fd, parts, count, offset);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    NEXT(pwritev64);
    delay_write(fd);
    return next(fd, parts, count, offset);
}

int fsync(int fd)
{
    NEXT(fsync);
    delay_sync(fd);
    return next(fd);
}

int fdatasync(int fd)
{
    NEXT(fdatasync);
    delay_sync(fd);
    return next(fd);
}

ssize_t read(int fd, void *buffer, size_t count)
{
    NEXT(read);
    delay_read(fd);
    return next(fd, buffer, count);
}

ssize_t pread(int fd, void *buffer, size_t count, off_t offset)
{
    NEXT(pread);
    delay_read(fd);
    return next(fd, buffer, count, offset);
}

ssize_t pread64(int fd, void *buffer, size_t count, off64_t offset)
{
    NEXT(pread64);
    delay_read(fd);
    return next(fd, buffer, count, offset);
}

ssize_t readv(int fd, const struct iovec *parts, int count)
{
    NEXT(readv);
    delay_read(fd);
    return next(fd, parts, count);
}

ssize_t preadv(int fd, const struct iovec *parts, int count, off_t offset)
{
    NEXT(preadv);
    delay_read(fd);
    return next(fd, parts, count, offset);
}

ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    NEXT(preadv64);
    delay_read(fd);
    return next(fd, parts, count, offset);
}

ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    NEXT(preadv2);
    delay_read(fd);
    return next(fd, parts, count, offset, flags);
}

ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags)
{
    NEXT(preadv64v2);
    delay_read(fd);
    return next(fd, parts, count, offset, flags);
}

ssize_t sendfile(int out, int fd, off_t *offset, size_t count)
{
    NEXT(sendfile);
    delay_read(fd);
    return next(out, fd, offset, count);
}

ssize_t sendfile64(int out, int fd, off64_t *offset, size_t count)
{
    NEXT(sendfile64);
    delay_read(fd);
    return next(out, fd, offset, count);
}
