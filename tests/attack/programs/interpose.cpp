// SPDX-License-Identifier: Apache-2.0
// For LD_PRELOAD, in a rank under attack.
//   ATTACK_PROXY=PORT        TCP connections go through the program at 127.0.0.1:PORT, which gets the port that a rank
//                            wants (2 bytes) and answers with the port to connect to instead.
//   ATTACK_CLOCK=CALLS:SECONDS  after CALLS looks at the wall clock it jumps by SECONDS. The steady clock does
//                            not, as on a host whose time is set.
//   ATTACK_FSYNC=CALL:SECONDS  that call of fsync takes SECONDS, as on a busy disk.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// The proxy's answer; 0: there is none.
in_port_t proxied(in_port_t wanted, int proxy) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(proxy));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  in_port_t answer = 0;
  if (next<decltype(connect)>("connect")(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 ||
      send(fd, &wanted, sizeof wanted, MSG_NOSIGNAL) != sizeof wanted ||
      recv(fd, &answer, sizeof answer, MSG_WAITALL) != sizeof answer)
    answer = 0;
  close(fd);
  return answer;
}

long jump() {
  static const char* const text = std::getenv("ATTACK_CLOCK");
  static std::atomic<long> calls{0};
  long after = 0, seconds = 0;
  if (!text || std::sscanf(text, "%ld:%ld", &after, &seconds) != 2) return 0;
  return ++calls > after ? seconds : 0;
}

}  // namespace

extern "C" int fsync(int fd) {
  static const char* const text = std::getenv("ATTACK_FSYNC");
  static std::atomic<long> calls{0};
  long call = 0;
  double seconds = 0;
  if (text && std::sscanf(text, "%ld:%lf", &call, &seconds) == 2 && ++calls == call)
    usleep(static_cast<useconds_t>(seconds * 1e6));
  return next<decltype(fsync)>("fsync")(fd);
}

extern "C" int connect(int fd, const sockaddr* address, socklen_t size) {
  static const char* const proxy = std::getenv("ATTACK_PROXY");
  const auto go = next<decltype(connect)>("connect");
  if (!proxy || address->sa_family != AF_INET) return go(fd, address, size);
  sockaddr_in to = *reinterpret_cast<const sockaddr_in*>(address);
  const in_port_t port = proxied(to.sin_port, std::atoi(proxy));
  if (port != 0) to.sin_port = port;
  return go(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to);
}

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int status = next<decltype(clock_gettime)>("clock_gettime")(clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec += jump();
  return status;
}

extern "C" time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
