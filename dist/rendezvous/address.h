// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

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

}  // namespace weft::dist
