/* Sends one process's connections astray, as a broken path does that nobody else takes. Loaded with LD_PRELOAD.
 *
 * In:  BELLWETHER_DETOUR_CONTROL  a file of native 32-bit integers: how many pairs of ports follow, and the pairs, each a
 *                                 port and where it leads; mapped once, so a change counts from the next connection
 * Out: connect to the first port of a pair over IPv4 goes to the second of the same address; all else is the C library's. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST 64

struct control {
    volatile int32_t count;
    volatile struct {
        int32_t port;
        int32_t leads_to;
    } ways[MOST];
};

static const struct control nothing;
static const struct control *control = &nothing;

__attribute__((constructor)) static void prepare(void)
{
    const char *file = getenv("BELLWETHER_DETOUR_CONTROL");
    if (!file)
        return;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    void *mapped = mmap(NULL, sizeof(struct control), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED)
        control = mapped;
}

static int leads_to(int port)
{
    for (int i = 0; i < control->count && i < MOST; i++)
        if (control->ways[i].port == port)
            return control->ways[i].leads_to;
    return port;
}

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    static int (*next)(int, const struct sockaddr *, socklen_t);
    if (!next)
        next = (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
    if (address->sa_family != AF_INET || length < sizeof(struct sockaddr_in))
        return next(fd, address, length);
    struct sockaddr_in changed;
    memcpy(&changed, address, sizeof changed);
    changed.sin_port = htons((uint16_t)leads_to(ntohs(changed.sin_port)));
    return next(fd, (const struct sockaddr *)&changed, sizeof changed);
}
