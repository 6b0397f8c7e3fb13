// SPDX-License-Identifier: Apache-2.0
// For LD_PRELOAD: the process gets signal KILL_WITH (SIGKILL) at its TCP connect number KILL_AT_CONNECT, counted from 1.
#include <dlfcn.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

extern "C" int connect(int fd, const sockaddr* address, socklen_t size) {
  static std::atomic<int> connects{0};
  static const auto next = reinterpret_cast<int (*)(int, const sockaddr*, socklen_t)>(dlsym(RTLD_NEXT, "connect"));
  const char *const when = std::getenv("KILL_AT_CONNECT"), *const with = std::getenv("KILL_WITH");
  int type = 0;
  socklen_t type_size = sizeof type;
  getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size);
  const bool tcp = type == SOCK_STREAM && (address->sa_family == AF_INET || address->sa_family == AF_INET6);
  if (tcp && when && ++connects == std::atoi(when)) kill(getpid(), with ? std::atoi(with) : SIGKILL);
  return next(fd, address, size);
}
