/* Adds SLOW_FSYNC_US microseconds to every fsync and fdatasync of a program it
 * is preloaded into (LD_PRELOAD), after the real call: a disk of the cloud kind
 * on a machine that has a fast one. sync_file_range is left alone: it promises
 * nothing about durability, so no acknowledgement waits for it.
 *
 *   cc -O2 -fPIC -shared -o libslow-fsync.so slow-fsync.c
 *   SLOW_FSYNC_US=1000 LD_PRELOAD=./libslow-fsync.so program
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

typedef int (*sync_fn)(int);

static sync_fn real_fsync;
static sync_fn real_fdatasync;
static struct timespec delay;

/* Runs before main, so the two pointers need no lock later. */
__attribute__((constructor)) static void slow_fsync_init(void)
{
    real_fsync = (sync_fn)dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = (sync_fn)dlsym(RTLD_NEXT, "fdatasync");
    const char *text = getenv("SLOW_FSYNC_US");
    long us = text ? strtol(text, NULL, 10) : 0;
    /* More than ten seconds is a slip of the hand, not a disk. */
    if (us < 0 || us > 10000000)
        us = 0;
    delay.tv_sec = us / 1000000;
    delay.tv_nsec = (us % 1000000) * 1000;
}

/* Waits the whole delay, signals or not, and leaves errno as the call set it. */
static int slowed(sync_fn real, int fd)
{
    if (!real) {
        errno = ENOSYS;
        return -1;
    }
    int result = real(fd);
    int saved = errno;
    struct timespec left = delay;
    while ((left.tv_sec || left.tv_nsec) && nanosleep(&left, &left) == -1 && errno == EINTR)
        ;
    errno = saved;
    return result;
}

int fsync(int fd)
{
    return slowed(real_fsync, fd);
}

int fdatasync(int fd)
{
    return slowed(real_fdatasync, fd);
}
