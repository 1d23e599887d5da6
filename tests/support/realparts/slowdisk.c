/* Makes one directory's disk slow for one process. Loaded with LD_PRELOAD.
 *
 * In:  BELLWETHER_SLOWDISK_DIRECTORY  the directory, as realpath() gives it
 *      BELLWETHER_SLOWDISK_CONTROL    a file of two native 32-bit integers: milliseconds before each sync, and before
 *                                     each write; mapped once, so a change counts at once
 * Out: write, pwrite, writev, pwritev and their 64-bit names, fsync and fdatasync: delayed when their file is
 *      a regular one below the directory, otherwise the C library's own.
 *
 * A process that maps files writes without a call; Kafka so writes its indexes, and those alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct control {
    volatile int32_t sync_ms;
    volatile int32_t write_ms;
};

static const struct control nothing = {0, 0};
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

/* In slices, each looking at the control again: a disk that was stalled lets go when it is mended. */
static void delay(int fd, const volatile int32_t *milliseconds)
{
    if (*milliseconds <= 0)
        return;
    int before = errno;
    if (is_below(fd)) {
        int64_t began = now_ms(), left;
        while ((left = *milliseconds - (now_ms() - began)) > 0)
            sleep_ms(left < 100 ? left : 100);
    }
    errno = before;
}

#define NEXT(name)                                              \
    static __typeof__(name) *next;                              \
    if (!next)                                                  \
        next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *buffer, size_t count)
{
    NEXT(write);
    delay(fd, &control->write_ms);
    return next(fd, buffer, count);
}

ssize_t pwrite(int fd, const void *buffer, size_t count, off_t offset)
{
    NEXT(pwrite);
    delay(fd, &control->write_ms);
    return next(fd, buffer, count, offset);
}

ssize_t pwrite64(int fd, const void *buffer, size_t count, off64_t offset)
{
    NEXT(pwrite64);
    delay(fd, &control->write_ms);
    return next(fd, buffer, count, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    NEXT(writev);
    delay(fd, &control->write_ms);
    return next(fd, parts, count);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    NEXT(pwritev);
    delay(fd, &control->write_ms);
    return next(fd, parts, count, offset);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    NEXT(pwritev64);
    delay(fd, &control->write_ms);
    return next(fd, parts, count, offset);
}

int fsync(int fd)
{
    NEXT(fsync);
    delay(fd, &control->sync_ms);
    return next(fd);
}

int fdatasync(int fd)
{
    NEXT(fdatasync);
    delay(fd, &control->sync_ms);
    return next(fd);
}
