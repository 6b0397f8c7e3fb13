// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "dist/rendezvous/socket.h"

namespace weft::dist {

/// Sockets that listen on all local addresses of one host name, on one port.
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
