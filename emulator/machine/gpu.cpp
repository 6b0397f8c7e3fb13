// SPDX-License-Identifier: Apache-2.0
#include "emulator/machine/gpu.h"

#include <array>

namespace emulator {

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr int kKiB = 1 << 10;

constexpr std::array<Gpu, 8> kGpus = {{
    {"h100", "NVIDIA H100 80GB HBM3", 9, 0, 132, 81079 * kMiB, 50 * kMiB, 228 * kKiB, 227 * kKiB, 2048, 32, 1980000,
     2619000, 5120},
    {"a100", "NVIDIA A100-SXM4-80GB", 8, 0, 108, 81153 * kMiB, 40 * kMiB, 164 * kKiB, 163 * kKiB, 2048, 32, 1410000,
     1593000, 5120},
    {"h200", "NVIDIA H200", 9, 0, 132, 143155 * kMiB, 50 * kMiB, 228 * kKiB, 227 * kKiB, 2048, 32, 1980000, 3201000,
     6144},
    {"gh200", "NVIDIA GH200 120GB", 9, 0, 132, 97280 * kMiB, 50 * kMiB, 228 * kKiB, 227 * kKiB, 2048, 32, 1980000,
     2619000, 6144},
    {"a6000", "NVIDIA RTX A6000", 8, 6, 84, 48669 * kMiB, 6 * kMiB, 100 * kKiB, 99 * kKiB, 1536, 16, 1800000, 8001000,
     384},
    {"l4", "NVIDIA L4", 8, 9, 58, 22478 * kMiB, 48 * kMiB, 100 * kKiB, 99 * kKiB, 1536, 24, 2040000, 6251000, 192},
    {"b200", "NVIDIA B200", 10, 0, 148, 182642 * kMiB, 126 * kMiB, 228 * kKiB, 227 * kKiB, 2048, 32, 1965000, 3996000,
     8192},
    {"t4", "Tesla T4", 7, 5, 40, 15095 * kMiB, 4 * kMiB, 64 * kKiB, 64 * kKiB, 1024, 16, 1590000, 5001000, 256},
}};

}  // namespace

const Gpu* find_gpu(std::string_view key) {
  for (const Gpu& gpu : kGpus)
    if (gpu.key == key) return &gpu;
  return nullptr;
}

std::string_view gpu_keys() { return "h100 a100 h200 gh200 a6000 l4 b200 t4"; }

}  // namespace emulator
