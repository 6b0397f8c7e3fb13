// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace weft::dist {

/// Where a store listens: a host name or an IPv4 or IPv6 address, and a TCP port (0: not given).
struct Address {
  std::string host;
  uint16_t port = 0;
  bool operator==(const Address&) const = default;
};

/// `gpu1:29500`, `[fe80::1]:29500`; only the host if there is no port.
std::ostream& operator<<(std::ostream& out, const Address& address);

/// Reads `host`, `host:port`, `10.0.0.1:29500`, `::1`, `[::1]`, `[::1]:29500`. Errors begin with `what`, the name of
/// the variable or flag.
Address parse_address(std::string_view what, std::string_view text);

/// Reads a port, 1 to 65535.
uint16_t parse_port(std::string_view what, std::string_view text);

/// Names this machine and its network namespace: two processes with equal names reach each other by loopback.
std::string host_identity();

/// The addresses of this machine's interfaces that are up, loopback left out; IPv4 first. With WEFT_SOCKET_IFNAME
/// (`eth0`, or a prefix as in `ib`), those of that interface alone. Errors: there is no such interface.
std::vector<std::string> local_addresses();

/// host_identity() and local_addresses() as a string for other processes.
std::string host_card();
/// All addresses of other machines in such strings.
std::vector<std::string> addresses_elsewhere(const std::vector<std::string>& cards);

/// The address of this machine from which packets to one of `targets` (another machine's addresses) would go; the first
/// of local_addresses() if there is no route. Errors: this machine has only loopback addresses.
std::string address_towards(const std::vector<std::string>& targets);

}  // namespace weft::dist
