/* Gives one process a wall clock that is wrong. Loaded with LD_PRELOAD.
 *
 * In:  BELLWETHER_WRONGCLOCK_CONTROL  a file of one native 64-bit integer: seconds that the clock is ahead (below 0:
 *                                     behind); mapped once, so a change counts at once
 * Out: clock_gettime of the wall clocks, gettimeofday and time: the C library's own, and so many seconds off. Monotonic
 *      clocks stay as they are: they have no date that could be wrong. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t right = 0;
static const volatile int64_t *seconds = &right;

__attribute__((constructor)) static void prepare(void)
{
    const char *file = getenv("BELLWETHER_WRONGCLOCK_CONTROL");
    if (!file)
        return;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED)
        seconds = mapped;
}

#define NEXT(name)                                              \
    static __typeof__(name) *next;                              \
    if (!next)                                                  \
        next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

int clock_gettime(clockid_t clock, struct timespec *now)
{
    NEXT(clock_gettime);
    int result = next(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI))
        now->tv_sec += *seconds;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    NEXT(gettimeofday);
    int result = next(now, zone);
    if (result == 0 && now)
        now->tv_sec += *seconds;
    return result;
}

time_t time(time_t *stored)
{
    NEXT(time);
    time_t now = next(NULL);
    if (now != (time_t)-1)
        now += *seconds;
    if (stored)
        *stored = now;
    return now;
}
