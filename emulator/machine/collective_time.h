// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

// A model of the time of NCCL's collectives: NCCL's own latencies and shares of the bandwidth (nccl_model.inc), and the
// links of a machine. As NCCL does, it takes the fastest of ring, tree, PAT and of LL, LL128, Simple. Numbers in, numbers
// out. benchmarks/scaling_model computes the same from the same table.

namespace emulator::collective_time {

/// The links of a machine.
struct Cluster {
  std::string_view key;     ///< value of `weft-emulate --cluster`
  int per_node;             ///< GPUs of a node
  double inside, outside;   ///< GB/s: bus bandwidth inside a node; line rate of a node's network cards together
  double overhead;          ///< us that a message between nodes costs the processor
  std::string_view link;    ///< inside a node: nvlink or pci
  bool ll128;               ///< whether NCCL uses LL128 between nodes
};
/// nullptr: the table has no such machine.
const Cluster* find_cluster(std::string_view key);
/// The machine that a GPU is assumed to be in; nullptr: none.
const Cluster* cluster_of_gpu(std::string_view gpu);
/// `dgx_a100, juwels_booster, …`
std::string cluster_keys();

/// The places of a communicator's ranks.
struct Places {
  int ranks = 1, nodes = 1;
  int local = 1;  ///< ranks of a node, at most
};

struct Cost {
  double seconds = 0;
  std::string_view algorithm, protocol;
};
/// `bytes`: of each rank's buffer.
Cost all_reduce(const Cluster& cluster, const Places& places, double bytes);
/// all_gather and reduce_scatter. `bytes`: of the large buffer.
Cost gather(const Cluster& cluster, const Places& places, double bytes);
/// broadcast and reduce: a ring that passes all bytes on.
Cost pass(const Cluster& cluster, const Places& places, double bytes);
/// Sends or receives of a group. A rank moves `inside` bytes in one direction within its node, and `outside` bytes to or
/// from other nodes.
Cost transfers(const Cluster& cluster, double inside, double outside);

}  // namespace emulator::collective_time
