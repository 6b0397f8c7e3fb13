/* SPDX-License-Identifier: Apache-2.0
   Linked before glibc with what tools/gpu_node/old_glibc.c was made into, which is told that there is no newer glibc:
   each stand-in does what glibc's function does. Prints "equal", or the line that is not. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define EXPECT(what) ((what) ? (void)0 : (printf("line %d: %s\n", __LINE__, #what), exit(1)))

/* Only its start-up finds glibc's own function. */
void* dlsym(void* handle, const char* name) {
  (void)handle;
  return strcmp(name, "__libc_start_main") == 0 ? dlvsym(RTLD_NEXT, name, "GLIBC_2.34") : NULL;
}

static int constructed = 0;
__attribute__((constructor)) static void construct(void) { ++constructed; }

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int said = 0;
static void* say(void* unused) {
  pthread_mutex_lock(&mutex);
  said = 1;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  return unused;
}
static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}
static int wait_until(double end) {
  const struct timespec until = {(time_t)end, (long)((end - (double)(time_t)end) * 1e9)};
  return pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &until);
}

int main(int argc, char** argv) {
  EXPECT(constructed == 1 && argc == 2 && argv[2] == NULL);

  struct stat at, link, open_file;
  struct stat64 wide;
  EXPECT(stat("/proc/self/exe", &at) == 0 && S_ISREG(at.st_mode) && at.st_size > 1000);
  EXPECT(lstat("/proc/self/exe", &link) == 0 && S_ISLNK(link.st_mode));
  const int fd = open("/proc/self/exe", O_RDONLY);
  EXPECT(fstat(fd, &open_file) == 0 && open_file.st_ino == at.st_ino &&
         open_file.st_mtim.tv_nsec == at.st_mtim.tv_nsec);
  EXPECT(fstat64(fd, &wide) == 0 && wide.st_ino == at.st_ino && wide.st_size == at.st_size);
  EXPECT(stat64("/proc/self/exe", &wide) == 0 && S_ISREG(wide.st_mode));
  EXPECT(lstat64("/proc/self/exe", &wide) == 0 && S_ISLNK(wide.st_mode));
  EXPECT(fstatat(AT_FDCWD, "/proc/self/exe", &link, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(link.st_mode));
  EXPECT(fstatat64(AT_FDCWD, "/proc/self/exe", &wide, 0) == 0 && S_ISREG(wide.st_mode));
  errno = 0;
  EXPECT(stat("/no/such/file", &at) == -1 && errno == ENOENT);
  errno = 0;
  EXPECT(fstat(-1, &at) == -1 && errno == EBADF);

  EXPECT(gettid() == getpid());
  unsigned seen = 0;
  for (int i = 0; i < 64; ++i) seen |= arc4random();
  EXPECT(seen == ~0u); /* each bit is 0 in 64 draws with a chance of 2^-59 */

  struct dl_find_object own, glibc;
  int (*const find)(void*, struct dl_find_object*) = dlvsym(RTLD_NEXT, "_dl_find_object", "GLIBC_2.35");
  void* const code[] = {(void*)&main, (void*)&printf, (void*)&stat};
  for (int i = 0; i < 3; ++i) {
    EXPECT(_dl_find_object(code[i], &own) == 0 && find(code[i], &glibc) == 0);
    EXPECT(own.dlfo_eh_frame == glibc.dlfo_eh_frame && own.dlfo_map_start == glibc.dlfo_map_start);
    EXPECT((char*)own.dlfo_map_end > (char*)code[i]);
  }
  EXPECT(_dl_find_object(&own, &glibc) == -1); /* the stack has no tables */

  pthread_mutex_lock(&mutex);
  double begin = seconds();
  EXPECT(wait_until(begin + 0.05) == ETIMEDOUT && seconds() - begin >= 0.05 && seconds() - begin < 5);
  begin = seconds();
  EXPECT(wait_until(begin - 100) == ETIMEDOUT && seconds() - begin < 5);
  EXPECT(wait_until(0) == ETIMEDOUT);
  pthread_t thread;
  EXPECT(pthread_create(&thread, NULL, say, NULL) == 0);
  while (!said) EXPECT(wait_until(seconds() + 5) == 0);
  pthread_mutex_unlock(&mutex);
  EXPECT(pthread_join(thread, NULL) == 0);
  puts("equal");
  return 0;
}
