/* Preloaded into a program, lets one call to the system fail. faults.py compiles it, and says which:
     CREMA_FAULT_PATH   only calls about files below this folder count
     CREMA_FAULT_CALL   a function, such as open; open64 and fopen count as open. Or, counted from the
                        start of main(): memory (malloc, calloc, realloc and the aligned ones), mapping
                        (mmap without a file), mprotect, thread (pthread_create)
     CREMA_FAULT_NTH    which of these calls, from 1; 0: none
     CREMA_FAULT_ERRNO  the error's number; 0: the process is killed before the call
     CREMA_FAULT_COUNT  a file that gets lines with the name of a call and how many there were
     CREMA_FAULT_STACK  a file that gets the stacks of the call that fails and of a crash
     CREMA_FAULT_RANK   only in this rank of mpirun; the names of both files end in ".RANK" then */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kFiles = 4096 };
static atomic_int made;
static atomic_uchar below[kFiles]; /* whether a descriptor is of a file below the folder */
static DIR* folders[64];           /* open ones that are */

static const char* setting(const char* name) {
  const char* text = getenv(name);
  return text ? text : "";
}

/* Settings that are asked for too often to look for them in the environment. */
static const char *wanted_call = "", *count_path = "";
static char files_of_rank[2][PATH_MAX]; /* for counts and stacks */
static int wanted_nth, reason_number, of_this_rank = 1;
static atomic_int started; /* main() runs */

