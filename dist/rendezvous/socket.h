// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "dist/rendezvous/address.h"

namespace weft::dist {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

/// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;

  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release();
  void close();

 private:
  int fd_ = -1;
};

/// One numeric address of a host.
struct Endpoint {
  sockaddr_storage storage{};
  socklen_t size = 0;

  int family() const { return storage.ss_family; }
  uint16_t port() const;
  void set_port(uint16_t port);
  bool is_loopback() const;
  /// `10.0.0.1:29500`, `[::1]:29500`.
  std::string text() const;
};

/// The addresses of a host in the resolver's order. Errors: no such host (named).
std::vector<Endpoint> resolve(const Address& address);

/// The address of the other side of a connection.
Endpoint peer_of(int fd);

/// The system's message for an error number.
std::string error_words(int number);

/// Sockets here never block and are closed on exec.
/// Listens on exactly this address (port 0: the system picks one). 0, or the error number.
int listen_on(const Endpoint& endpoint, Descriptor& listener);

/// Connects until the deadline. 0, or the error number (ETIMEDOUT when the deadline passed).
int connect_to(const Endpoint& endpoint, TimePoint deadline, Descriptor& connection);

/// No delay for small messages; an unreachable peer breaks the connection after 20 seconds.
void prepare_connection(int fd);

/// Waits until the socket can be read. False: the deadline passed.
bool wait_readable(int fd, TimePoint deadline);

/// Sends all bytes. 0, or the error number.
int send_all(int fd, std::string_view bytes, TimePoint deadline);

/// Appends received bytes, at most 64 KiB. Returns 0; EAGAIN if there are none; -1 if the peer has closed; or the error
/// number.
int receive_some(int fd, std::string& bytes);

/// Raises this process's limit on open files, as far as permitted, for `count` files beyond the program's own. Errors:
/// fewer than `least` in all are permitted.
void allow_connections(size_t count, size_t least = 0);

/// This host's name.
std::string host_name();

/// Sockets that listen on all local addresses of a host name, on one port.
struct Listeners {
  Address address;
  std::vector<Descriptor> sockets;
  bool loopback = true;  ///< none of the addresses can be reached from another host
};

/// Listens on address.port or, if that is taken, on one of the next `ports` - 1. Errors: the host is not this one;
/// all ports are taken; the system forbids it.
Listeners listen_at(const Address& address, int ports);

/// 0 and `listeners` on exactly this port, or the error number; EADDRNOTAVAIL: the host is not this one.
int try_listen(const Address& address, const std::vector<Endpoint>& endpoints, Listeners& listeners);

}  // namespace weft::dist
