// SPDX-License-Identifier: Apache-2.0
#include "dist/rendezvous/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>

#include "core/text.h"
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

namespace {

std::string text_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  else
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text, sizeof text);
  return text;
}

bool is_link_local(const sockaddr* address) {
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

/// The address from which this machine would send to `target`; empty: no route.
std::string source_address(const std::string& target) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(target.c_str(), "9", &hints, &found) != 0) return {};  // the port is not used: nothing is sent
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  const int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};
  sockaddr_storage local{};
  socklen_t size = sizeof local;
  const bool known = connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&local), &size) == 0;
  close(fd);
  return known ? text_of(reinterpret_cast<const sockaddr*>(&local)) : std::string();
}

}  // namespace

std::string host_identity() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code none;
  const std::string network = std::filesystem::read_symlink("/proc/self/ns/net", none).string();
  return str(name, ' ', boot, ' ', network);
}

std::vector<std::string> local_addresses() {
  const char* const wanted = std::getenv("WEFT_SOCKET_IFNAME");
  ifaddrs* first = nullptr;
  WEFT_CHECK(getifaddrs(&first) == 0, "process group: cannot list the network interfaces");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, freeifaddrs);
  std::vector<std::string> v4, v6;
  for (const ifaddrs* i = first; i; i = i->ifa_next) {
    if (!i->ifa_addr || !(i->ifa_flags & IFF_UP)) continue;
    if (wanted ? !std::string_view(i->ifa_name).starts_with(wanted) : (i->ifa_flags & IFF_LOOPBACK) != 0) continue;
    if (i->ifa_addr->sa_family == AF_INET) v4.push_back(text_of(i->ifa_addr));
    if (i->ifa_addr->sa_family == AF_INET6 && !is_link_local(i->ifa_addr)) v6.push_back(text_of(i->ifa_addr));
  }
  v4.insert(v4.end(), v6.begin(), v6.end());
  WEFT_CHECK(!v4.empty() || !wanted, "process group: WEFT_SOCKET_IFNAME: no interface that is up begins with '", wanted,
             "' and has an address");
  return v4;
}

std::string host_card() {
  std::string card = host_identity() + '\n';
  for (const std::string& address : local_addresses()) card += address + '\n';
  return card;
}

std::vector<std::string> addresses_elsewhere(const std::vector<std::string>& cards) {
  const std::string here = host_identity();
  std::vector<std::string> addresses;
  for (const std::string& card : cards) {
    std::istringstream lines(card);
    std::string line;
    if (!std::getline(lines, line) || line == here) continue;
    while (std::getline(lines, line)) addresses.push_back(line);
  }
  return addresses;
}

std::string address_towards(const std::vector<std::string>& targets) {
  const std::vector<std::string> own = local_addresses();
  for (const std::string& target : targets) {
    const std::string source = source_address(target);
    // Skip targets that this machine has too, such as the bridge of a container runtime.
    if (source != target && std::ranges::find(own, source) != own.end()) return source;
  }
  WEFT_CHECK(!own.empty(),
             "process group: the ranks are on several hosts, but this one has no address besides loopback's");
  return own.front();
}

}  // namespace weft::dist