static void write_stack(const char* why) {
  if (!*files_of_rank[1]) return;
  int file = (int)syscall(SYS_openat, AT_FDCWD, files_of_rank[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return;
  syscall(SYS_write, file, why, strlen(why));
  void* frames[80];
  backtrace_symbols_fd(frames, backtrace(frames, 80), file);
  syscall(SYS_close, file);
}

/* The call that was wanted: errno, or the end. */
static int strike(void) {
  if (reason_number == 0) syscall(SYS_kill, getpid(), SIGKILL);
  int was_started = atomic_exchange(&started, 0); /* what the stack needs does not count */
  write_stack("fault\n");
  atomic_store(&started, was_started);
  errno = reason_number;
  return 1;
}

static int is_below(const char* path) {
  const char* folder = setting("CREMA_FAULT_PATH");
  if (!path || !*folder) return 0;
  char whole[2 * PATH_MAX];
  if (path[0] != '/') {
    if (!getcwd(whole, PATH_MAX)) return 0;
    strcat(whole, "/");
    strncat(whole, path, PATH_MAX - 1);
    path = whole;
  }
  size_t length = strlen(folder);
  return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

enum { kNames = 64 };
static const char* call_names[kNames];
static atomic_long call_counts[kNames];

/* Counts a call; true when it is the one that fails, with errno set. The name is a literal. */
static int fails(const char* name) {
  if (*count_path) {
    for (int i = 0; i < kNames; ++i) {
      if (!call_names[i]) call_names[i] = name;
      if (strcmp(call_names[i], name) != 0) continue;
      atomic_fetch_add(&call_counts[i], 1);
      break;
    }
  }
  if (!of_this_rank || strcmp(name, wanted_call) != 0) return 0;
  if (atomic_fetch_add(&made, 1) + 1 != wanted_nth) return 0;
  return strike();
}

static int fails_in_main(const char* name) { return atomic_load_explicit(&started, memory_order_relaxed) && fails(name); }

static void write_counts(void) {
  atomic_store(&started, 0);
  if (!*count_path) return;
  int file = (int)syscall(SYS_openat, AT_FDCWD, files_of_rank[0], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  for (int i = 0; i < kNames && call_names[i]; ++i) {
    char line[64];
    int length = snprintf(line, sizeof line, "%s %ld\n", call_names[i], (long)call_counts[i]);
    syscall(SYS_write, file, line, (size_t)length);
  }
  syscall(SYS_close, file);
}

static void crashed(int number) {
  atomic_store(&started, 0);
  write_stack(number == SIGSEGV ? "crash: SIGSEGV\n" : number == SIGABRT ? "crash: SIGABRT\n" : "crash\n");
  signal(number, SIG_DFL);
  raise(number);
}

static int (*real_main)(int, char**, char**);

static int main_with_faults(int argc, char** argv, char** environment) {
  void* frame[1];
  backtrace(frame, 1); /* loads what it needs */
  wanted_call = setting("CREMA_FAULT_CALL");
  count_path = setting("CREMA_FAULT_COUNT");
  wanted_nth = atoi(setting("CREMA_FAULT_NTH"));
  reason_number = atoi(setting("CREMA_FAULT_ERRNO"));
  const char *of_rank = setting("CREMA_FAULT_RANK"), *rank = setting("OMPI_COMM_WORLD_RANK");
  of_this_rank = !*of_rank || strcmp(of_rank, rank) == 0;
  const char* paths[2] = {count_path, setting("CREMA_FAULT_STACK")};
  for (int i = 0; i < 2; ++i)
    if (*paths[i]) snprintf(files_of_rank[i], PATH_MAX, *of_rank ? "%s.%s" : "%s", paths[i], rank);
  write_stack("main\n");
  const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  if (*paths[1])
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; ++i) signal(numbers[i], crashed);
  atexit(write_counts);
  atomic_store(&started, 1);
  return real_main(argc, argv, environment);
}

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, int (*init)(int, char**, char**),
                      void (*fini)(void), void (*rtld_fini)(void), void* stack_end) {
  __typeof__(__libc_start_main)* real = (__typeof__(__libc_start_main)*)dlsym(RTLD_NEXT, "__libc_start_main");
  real_main = main;
  return real(main_with_faults, argc, argv, init, fini, rtld_fini, stack_end);
}

/* glibc's own entries: dlsym() allocates. */
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) { return fails_in_main("memory") ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return fails_in_main("memory") ? NULL : __libc_calloc(count, size); }
void* realloc(void* old, size_t size) {
  return size > 0 && fails_in_main("memory") ? NULL : __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  return fails_in_main("memory") ? NULL : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return fails_in_main("memory") ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void** to, size_t alignment, size_t size) {
  if (fails_in_main("memory")) return ENOMEM;
  void* made = __libc_memalign(alignment, size);
  if (!made) return ENOMEM;
  *to = made;
  return 0;
}

static int of_file(int file) { return file >= 0 && file < kFiles && below[file]; }

static int keep(int file, const char* path) {
  if (file >= 0 && file < kFiles) below[file] = (unsigned char)is_below(path);
  return file;
}

#define REAL(name) __typeof__(name)* real = (__typeof__(name)*)dlsym(RTLD_NEXT, #name)
#define BY_PATH(name, path, failure) \
  REAL(name);                        \
  if (is_below(path) && fails(#name)) return failure
#define BY_FILE(name, file, failure) \
  REAL(name);                        \
  if (of_file(file) && fails(#name)) return failure

static mode_t mode_of(int flags, va_list rest) { return (flags & (O_CREAT | __O_TMPFILE)) ? va_arg(rest, mode_t) : 0; }

#define OPEN(name)                               \
  int name(const char* path, int flags, ...) {   \
    va_list rest;                                \
    va_start(rest, flags);                       \
    mode_t mode = mode_of(flags, rest);          \
    va_end(rest);                                \
    REAL(name);                                  \
    if (is_below(path) && fails("open")) return -1; \
    return keep(real(path, flags, mode), path);  \
  }
OPEN(open)
OPEN(open64)

FILE* fopen(const char* path, const char* mode) {
  REAL(fopen);
  if (is_below(path) && fails("open")) return NULL;
  FILE* file = real(path, mode);
  if (file) keep(fileno(file), path);
  return file;
}
FILE* fopen64(const char* path, const char* mode) {
  REAL(fopen64);
  if (is_below(path) && fails("open")) return NULL;
  FILE* file = real(path, mode);
  if (file) keep(fileno(file), path);
  return file;
}
int close(int file) {
  REAL(close);
  if (file >= 0 && file < kFiles) below[file] = 0;
  return real(file);
}
ssize_t read(int file, void* to, size_t count) {
  BY_FILE(read, file, -1);
  return real(file, to, count);
}
ssize_t pread(int file, void* to, size_t count, off_t at) {
  BY_FILE(pread, file, -1);
  return real(file, to, count, at);
}
ssize_t pread64(int file, void* to, size_t count, off_t at) {
  REAL(pread64);
  if (of_file(file) && fails("pread")) return -1;
  return real(file, to, count, at);
}
ssize_t write(int file, const void* from, size_t count) {
  BY_FILE(write, file, -1);
  return real(file, from, count);
}
ssize_t pwrite(int file, const void* from, size_t count, off_t at) {
  BY_FILE(pwrite, file, -1);
  return real(file, from, count, at);
}
ssize_t pwrite64(int file, const void* from, size_t count, off_t at) {
  REAL(pwrite64);
  if (of_file(file) && fails("pwrite")) return -1;
  return real(file, from, count, at);
}
ssize_t writev(int file, const struct iovec* parts, int count) {
  BY_FILE(writev, file, -1);
  return real(file, parts, count);
}
ssize_t pwritev(int file, const struct iovec* parts, int count, off_t at) {
  BY_FILE(pwritev, file, -1);
  return real(file, parts, count, at);
}
int fsync(int file) {
  BY_FILE(fsync, file, -1);
  return real(file);
}
int fdatasync(int file) {
  BY_FILE(fdatasync, file, -1);
  return real(file);
}
int ftruncate(int file, off_t size) {
  BY_FILE(ftruncate, file, -1);
  return real(file, size);
}
int ftruncate64(int file, off64_t size) {
  REAL(ftruncate64);
  if (of_file(file) && fails("ftruncate")) return -1;
  return real(file, size);
}
int flock(int file, int how) {
  BY_FILE(flock, file, -1);
  return real(file, how);
}
int rename(const char* from, const char* to) {
  BY_PATH(rename, to, -1);
  return real(from, to);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned how) {
  BY_PATH(renameat2, to, -1);
  return real(from_folder, from, to_folder, to, how);
}
int unlink(const char* path) {
  BY_PATH(unlink, path, -1);
  return real(path);
}
int rmdir(const char* path) {
  BY_PATH(rmdir, path, -1);
  return real(path);
}
int mkdir(const char* path, mode_t mode) {
  BY_PATH(mkdir, path, -1);
  return real(path, mode);
}
int stat(const char* path, struct stat* info) {
  BY_PATH(stat, path, -1);
  return real(path, info);
}
int stat64(const char* path, struct stat64* info) {
  REAL(stat64);
  if (is_below(path) && fails("stat")) return -1;
  return real(path, info);
}
int lstat(const char* path, struct stat* info) {
  BY_PATH(lstat, path, -1);
  return real(path, info);
}
int fstat(int file, struct stat* info) {
  BY_FILE(fstat, file, -1);
  return real(file, info);
}
int statvfs(const char* path, struct statvfs* info) {
  BY_PATH(statvfs, path, -1);
  return real(path, info);
}
DIR* opendir(const char* path) {
  BY_PATH(opendir, path, NULL);
  DIR* folder = real(path);
  if (folder && is_below(path)) {
    for (size_t i = 0; i < sizeof folders / sizeof *folders; ++i) {
      if (folders[i]) continue;
      folders[i] = folder;
      break;
    }
  }
  return folder;
}
static DIR** known(DIR* folder) {
  for (size_t i = 0; i < sizeof folders / sizeof *folders; ++i)
    if (folders[i] == folder) return &folders[i];
  return NULL;
}
int closedir(DIR* folder) {
  REAL(closedir);
  DIR** entry = known(folder);
  if (entry) *entry = NULL;
  return real(folder);
}
struct dirent* readdir(DIR* folder) {
  REAL(readdir);
  if (known(folder) && fails("readdir")) return NULL;
  return real(folder);
}
struct dirent64* readdir64(DIR* folder) {
  REAL(readdir64);
  if (known(folder) && fails("readdir")) return NULL;
  return real(folder);
}
void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) {
  REAL(mmap);
  if (file < 0 ? fails_in_main("mapping") : of_file(file) && fails("mmap")) return MAP_FAILED;
  return real(at, size, protection, flags, file, offset);
}
void* mmap64(void* at, size_t size, int protection, int flags, int file, off64_t offset) {
  REAL(mmap64);
  if (file < 0 ? fails_in_main("mapping") : of_file(file) && fails("mmap")) return MAP_FAILED;
  return real(at, size, protection, flags, file, offset);
}
int mprotect(void* at, size_t size, int protection) {
  REAL(mprotect);
  if (fails_in_main("mprotect")) return -1;
  return real(at, size, protection);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*work)(void*), void* argument) {
  REAL(pthread_create);
  if (fails_in_main("thread")) return EAGAIN;
  return real(thread, attributes, work, argument);
}
