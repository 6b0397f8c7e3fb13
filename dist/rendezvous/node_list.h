// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace weft::dist {

/// The hosts of a Slurm node list, in its order: `jwb[0021-0024,0030],login1` is jwb0021 … jwb0024, jwb0030, login1;
/// of several brackets in one name the last changes fastest; leading zeros are kept (srun(1),
/// `scontrol show hostnames`). Errors: not such a list; more than 65,536 hosts.
std::vector<std::string> parse_node_list(std::string_view list);

/// The name under which another node reaches `host` on the fast network. On JSC's systems juwels, juwelsbooster and
/// jureca (by the variable SYSTEMNAME) that is the name with an `i` after its first part; elsewhere the name itself.
std::string fast_network_name(const std::string& host, const std::string& system);

}  // namespace weft::dist
