// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/address.h"

#include <algorithm>
#include <charconv>

#include "core/printable.h"
#include "kernels/error.h"

namespace weft::dist {

std::ostream& operator<<(std::ostream& out, const Address& address) {
  const bool brackets = address.port != 0 && address.host.find(':') != std::string::npos;
  out << (brackets ? "[" : "") << address.host << (brackets ? "]" : "");
  return address.port == 0 ? out : out << ':' << address.port;
}

uint16_t parse_port(std::string_view what, std::string_view text) {
  uint32_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  WEFT_CHECK(error == std::errc{} && end == text.data() + text.size() && port >= 1 && port <= 65535, what,
             ": expected a port, 1 to 65535, got '", printable(text.substr(0, 100)), "'");
  return static_cast<uint16_t>(port);
}

Address parse_address(std::string_view what, std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    fail(what, ": expected a host, host:port or [IPv6]:port, got '", printable(text.substr(0, 300)), "' (", why, ")");
  };
  Address address;
  std::string_view rest;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == text.npos) refuse("the bracket is not closed");
    address.host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
    if (!rest.empty() && rest.front() != ':') refuse("text after the bracket");
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    address.host = text.substr(0, text.find(':'));
    rest = text.substr(text.find(':'));
  } else {
    address.host = text;  // a name, or an IPv6 address without a port
  }
  if (address.host.empty()) refuse("the host is empty");
  if (address.host.size() > 255) refuse("the host is longer than 255 characters");
  for (const char c : address.host)
    if (c <= ' ' || c > '~') refuse("the host contains a character that host names do not have");
  if (!rest.empty()) address.port = parse_port(what, rest.substr(1));
  return address;
}

}  // namespace weft::dist
