// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace weft::dist {

/// Names this machine and its network namespace: two processes that say the same reach each other by loopback.
std::string host_identity();

/// The addresses of this machine's interfaces that are up, loopback left out; IPv4 first. With WEFT_SOCKET_IFNAME
/// (`eth0`, or a prefix as in `ib`), those of that interface alone. Errors: there is no such interface.
std::vector<std::string> local_addresses();

/// host_identity() and local_addresses() as a text for other processes.
std::string host_card();
/// What such texts say of other machines: all their addresses.
std::vector<std::string> addresses_elsewhere(const std::vector<std::string>& cards);

/// The address of this machine from which packets to one of `targets` (another machine's addresses) would go; the first
/// of local_addresses() when no route says so. Errors: this machine has no address but loopback's.
std::string address_towards(const std::vector<std::string>& targets);

}  // namespace weft::dist
