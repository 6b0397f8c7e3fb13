/* SPDX-License-Identifier: Apache-2.0
   What glibc has offered only since 2.29 to 2.36 and a prebuilt Weft or one of its libraries calls, on glibc 2.28
   (old_glibc.py). It comes before libc.so.6 in the order in which names are looked up, also on a newer glibc, and hands
   on there what a newer one does better. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int (*newer_wait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
static int (*newer_find)(void*, struct dl_find_object*);
__attribute__((constructor)) static void look_for_newer(void) {
  newer_wait = dlsym(RTLD_NEXT, "pthread_cond_clockwait");
  newer_find = dlsym(RTLD_NEXT, "_dl_find_object");
}

/* 2.32: whether a program still has one thread. Not known here, so reference counts stay atomic. */
char __libc_single_threaded = 0;

/* 2.33: functions; earlier ones are inline in its headers. The kernel's struct stat is glibc's on 64-bit machines. */
int fstatat(int folder, const char* path, struct stat* out, int flags) {
  return (int)syscall(SYS_newfstatat, folder, path, out, flags);
}
int stat(const char* path, struct stat* out) { return fstatat(AT_FDCWD, path, out, 0); }
int lstat(const char* path, struct stat* out) { return fstatat(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW); }
int fstat(int fd, struct stat* out) { return (int)syscall(SYS_fstat, fd, out); }
int fstatat64(int folder, const char* path, struct stat64* out, int flags) {
  return (int)syscall(SYS_newfstatat, folder, path, out, flags);
}
int stat64(const char* path, struct stat64* out) { return fstatat64(AT_FDCWD, path, out, 0); }
int lstat64(const char* path, struct stat64* out) { return fstatat64(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW); }
int fstat64(int fd, struct stat64* out) { return (int)syscall(SYS_fstat, fd, out); }

/* 2.30 */
pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }

/* 2.36 */
void arc4random_buf(void* out, size_t size) {
  for (char* at = out; size > 0;) {
    const ssize_t got = getrandom(at, size, 0);
    if (got > 0) at += got, size -= (size_t)got;
  }
}
uint32_t arc4random(void) {
  uint32_t value;
  arc4random_buf(&value, sizeof value);
  return value;
}

/* 2.30. As libstdc++ waited before: the same time from now by the clock of day. Who waits sees a clock that was set,
 * and asks again. */
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  if (newer_wait) return newer_wait(condition, mutex, clock, until);
  struct timespec then, day;
  clock_gettime(clock, &then);
  clock_gettime(CLOCK_REALTIME, &day);
  int64_t left = (until->tv_sec - then.tv_sec) * INT64_C(1000000000) + until->tv_nsec - then.tv_nsec + day.tv_nsec;
  if (left < 0) left = 0;
  const struct timespec end = {day.tv_sec + left / INT64_C(1000000000), left % INT64_C(1000000000)};
  return pthread_cond_timedwait(condition, mutex, &end);
}

/* 2.35: libgcc's unwinder asks it for the exception tables of the object that holds an address. */
struct holder {
  uintptr_t address;
  struct dl_find_object* out;
};
static int is_holder(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  const struct holder* const wanted = data;
  uintptr_t begin = UINTPTR_MAX, end = 0, tables = 0;
  int holds = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const part = &info->dlpi_phdr[i];
    const uintptr_t at = info->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) tables = at;
    if (part->p_type != PT_LOAD) continue;
    if (at < begin) begin = at;
    if (at + part->p_memsz > end) end = at + part->p_memsz;
    holds |= wanted->address >= at && wanted->address < at + part->p_memsz;
  }
  if (!holds || !tables) return 0;
  *wanted->out = (struct dl_find_object){
      .dlfo_map_start = (void*)begin, .dlfo_map_end = (void*)end, .dlfo_eh_frame = (void*)tables};
  return 1;
}
int _dl_find_object(void* address, struct dl_find_object* out) {
  if (newer_find) return newer_find(address, out);
  struct holder wanted = {(uintptr_t)address, out};
  return dl_iterate_phdr(is_holder, &wanted) ? 0 : -1;
}

/* 2.34: a program's start-up code no longer brings the function that runs its constructors, glibc finds them itself.
   Before, it must be given one; later ones take it, too. */
typedef void constructor(int, char**, char**);
static int first_object(struct dl_phdr_info* info, size_t size, void* out) {
  (void)size;
  *(struct dl_phdr_info*)out = *info;
  return 1; /* the program itself */
}
static void run_constructors(int argc, char** argv, char** environment) {
  struct dl_phdr_info program = {0};
  dl_iterate_phdr(first_object, &program);
  constructor *init = NULL, **array = NULL;
  size_t bytes = 0;
  for (int i = 0; i < program.dlpi_phnum; ++i) {
    if (program.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    for (const ElfW(Dyn)* entry = (const ElfW(Dyn)*)(program.dlpi_addr + program.dlpi_phdr[i].p_vaddr);
         entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_INIT) init = (constructor*)(program.dlpi_addr + entry->d_un.d_ptr);
      if (entry->d_tag == DT_INIT_ARRAY) array = (constructor**)(program.dlpi_addr + entry->d_un.d_ptr);
      if (entry->d_tag == DT_INIT_ARRAYSZ) bytes = entry->d_un.d_val;
    }
  }
  if (init) init(argc, argv, environment);
  for (size_t i = 0; i < bytes / sizeof *array; ++i) array[i](argc, argv, environment);
}
typedef int start(int (*)(int, char**, char**), int, char**, constructor*, void (*)(void), void (*)(void), void*);
int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, constructor* init, void (*fini)(void),
                      void (*rtld_fini)(void), void* stack_end) {
  start* const own = (start*)dlsym(RTLD_NEXT, "__libc_start_main");
  return own(main, argc, argv, init ? init : run_constructors, fini, rtld_fini, stack_end);
}
