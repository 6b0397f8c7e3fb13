// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/listeners.h"

#include <cerrno>

#include "kernels/error.h"

namespace weft::dist {
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
