// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/collective_time.h"

#include <algorithm>
#include <array>
#include <bit>

namespace emulator::collective_time {

namespace {

constexpr std::array<std::string_view, 3> kProtocols = {"LL", "LL128", "Simple"};
constexpr size_t kLL = 0, kLL128 = 1, kSimple = 2;

struct Row {
  std::string_view link, algorithm;
  std::array<double, 3> of;  ///< a value for each protocol
};
constexpr Row kBases[] = {
#define BASE(algorithm, ...) {"", algorithm, {__VA_ARGS__}},
#include "emulator/machine/nccl_model.inc"
};
constexpr Row kSteps[] = {
#define STEP(link, algorithm, ...) {link, algorithm, {__VA_ARGS__}},
#include "emulator/machine/nccl_model.inc"
};
constexpr Row kShares[] = {
#define SHARE(algorithm, ...) {"", algorithm, {__VA_ARGS__}},
#include "emulator/machine/nccl_model.inc"
};
constexpr struct {
  std::string_view name;
  double value;
} kConstants[] = {
#define CONSTANT(name, value) {name, value},
#include "emulator/machine/nccl_model.inc"
};
constexpr Cluster kClusters[] = {
#define CLUSTER(key, per_node, inside, outside, overhead, link, ll128, what) {key, per_node, inside, outside, overhead, link, ll128 != 0},
#include "emulator/machine/nccl_model.inc"
};

template <size_t n>
constexpr const std::array<double, 3>& find(const Row (&rows)[n], std::string_view algorithm, std::string_view link = "") {
  return std::ranges::find_if(rows, [&](const Row& row) { return row.algorithm == algorithm && row.link == link; })->of;
}
constexpr double constant(std::string_view name) {
  return std::ranges::find_if(kConstants, [&](const auto& row) { return row.name == name; })->value;
}

int log2i(int n) { return std::bit_width(static_cast<unsigned>(n)) - 1; }

/// GB/s between nodes, of a node's ranks together: each has the share of the cards that is its own.
double outside_of(const Cluster& c, int local) { return constant("network_share") * c.outside * local / c.per_node; }

/// GB/s of a communicator's ring.
double bandwidth(const Cluster& c, const Places& places) {
  if (places.nodes == 1) return c.inside;
  const double outside = outside_of(c, places.local);
  return places.local == 1 ? outside : std::min(c.inside, outside);
}

/// Calls use(algorithm, protocol, us at the start, us of a gather's steps, GB/s) for each way that NCCL may go.
template <class Use>
void for_each_way(const Cluster& c, const Places& places, const Use& use) {
  const auto [n, nodes, local] = places;
  const double most = bandwidth(c, places);
  for (const std::string_view algorithm : {"ring", "tree"}) {
    for (size_t p = 0; p < kProtocols.size(); ++p) {
      if (p == kLL128 && (c.link == "pci" || (nodes > 1 && !c.ll128))) continue;
      double inner = find(kSteps, algorithm, c.link)[p], steps;
      const double outer = find(kSteps, local == 1 ? "tree" : algorithm, "network")[p];
      if (algorithm == "ring") {
        if (nodes > 1) inner = std::max(inner, c.overhead * (p == kSimple ? 3 : 1));
        steps = nodes > 1 ? (n - nodes) * inner + (nodes - 1) * outer : (n - 1) * inner;
      } else {
        steps = (local - 1) * inner + log2i(nodes) * outer;
      }
      double gbs = most * find(kShares, algorithm)[p];
      if (p == kLL && nodes > 1) gbs = std::min(gbs, constant("ll_most"));
      use(algorithm, kProtocols[p], find(kBases, algorithm)[p], steps, gbs);
    }
  }
  if (nodes == n)
    use("PAT", kProtocols[kSimple], constant("pat_start"), log2i(n) * constant("pat_doubling") + n * constant("pat_rank"),
        most * constant("pat_share"));
}

/// The fastest way. `rounds`: how often a gather's steps are gone; `moved`: bytes over the bus by algorithm, or kNever.
constexpr double kNever = -1;
template <class Moved>
Cost fastest(const Cluster& c, const Places& places, double rounds, const Moved& moved) {
  Cost best;
  if (places.ranks == 1) return best;
  for_each_way(c, places, [&](std::string_view algorithm, std::string_view protocol, double start, double steps, double gbs) {
    const double bytes = moved(algorithm);
    if (bytes == kNever) return;
    const double seconds = 1e-6 * (start + rounds * steps) + bytes / (gbs * 1e9);
    if (best.algorithm.empty() || seconds < best.seconds) best = {seconds, algorithm, protocol};
  });
  return best;
}

/// A ring's rank keeps its own part.
double others(const Places& places, double bytes) { return bytes * (places.ranks - 1) / places.ranks; }

}  // namespace

const Cluster* find_cluster(std::string_view key) {
  const auto* const found = std::ranges::find(kClusters, key, &Cluster::key);
  return found == std::end(kClusters) ? nullptr : found;
}

const Cluster* cluster_of_gpu(std::string_view gpu) {
  return find_cluster(gpu == "a100"                     ? "dgx_a100"
                      : gpu == "h100" || gpu == "h200" ? "dgx_h100"
                      : gpu == "gh200"                  ? "vista"
                                                        : "");
}

std::string cluster_keys() {
  std::string all;
  for (const Cluster& cluster : kClusters) all += (all.empty() ? "" : ", ") + std::string(cluster.key);
  return all;
}

Cost all_reduce(const Cluster& cluster, const Places& places, double bytes) {
  return fastest(cluster, places, 2, [&](std::string_view algorithm) {
    return algorithm == "PAT" ? kNever : 2 * (algorithm == "ring" ? others(places, bytes) : bytes);
  });
}

Cost gather(const Cluster& cluster, const Places& places, double bytes) {
  return fastest(cluster, places, 1, [&](std::string_view algorithm) { return algorithm == "tree" ? kNever : others(places, bytes); });
}

Cost pass(const Cluster& cluster, const Places& places, double bytes) {
  return fastest(cluster, places, 1, [&](std::string_view algorithm) { return algorithm == "ring" ? bytes : kNever; });
}

Cost transfers(const Cluster& cluster, double inside, double outside) {
  const auto of = [&](double bytes, std::string_view link, double gbs) {
    return bytes == 0 ? 0.0 : 1e-6 * (find(kBases, "ring")[kSimple] + find(kSteps, "ring", link)[kSimple]) + bytes / (gbs * 1e9);
  };
  return {std::max(of(inside, cluster.link, cluster.inside), of(outside, "network", outside_of(cluster, 1))), "send",
          kProtocols[kSimple]};
}

}  // namespace emulator::collective_time
