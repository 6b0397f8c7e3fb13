// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/time_model.h"

#include <algorithm>
#include <cmath>

namespace emulator::time_model {

namespace {

// Sources.
// [guide] CUDA C++ Programming Guide, "Arithmetic Instructions": results a cycle and SM by compute capability.
// [paper] NVIDIA's white papers of GA100, GA102 and GH100, and data sheets: clocks, tensor FLOP, load and store units
// of an SM
//         (GA100, GH100: 32; GA102: 16), bandwidth of memory, 5120 bytes a cycle from L2 of GA100.
// [luo]   Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking", arXiv
// 2402.13499:
//         latencies of L1, L2 and memory on A100 and H100; mma.sync reaches 63% of the rate of wgmma on H100.
// [c&c]   Chips and Cheese, "Nvidia's H100: Funny L2, and Tons of Bandwidth" (2023): L2 of H100 PCIe and A100.
// [h200]  Measured on one H200: benchmarks/results/2026-11-27-h200.md; peers in 2026-11-25-model-of-time.md.
// [luo] is quoted from notes and was not looked up again. Clocks are the boost clocks of the data sheets.
// L2 has a clock of its own: an H200 whose SMs had sunk to some 1.5 GHz still moved 9.7 TB/s in a product. H200:
// fast.cu's step 2 had this rate [h200]. H100: A100's 5120 bytes a cycle (80 slices of 64 bytes) at boost; the
// same step as published has 9.9 TB/s. GA102: V100's 2048 bytes a cycle at boost: no measurement was found.
constexpr double kMiB = 1 << 20;
constexpr int kKiB = 1024;

/// The reached share of the pins' rate: reads 4.70 of 4.8 TB/s in two sums, a copy 4.17 of both directions
/// (cudaMemcpy). So written bytes cost more [h200]. The other chips are taken to reach the same: fast.cu's sums have
/// 0.97 on an H100, llm.c's residual 0.87 on an A100 (its PR 378).
constexpr double kReads = 0.98, kCopies = 0.87, kWrites = 1 / (2 / kCopies - 1 / kReads);

/// SGEMM_CUDA's steps 3 and 4 leave 2.8 cycles at most for 16 bytes that all lanes share, and are met with 2 [h200]; on
/// an A6000 step 4 is met with 4.
constexpr double kHopperBroadcast = 2, kAmpereBroadcast = 4;

constexpr Chip kHopper = {.key = "h100", .processors = 132, .ghz = 1.98, .fp32 = 128, .integer = 64, .half = 128, .fp64 = 64, .mufu = 16,
                          .tensor_bf16 = 4096, .mma_share = 0.63, .tensor_f64 = 256, .lsu = 32, .l2_gbs = 10138, .sm_l2_bytes = 64,
                          .dram_gbs = 3352, .l2_capacity = 50 * kMiB, .l1_bytes = 256 * kKiB,
                          .alu = 4, .mma_latency = 32, .mufu_latency = 22, .shared_latency = 29, .l1_latency = 41, .l2_latency = 262, .dram_latency = 479,
                          .barrier_latency = 20, .tma_latency = 600, .launch_us = 2, .broadcast = kHopperBroadcast};

constexpr Chip with(Chip chip, std::string_view key, double dram_gbs, double l2_gbs) {
  chip.key = key;
  chip.dram_gbs = dram_gbs;
  chip.l2_gbs = l2_gbs;
  return chip;
}

constexpr std::array<Chip, 5> kChips = {{
    kHopper,
    with(kHopper, "h200", 4800, 11700),
    with(kHopper, "gh200", 4000, 11700),
    {.key = "a100", .processors = 108, .ghz = 1.41, .fp32 = 64, .integer = 64, .half = 128, .fp64 = 32, .mufu = 16,
     .tensor_bf16 = 2048, .mma_share = 1, .tensor_f64 = 128, .lsu = 32, .l2_gbs = 7219, .sm_l2_bytes = 64,
     .dram_gbs = 2039, .l2_capacity = 40 * kMiB, .l1_bytes = 192 * kKiB,
     .alu = 4, .mma_latency = 25, .mufu_latency = 22, .shared_latency = 29, .l1_latency = 38, .l2_latency = 262, .dram_latency = 466,
     .barrier_latency = 20, .tma_latency = 600, .launch_us = 2.5, .broadcast = kAmpereBroadcast},
    {.key = "a6000", .processors = 84, .ghz = 1.80, .fp32 = 128, .integer = 64, .half = 128, .fp64 = 2, .mufu = 16,
     .tensor_bf16 = 1024, .mma_share = 1, .tensor_f64 = 4, .lsu = 16, .l2_gbs = 3686, .sm_l2_bytes = 64,
     .dram_gbs = 768, .l2_capacity = 6 * kMiB, .l1_bytes = 128 * kKiB,
     .alu = 4, .mma_latency = 33, .mufu_latency = 22, .shared_latency = 29, .l1_latency = 38, .l2_latency = 250, .dram_latency = 470,
     .barrier_latency = 20, .tma_latency = 600, .launch_us = 2.5, .broadcast = kAmpereBroadcast},
}};

constexpr std::array<std::string_view, kLimits> kNames = {"issue", "FP32", "integer", "FP16", "FP64", "MUFU", "tensor", "load/store units",
                                                          "shared memory", "L2", "DRAM", "atomics", "latency", "idle SMs", "launch"};

}  // namespace

std::string_view name_of(Limit limit) { return kNames[static_cast<size_t>(limit)]; }

const Chip* find_chip(std::string_view key) {
  for (const Chip& chip : kChips)
    if (chip.key == key) return &chip;
  return nullptr;
}

double tensor_type_rate(double element_bytes) { return element_bytes >= 4 ? 0.5 : element_bytes >= 2 ? 1 : 2; }

Prediction predict(const Chip& chip, const Work& work, const Constants& constants) {
  Prediction p;
  const double ghz = p.ghz = constants.ghz > 0 ? constants.ghz : chip.ghz;
  const double per_block = 1 / work.counted_blocks;
  const double resident = work.resident_blocks;
  // Cycles of each limit for one block of an SM; of L2 and memory for one block of the chip.
  std::array<double, kLimits> block{}, chip_wide{};
  const auto at = [](auto& all, Limit limit) -> double& { return all[static_cast<size_t>(limit)]; };
  constexpr double kLanes = 32;
  at(block, Limit::issue) = work.issued * per_block / 4;
  at(block, Limit::fp32) = work.fp32 * per_block * kLanes / chip.fp32;
  at(block, Limit::integer) = work.integer * per_block * kLanes / chip.integer;
  at(block, Limit::half) = work.half * per_block * kLanes / chip.half;
  at(block, Limit::fp64) = work.fp64 * per_block * kLanes / chip.fp64;
  at(block, Limit::mufu) = work.mufu * per_block * kLanes / chip.mufu;
  at(block, Limit::tensor) = per_block * ((work.tensor_wgmma + work.tensor_mma / chip.mma_share) / chip.tensor_bf16 + work.tensor_f64 / chip.tensor_f64);
  at(block, Limit::lsu) = work.lsu * per_block * kLanes / chip.lsu;
  at(block, Limit::shared) = work.wavefronts * per_block;
  at(block, Limit::l2) = work.l2_bytes * per_block / chip.sm_l2_bytes;
  at(chip_wide, Limit::l2) = work.l2_bytes * per_block / (chip.l2_gbs / ghz);
  const double dram_bytes = (work.dram_bytes - work.dram_written) / kReads + work.dram_written / kWrites;
  at(chip_wide, Limit::dram) = dram_bytes * per_block / (chip.dram_gbs / ghz);
  at(chip_wide, Limit::atomics) = work.atomics * per_block;

  // Fewer warps than schedulers leave some idle.
  const auto spread = [&](double blocks) { return std::min(4.0, std::max(1.0, blocks * work.warps_per_block)) / 4; };
  const auto wave = [&](double blocks_of_sm, double blocks_of_chip, std::array<double, kLimits>& all) {
    for (size_t k = 0; k < kLimits; ++k) {
      const bool of_schedulers = k <= static_cast<size_t>(Limit::tensor);
      all[k] = block[k] * blocks_of_sm / (of_schedulers ? spread(blocks_of_sm) : 1);
      all[k] = std::max(all[k], chip_wide[k] * blocks_of_chip);
      if (static_cast<Limit>(k) == Limit::latency) all[k] = work.path * per_block;
    }
    const double most = *std::max_element(all.begin(), all.end());
    if (most == 0) return 0.0;
    double sum = 0;
    for (const double one : all) sum += std::pow(one / most, constants.overlap);
    return most * std::pow(sum, 1 / constants.overlap);
  };
  const double slots = std::max(1.0, std::floor(resident * chip.processors / work.cluster_blocks)) * work.cluster_blocks;
  const double full = std::floor(work.blocks / slots), rest = work.blocks - full * slots;
  std::array<double, kLimits> all{};
  double cycles = 0;
  if (full > 0) cycles += full * wave(resident, slots, all);
  for (size_t k = 0; k < kLimits; ++k) p.cycles[k] = full * all[k];
  if (rest > 0) {
    const double last = wave(std::min(resident, std::ceil(rest / chip.processors)), rest, all);
    cycles += last;
    for (size_t k = 0; k < kLimits; ++k) p.cycles[k] += all[k];
    // The last wave's time beyond its share of a full wave.
    std::array<double, kLimits> even{};
    at(p.cycles, Limit::tail) = std::max(0.0, last - wave(resident, slots, even) * rest / slots);
  }
  at(p.cycles, Limit::launch) = chip.launch_us * ghz * 1e3;
  p.seconds = (cycles + at(p.cycles, Limit::launch)) / (ghz * 1e9);
  p.limit = static_cast<Limit>(std::max_element(p.cycles.begin(), p.cycles.end()) - p.cycles.begin());
  return p;
}

std::string_view error_bar() {
  return "Nine of ten that were measured are within 19% (products on tensor cores; 41% where clusters share a few tiles), "
         "23% (products without), 20% (convolutions), 32% (attention), 24% (norms, sums, copies)";
}

}  // namespace emulator::time_model
