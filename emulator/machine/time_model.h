// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

// A model of a kernel's time: a launch's counted work and a chip's rates per cycle give the time and its limit. Numbers
// in, numbers out; who counts is emulator/ptx/time/time_count.h.

namespace emulator::time_model {

/// A resource of a multiprocessor (SM) or the chip that may limit a kernel.
enum class Limit : uint8_t {
  issue,    ///< warp schedulers
  fp32,     ///< the FMA units
  integer,  ///< integer, logic, compare, conversion
  half,     ///< two 16-bit operations a lane
  fp64,
  mufu,     ///< ex2, rcp, sqrt, …
  tensor,
  lsu,      ///< addresses of loads, stores, shuffles: lanes a cycle
  shared,   ///< data of shared memory and L1: wavefronts of 128 bytes
  l2,
  dram,
  atomics,  ///< operations of global memory that meet in L2
  latency,  ///< the longest chain of dependent instructions of a block
  tail,     ///< SMs that have nothing to do in the last wave
  launch,
};
constexpr size_t kLimits = static_cast<size_t>(Limit::launch) + 1;
std::string_view name_of(Limit limit);

/// A chip's rates per cycle of its clock. `sources` in time_model.cpp say where each figure is from.
struct Chip {
  std::string_view key;        ///< as in gpu.h
  int processors;
  double ghz;                              ///< boost clock; a caller with a measured clock gives it to predict()
  double fp32, integer, half, fp64, mufu;  ///< lanes a cycle and SM
  double tensor_bf16;          ///< dense FLOP a cycle and SM, f32 sums; other types by type_rate()
  double mma_share;            ///< share of that rate by mma.sync (wgmma has all of it)
  double tensor_f64;           ///< FLOP a cycle and SM
  double lsu;                  ///< lanes a cycle and SM
  double l2_gbs;               ///< whole chip; a clock of its own, so not by the cycle
  double sm_l2_bytes;          ///< a cycle, of one SM
  double dram_gbs;             ///< at the pins; kReads and kCopies are the shares that are reached
  double l2_capacity;          ///< bytes
  int l1_bytes;                ///< with shared memory, of an SM
  // Latencies in cycles.
  double alu, mma_latency, mufu_latency, shared_latency, l1_latency, l2_latency, dram_latency, barrier_latency, tma_latency;
  double launch_us;            ///< from one kernel to the next in a stream
  double broadcast;            ///< cycles of shared memory for 16 bytes that all lanes of a load share
};
/// nullptr: the model has no figures of this GPU.
const Chip* find_chip(std::string_view key);

/// One launch, or a part as its sample: sums over `counted_blocks` blocks.
struct Work {
  double blocks = 1;            ///< blocks in the launch
  double counted_blocks = 1;    ///< that were executed and counted
  double warps_per_block = 1;
  double cluster_blocks = 1;
  double resident_blocks = 1;   ///< an SM
  // Warp instructions, as the hardware has them.
  double issued = 0, fp32 = 0, integer = 0, half = 0, fp64 = 0, mufu = 0, lsu = 0;
  double tensor_wgmma = 0, tensor_mma = 0;  ///< FLOP, as if all were bf16 (f64 has its own count)
  double tensor_f64 = 0;                    ///< FLOP
  double wavefronts = 0;                    ///< wavefronts of shared memory and L1
  double l2_bytes = 0;          ///< that leave the SMs for L2, both directions
  double dram_bytes = 0, dram_written = 0;  ///< both directions; those written
  double atomics = 0;           ///< cycles of the slice of L2 that has most atomic operations
  double path = 0;              ///< cycles of the longest chain of dependences, summed over blocks
};

struct Constants {
  /// p of the norm that adds up what a wave needs of each limit: 1: nothing overlaps, infinite: all. No source gives it.
  /// It is fitted on the published SGEMM ladder of an A6000 alone (benchmarks/results/2026-11-25-model-of-time.md).
  double overlap = 2.8;
  double ghz = 0;  ///< the clock, where it was measured; 0: boost
};

struct Prediction {
  double seconds = 0;
  double ghz = 0;  ///< the clock that it was made for
  Limit limit = Limit::latency;
  std::array<double, kLimits> cycles{};  ///< cycles of the whole launch, if each limit were alone
};
Prediction predict(const Chip& chip, const Work& work, const Constants& constants = {});

/// Rates relative to bf16 of tensor cores, by the bytes of an element and whether it is tf32: 4 bytes 0.5, 2 bytes 1,
/// 1 byte 2.
double tensor_type_rate(double element_bytes);

/// How far predictions were off where they could be compared (benchmarks/results/2026-11-25-model-of-time.md and
/// 2026-11-26-own-kernels.md): one sentence without its full stop.
std::string_view error_bar();

}  // namespace emulator::time_model
