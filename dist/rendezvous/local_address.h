// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace weft::dist {

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
