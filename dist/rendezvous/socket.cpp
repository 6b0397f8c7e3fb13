// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/text.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

bool wait_for(int fd, short events, TimePoint deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true;  // the next call on the socket reports the error
    if (Clock::now() >= deadline) return false;
  }
}

void set_option(int fd, int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); }

Descriptor make_socket(int family) {
  return Descriptor(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.release();
  }
  return *this;
}

int Descriptor::release() { return std::exchange(fd_, -1); }

void Descriptor::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

uint16_t Endpoint::port() const {
  return ntohs(family() == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port
                                    : reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
}

void Endpoint::set_port(uint16_t port) {
  (family() == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port
                        : reinterpret_cast<sockaddr_in*>(&storage)->sin_port) = htons(port);
}

bool Endpoint::is_loopback() const {
  if (family() == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
  return ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr) >> 24 == 127;
}

std::string Endpoint::text() const {
  char host[NI_MAXHOST] = "?";
  ::getnameinfo(reinterpret_cast<const sockaddr*>(&storage), size, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return str(Address{host, port()});
}

std::vector<Endpoint> resolve(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int status = ::getaddrinfo(address.host.c_str(), nullptr, &hints, &list);
  WEFT_CHECK(status == 0, "store: expected a host that this one can find, got '", printable(address.host),
             "': ", status == EAI_SYSTEM ? error_words(errno) : ::gai_strerror(status),
             ". Set MASTER_ADDR to a name or address of rank 0's host");
  std::vector<Endpoint> found;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET && entry->ai_family != AF_INET6) continue;
    Endpoint endpoint;
    std::memcpy(&endpoint.storage, entry->ai_addr, entry->ai_addrlen);
    endpoint.size = entry->ai_addrlen;
    endpoint.set_port(address.port);
    const auto same = [&](const Endpoint& other) { return other.text() == endpoint.text(); };
    if (std::none_of(found.begin(), found.end(), same)) found.push_back(endpoint);
  }
  ::freeaddrinfo(list);
  return found;
}

Endpoint peer_of(int fd) {
  Endpoint peer;
  peer.size = sizeof peer.storage;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer.storage), &peer.size) != 0) peer.storage.ss_family = AF_INET;
  return peer;
}

std::string error_words(int number) { return std::generic_category().message(number); }

int listen_on(const Endpoint& endpoint, Descriptor& listener) {
  Descriptor made = make_socket(endpoint.family());
  if (!made) return errno;
  set_option(made.fd(), SOL_SOCKET, SO_REUSEADDR, 1);  // else a port just closed could not be reused for a minute
  if (endpoint.family() == AF_INET6) set_option(made.fd(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  if (::bind(made.fd(), reinterpret_cast<const sockaddr*>(&endpoint.storage), endpoint.size) != 0) return errno;
  if (::listen(made.fd(), SOMAXCONN) != 0) return errno;
  listener = std::move(made);
  return 0;
}

int connect_to(const Endpoint& endpoint, TimePoint deadline, Descriptor& connection) {
  Descriptor made = make_socket(endpoint.family());
  if (!made) return errno;
  if (::connect(made.fd(), reinterpret_cast<const sockaddr*>(&endpoint.storage), endpoint.size) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return errno;
    if (!wait_for(made.fd(), POLLOUT, deadline)) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(made.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return error;
  }
  prepare_connection(made.fd());
  connection = std::move(made);
  return 0;
}

void prepare_connection(int fd) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 20'000);
}

bool wait_readable(int fd, TimePoint deadline) { return wait_for(fd, POLLIN, deadline); }

int send_all(int fd, std::string_view bytes, TimePoint deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!wait_for(fd, POLLOUT, deadline)) return ETIMEDOUT;
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

int receive_some(int fd, std::string& bytes) {
  char buffer[65536];
  while (true) {
    const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
    if (got > 0) {
      bytes.append(buffer, static_cast<size_t>(got));
      return 0;
    }
    if (got == 0) return -1;
    if (errno != EINTR) return errno;
  }
}

void allow_connections(size_t count, size_t least) {
  constexpr size_t kOthers = 256;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count + kOthers) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, count + kOthers);
  WEFT_CHECK(limit.rlim_cur >= least, "store: expected that this process may have ", least,
             " files open, got a limit of ", limit.rlim_cur, ". Raise it (ulimit -n), or start fewer ranks");
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::string host_name() {
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) != 0 || name[0] == '\0') return "unknown";
  return name;
}

namespace {

uint16_t port_of(int fd) {
  Endpoint own;
  own.size = sizeof own.storage;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&own.storage), &own.size);
  return own.port();
}

}  // namespace

int try_listen(const Address& address, const std::vector<Endpoint>& endpoints, Listeners& listeners) {
  Listeners made{address, {}, true};
  int not_here = EADDRNOTAVAIL;
  for (Endpoint endpoint : endpoints) {
    endpoint.set_port(made.address.port);
    Descriptor socket;
    const int error = listen_on(endpoint, socket);
    // A name may have addresses of a family that this host lacks.
    if (error == EADDRNOTAVAIL || error == EAFNOSUPPORT) continue;
    if (error != 0) return error;
    made.address.port = port_of(socket.fd());  // with port 0 the first socket picks the port of all
    made.loopback = made.loopback && endpoint.is_loopback();
    made.sockets.push_back(std::move(socket));
    not_here = 0;
  }
  if (not_here == 0) listeners = std::move(made);
  return not_here;
}

Listeners listen_at(const Address& address, int ports) {
  const std::vector<Endpoint> endpoints = resolve(address);
  Listeners listeners;
  int error = EADDRINUSE;
  for (int i = 0; i < ports && address.port + i <= 65535 && error == EADDRINUSE; ++i)
    error = try_listen({address.host, static_cast<uint16_t>(address.port == 0 ? 0 : address.port + i)}, endpoints,
                       listeners);
  const std::string numeric = endpoints.empty() ? "" : parse_address("store", endpoints[0].text()).host;
  WEFT_CHECK(error != EADDRNOTAVAIL, "store: rank 0 runs on ", host_name(), ", and ", address.host,
             numeric.empty() || numeric == address.host ? "" : " (" + numeric + ")",
             " is no address of this host. Set MASTER_ADDR to a name or address of the host where rank 0 runs");
  WEFT_CHECK(error != EADDRINUSE, "store: the ports ", address.port, " to ", address.port + ports - 1, " of ",
             Address{address.host, 0}, " are all taken by other programs. Set MASTER_PORT to another one");
  WEFT_CHECK(error == 0, "store: cannot listen on ", address, ": ", error_words(error));
  return listeners;
}

}  // namespace weft::dist
