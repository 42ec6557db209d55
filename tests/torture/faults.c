/* Preloaded into a child: makes the Nth write, fsync, rename, connect or send fail, kills the process there, lets the disk fill up, or
 * writes down what is synced, renamed and received. It counts only calls on files under one folder, and connects and sends over TCP.
 * Built by harness.py, armed by process_pool.py. */
#define _GNU_SOURCE /* memmem, RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind { WRITE, FSYNC, RENAME, CONNECT, BYTES, SEND, N_KINDS }; /* BYTES counts what WRITE writes */
enum action { FAIL, KILL, FULL, TRACE };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_length;
static int is_armed, armed_kind, armed_action;
static long counts[N_KINDS], nth, bytes_left, struck_at_ns;
static FILE *trace;

/* kind, action, n: the nth call of the kind; with FULL, n bytes may still be written below the folder. */
void fault_arm(const char *folder, int kind, int action, long n) {
    strncpy(root, folder, sizeof root - 1);
    root_length = strlen(root);
    memset(counts, 0, sizeof counts);
    armed_kind = kind, armed_action = action, nth = n, bytes_left = n;
    if (action == TRACE) {
        char path[PATH_MAX + 8];
        snprintf(path, sizeof path, "%s.trace", folder);
        trace = fopen(path, "w");
    }
    is_armed = 1;
}

/* Also called from Python, for what no system call tells. */
void fault_note(const char *what, const char *path, const char *to) {
    if (!trace) return;
    fprintf(trace, "%s\t%s\t%s\n", what, path, to);
    fflush(trace);
}

static void note_fd(const char *what, int fd) {
    char link[64], path[PATH_MAX];
    if (!trace) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return;
    path[length] = 0;
    fault_note(what, path, "");
}

long fault_count(int kind) { return counts[kind]; }

/* Nanoseconds since 1970 of the first call that failed, 0 before. */
long fault_struck_at_ns(void) { return struck_at_ns; }

static int is_ours(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0 || !root_length) return 0;
    path[length] = 0;
    /* The data docs are pages of Great Expectations' own, written in place and made anew by each run: nothing is read from them. */
    return !strncmp(path, root, root_length) && !strstr(path, "/data_docs/");
}

/* What to answer in place of the call: 0 to make it, an errno to fail with. */
static int strike(enum kind kind, size_t n_bytes) {
    int error = 0;
    pthread_mutex_lock(&lock);
    long count = ++counts[kind];
    counts[BYTES] += (long)n_bytes;
    if (armed_action == FULL) {
        if (kind == WRITE) {
            if ((long)n_bytes > bytes_left) error = ENOSPC;
            else bytes_left -= (long)n_bytes;
        }
    } else if (kind == (enum kind)armed_kind && count == nth) {
        if (armed_action == KILL) kill(getpid(), SIGKILL);
        error = kind == CONNECT ? ECONNREFUSED : kind == SEND ? ECONNRESET : EIO;
    }
    if (error && !struck_at_ns) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        struck_at_ns = now.tv_sec * 1000000000L + now.tv_nsec;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define STRUCK(condition, kind, n_bytes) \
    if (is_armed && (condition)) { int error = strike(kind, n_bytes); if (error) { errno = error; return -1; } }

ssize_t write(int fd, const void *data, size_t n) { REAL(write); STRUCK(is_ours(fd), WRITE, n) return real(fd, data, n); }
ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { REAL(pwrite); STRUCK(is_ours(fd), WRITE, n) return real(fd, data, n, at); }
ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at) { REAL(pwrite64); STRUCK(is_ours(fd), WRITE, n) return real(fd, data, n, at); }
ssize_t writev(int fd, const struct iovec *parts, int n_parts) {
    REAL(writev);
    size_t n = 0;
    for (int i = 0; i < n_parts; i++) n += parts[i].iov_len;
    STRUCK(is_ours(fd), WRITE, n) return real(fd, parts, n_parts);
}
/* Noted once it is done: what comes after in the trace came after it. */
static int synced(int fd, int result) {
    if (!result) note_fd("fsync", fd);
    return result;
}
int fsync(int fd) { REAL(fsync); STRUCK(is_ours(fd), FSYNC, 0) return synced(fd, real(fd)); }
int fdatasync(int fd) { REAL(fdatasync); STRUCK(is_ours(fd), FSYNC, 0) return synced(fd, real(fd)); }
ssize_t recv(int fd, void *data, size_t n, int flags) {
    REAL(recv);
    ssize_t n_read = real(fd, data, n, flags);
    if (trace && n_read > 0 && memmem(data, n_read, "Reasoning: number", 17)) fault_note("received", "", "");
    return n_read;
}
int rename(const char *from, const char *to) {
    REAL(rename);
    STRUCK(!strncmp(to, root, root_length), RENAME, 0)
    fault_note("rename", from, to);
    return real(from, to);
}
int renameat(int a, const char *from, int b, const char *to) {
    REAL(renameat);
    STRUCK(!strncmp(to, root, root_length), RENAME, 0)
    fault_note("rename", from, to);
    return real(a, from, b, to);
}
static int is_over_tcp(int fd) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    return !getpeername(fd, (struct sockaddr *)&address, &length) && address.ss_family == AF_INET;
}
ssize_t send(int fd, const void *data, size_t n, int flags) { REAL(send); STRUCK(is_over_tcp(fd), SEND, 0) return real(fd, data, n, flags); }
int connect(int fd, const struct sockaddr *address, socklen_t length) {
    REAL(connect);
    STRUCK(address->sa_family == AF_INET, CONNECT, 0) return real(fd, address, length);
}
