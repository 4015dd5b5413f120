/* Adds time to every fsync and fdatasync of a program it is preloaded into
 * (LD_PRELOAD), as long as the file SLOW_DISK_FILE says so: it holds the
 * microseconds, and no file means none. So a disk can become slow and fast
 * again while the program runs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef int (*sync_fn)(int);

static sync_fn real_fsync;
static sync_fn real_fdatasync;
static const char *place;

/* Runs before main, so the pointers need no lock later. */
__attribute__((constructor)) static void slow_disk_init(void)
{
    real_fsync = (sync_fn)dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = (sync_fn)dlsym(RTLD_NEXT, "fdatasync");
    place = getenv("SLOW_DISK_FILE");
}

static long told(void)
{
    char text[16] = {0};
    int fd = place ? open(place, O_RDONLY | O_CLOEXEC) : -1;
    if (fd == -1)
        return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    long us = length > 0 ? strtol(text, NULL, 10) : 0;
    /* More than ten seconds is a slip of the hand, not a disk. */
    return us < 0 || us > 10000000 ? 0 : us;
}

/* Waits the whole time, signals or not, and leaves errno as the call set it. */
static int slowed(sync_fn real, int fd)
{
    if (!real) {
        errno = ENOSYS;
        return -1;
    }
    int result = real(fd);
    int saved = errno;
    long us = told();
    struct timespec left = {us / 1000000, (us % 1000000) * 1000};
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
